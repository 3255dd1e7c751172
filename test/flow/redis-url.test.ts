import { inspect } from 'node:util';
import { Connection, InvalidOptionError, isRedisUrl, sentinelsOf } from '@piecework/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

describe('a URL of Sentinels', () => {
  it('names them, the group and what the servers and they want to know', () => {
    expect(sentinelsOf('redis-sentinel://a/mymaster')).toEqual({
      sentinels: [{ host: 'a', port: 26_379 }],
      name: 'mymaster',
    });
    expect(
      sentinelsOf('redis-sentinel://me:p%40ss:w@a:1,[::1]:2,c/group/3?sentinelPassword=s%26x'),
    ).toEqual({
      sentinels: [
        { host: 'a', port: 1 },
        { host: '::1', port: 2 },
        { host: 'c', port: 26_379 },
      ],
      ...{ name: 'group', db: 3, username: 'me', password: 'p@ss:w', sentinelPassword: 's&x' },
    });
    expect(sentinelsOf('rediss-sentinel://:secret@a/g')).toMatchObject({
      ...{ password: 'secret', tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true },
    });
  });

  it('is refused when it cannot be meant', () => {
    for (const wrong of [
      ...['redis-sentinel://', 'redis-sentinel://a', 'redis-sentinel://a/', 'redis-sentinel:///g'],
      ...['redis-sentinel://a:0/g', 'redis-sentinel://a:99999/g', 'redis-sentinel://a,,b/g'],
      ...['redis-sentinel://a:x/g', 'redis-sentinel://a/g/x', 'redis-sentinel://a/g?password=x'],
      ...['redis-sentinel://u:%zz@a/g', 'redis-sentinel://a/g h', 'sentinel://a/g'],
    ]) {
      expect(isRedisUrl(wrong), wrong).toBe(false);
      expect(() => Connection.open(wrong), wrong).toThrow(/redis-sentinel:\/\/host,host\/NAME/);
    }
  });

  it('shows no password when it is refused', () => {
    const wrong = 'redis-sentinel://u:secret@a/g/x?sentinelPassword=secret';
    expect(() => Connection.open(wrong)).toThrow(expect.not.stringContaining('secret'));
    const others = ['redis-sentinel://u:the/secret@a', 'redis://u:sec/ret@a:x,redis://:sec/ret@b'];
    for (const other of others)
      expect(() => Connection.open(other)).toThrow(expect.not.stringMatching(/secret|ret@/));
  });
});

/** A URL with a password, and with mistakes that people make: parts are missing, doubled or at a wrong place. */
const malformed = fc
  .record({
    scheme: fc.constantFrom(
      ...['', 'redis:', 'redis:/', 'redis://', 'Redis://', 'rediss://', 'redis-sentinel://'],
      ...['redis://redis://', 'http://', 'unix://', 'unix:///', '/', '//', '"redis://', 'tcp://'],
    ),
    user: fc.constantFrom('', 'me', 'a:b', 'x@y'),
    secret: fc
      .tuple(
        fc.string({ unit: 'grapheme-ascii', maxLength: 8 }),
        fc.constantFrom('', '%', '@', '/', ' '),
      )
      .map(([more, mark]) => `${more}${mark}s3cret`),
    at: fc.constantFrom('@', '@', '@@', '%40', '', ' @'),
    rest: fc.constantFrom(
      ...[
        'host',
        'host:6379/x',
        'host:99999',
        ':6379',
        '',
        'h:1/0,redis://:s3cret@',
        'a,b/',
        '[::1',
      ],
      ...['host?db=x', 'h/g?sentinelPassword=s3cret&x=1', 'host:port/0', 'host 6379'],
    ),
  })
  .map(({ scheme, user, secret, at, rest }) => `${scheme}${user}:${secret}${at}${rest}`);

it('with a mistake shows its password in no error, whatever the mistake is', async () => {
  let refused = 0;
  fc.assert(
    fc.property(malformed, (url) => {
      for (const input of [url, [url], { nodes: url }, { pass: url }]) {
        try {
          Connection.open(input as never);
        } catch (error) {
          refused += 1;
          expect(inspect(error, { depth: 5 }).replace(/\n {4}at .*/g, '')).not.toContain('s3cret');
          expect(JSON.stringify(error)).not.toContain('s3cret');
          continue;
        }
        // Accepted: then it is no path, which each error of the connection would name.
        expect(url).not.toMatch(/^(unix:|\/).*s3cret.*@/);
      }
    }),
    { numRuns: 500 },
  );
  expect(refused).toBeGreaterThan(1_000);
});

it('of nodes of a cluster names IPv6 addresses as they are connected to', () => {
  const { client } = Connection.open('redis://[::1]:7001,redis://[2001:db8::5]');
  expect(client).toMatchObject({
    startupNodes: [
      { host: '::1', port: 7_001 },
      { host: '2001:db8::5', port: 6_379 },
    ],
  });
});

it('with a percent sign that begins no encoding says so, and shows no password', () => {
  for (const url of ['redis://:50%off@cache', 'redis://a%:p@cache:1,redis://cache:2'])
    expect(() => Connection.open(url), url).toThrow(
      expect.objectContaining({
        field: 'redis',
        message: expect.stringMatching(
          /^(?!.*50%off).*with user and password %-encoded: % as %25$/,
        ),
      }),
    );
  const { client } = Connection.open('redis://:50%25off@127.0.0.1:1');
  expect(client.options).toMatchObject({ password: '50%off' });
  client.disconnect();
});

it('of a cluster is refused if a node has other credentials, another scheme, or options', () => {
  const first = 'redis://me:secret@a:1';
  for (const other of [
    ...['redis://me:secret2@b', 'redis://other:secret@b', 'redis://:secret@b', 'rediss://b'],
    ...['redis://b?family=6', 'redis://b?password=secret2', 'rediss://me:secret@b'],
  ]) {
    const open = () => Connection.open(`${first},${other}`);
    expect(open, other).toThrow(InvalidOptionError);
    expect(open, other).toThrow(/as URLs of a cluster one scheme and no options/);
    expect(open, other).toThrow(expect.not.stringContaining('secret'));
  }
  expect(() => Connection.open('redis://a,redis://:secret@b')).toThrow(/user and password of the/);
  for (const other of [
    'redis://b',
    first,
    'redis://me:%73ecret@b',
    'redis://b/0',
    'redis://b?db=0',
  ])
    expect(() => Connection.open(`${first},${other}`).cut(), other).not.toThrow();
});

it('with a port that there is none of says so', () => {
  const urls = ['redis://127.0.0.1:99999', 'rediss://:p@a:65536/1', 'redis://[::1]:70000?db=1'];
  for (const url of [...urls, 'redis://a:x', 'redis://a:1,redis://b:99999', 'redis://u:p:w@a:1x'])
    expect(() => Connection.open(url), url).toThrow(/as port a whole number up to 65535$/);
  for (const url of ['redis://a:65535', 'redis://[::1]', 'redis://u:99999@a', 'redis://u:x/y@a'])
    expect(() => Connection.open(url), url).not.toThrow(/as port/);
});

describe('a db', () => {
  it('that is no number is refused before anything connects', () => {
    const wrong = ['abc', '-1', '1.5', '1e3', '0/x', 'NaN', '%31'];
    const urls = wrong.map((db) => `redis://localhost:1/${db}`);
    const others = ['unix:///tmp/x.sock?db=abc', '/tmp/x.sock?db=-1', 'redis://a?db=x'];
    for (const url of [...urls, ...others, 'redis://a/1,redis://b/1', 'redis://a,redis://b/x']) {
      expect(isRedisUrl(url), url).toBe(false);
      expect(() => Connection.open(url), url).toThrow(/as db a whole number/);
    }
    for (const db of [...wrong, Number.NaN, -1, 1.5, null, {}]) {
      const options = { host: 'localhost', db: db as number };
      expect(() => Connection.open(options), String(db)).toThrow(/^redis\.db: .*whole number/);
    }
  });

  it('that is one is taken', () => {
    const urls = ['redis://a/3', 'redis://a?db=3', 'unix:///tmp/x?db=3', 'redis://:p%2Fx@a/3/'];
    for (const url of urls)
      expect(Connection.open(url).client.options, url).toMatchObject({ db: 3 });
    expect(Connection.open({ db: 3 }).client.options).toMatchObject({ db: 3 });
    for (const url of ['redis://a/', 'redis://a', 'redis://a/0,redis://b', '/tmp/x'])
      expect(() => Connection.open(url), url).not.toThrow();
  });
});

it('options that ioredis would not read, so that it went to localhost, are refused', () => {
  for (const name of ['hosst', 'hots', 'Host', 'prot', 'ports', 'pasword', 'hostname', 'url']) {
    const options = { [name]: 'secret' };
    const thrown = (() => {
      try {
        Connection.open(options);
      } catch (error) {
        return error as Error;
      }
      return undefined;
    })();
    expect(thrown, name).toMatchObject({ code: 'INVALID_OPTION', field: `redis.${name}` });
    expect(thrown?.message).not.toContain('secret');
  }
  const known = {
    host: 'a',
    port: 1,
    path: undefined,
    family: 4,
    role: 'slave',
    name: 'x',
  } as const;
  expect(() => Connection.open(known)).not.toThrow();
});

it('clients of other libraries are refused, and not asked', () => {
  const [duplicate, sendCommand, evalSha, connect] = [() => {}, () => {}, () => {}, () => {}];
  const url = 'redis://:secret@a';
  for (const client of [{ duplicate, evalSha, url }, { sendCommand, connect, url }, { connect }]) {
    const open = () => Connection.open(client as object);
    expect(open).toThrow(/a client of another library.*an ioredis client/);
    expect(open).toThrow(expect.not.stringContaining('secret'));
  }
});

describe('a URL of Valkey', () => {
  it.each([
    'redis://u:p@h:1/2',
    'rediss://h',
    'redis://u:p@a:1,redis://b:2',
    'rediss://a,rediss://b',
    'redis-sentinel://u:p@a,b/g/3',
    'rediss-sentinel://a/g',
  ])('means what %s means', (url) => {
    const valkey = url.replaceAll('redis', 'valkey');
    expect(isRedisUrl(valkey)).toBe(true);
    const [known, same] = [url, valkey].map((text) => {
      const { client } = Connection.open(text);
      const { Connector: _, ...options } = client.options as { Connector?: unknown };
      client.disconnect();
      return { kind: client.constructor.name, options: inspect(options, { depth: 5 }) };
    });
    expect(same).toEqual(known);
  });

  it('is refused as that of Redis would be', () => {
    for (const wrong of [
      'valkey:',
      'valkey://h/x',
      'valkeys://h:99999',
      'valkeyss://h',
      'xvalkey://h',
    ])
      expect(() => Connection.open(wrong), wrong).toThrow(InvalidOptionError);
  });
});
