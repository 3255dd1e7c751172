import { Connection, isRedisUrl, sentinelsOf } from '@piecework/protocol';
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

it('of nodes of a cluster names IPv6 addresses as they are connected to', () => {
  const { client } = Connection.open('redis://[::1]:7001,redis://[2001:db8::5]');
  expect(client).toMatchObject({
    startupNodes: [
      { host: '::1', port: 7_001 },
      { host: '2001:db8::5', port: 6_379 },
    ],
  });
});
