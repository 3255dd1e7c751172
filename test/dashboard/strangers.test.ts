/**
 * The dashboard as strangers and greedy visitors find it: who is let in, what each answer says, and what is left for
 * others.
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import {
  type DashboardOptions,
  dashboard,
  type ServeOptions,
  serveDashboard,
} from '@piecework/dashboard';
import fc from 'fast-check';
import { fastify } from 'fastify';
import { Piecework } from 'piecework';
import { describe, expect, it, onTestFinished } from 'vitest';
import { clientErrorHandler } from '../../packages/dashboard/dist/security/client-errors.js';
import { compared } from '../../packages/dashboard/dist/security/credentials.js';
import { Addresses, Privacy } from '../../packages/views/dist/data/private.js';
import { QueueSource } from '../../packages/views/dist/data/queue-source.js';
import type { Query } from '../../packages/views/dist/data/search.js';
import { freshName } from '../support/given.js';
import { testUrl } from '../support/redis.js';
import { until } from '../support/until.js';

const TOKEN = 'a-token-of-more-than-16';
const basic = (name: string, password: string) => `Basic ${btoa(`${name}:${password}`)}`;

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Also with headers that `fetch` does not send, such as another `Host`. */
async function ask(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  { method = 'GET', body = '' } = {},
): Promise<Answer> {
  const asked = request(url, { method, headers, agent: false });
  asked.end(body);
  const [answer] = await once(asked, 'response');
  let text = '';
  for await (const part of answer) text += part;
  return { status: answer.statusCode, headers: answer.headers, body: text };
}

async function served(options: Partial<ServeOptions> = {}): Promise<string> {
  const one = await serveDashboard({ redis: await testUrl(), port: 0, token: TOKEN, ...options });
  onTestFinished(() => one.close());
  return one.url;
}

const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status);
const countOf = (status: number, answers: readonly Answer[]) =>
  statuses(answers).filter((one) => one === status).length;

describe('who is let in', () => {
  it('who has signed in, however many others guess; this machine is one visitor', async () => {
    const url = `${await served({ trustProxy: ['loopback'] })}api/shell`;
    const from = (address: string, token: string) =>
      ask(url, { authorization: `Bearer ${token}`, 'x-forwarded-for': address });
    expect((await from('192.0.2.1', TOKEN)).status).toBe(200);
    const here = await Promise.all(
      Array.from({ length: 35 }, (_, i) => from(`127.0.${i}.1`, `here-${i}`)),
    );
    expect([countOf(401, here), countOf(429, here)]).toEqual([30, 5]);
    expect((await from('127.9.9.9', TOKEN)).status).toBe(200);
    for (let i = 0; i < 1_100; i += 100)
      await Promise.all(
        Array.from({ length: 100 }, (_, k) =>
          from(`198.51.${(i + k) % 250}.${i / 100}`, `${i + k}`),
        ),
      );
    expect((await from('127.9.9.9', TOKEN)).status).toBe(200);
  });

  it('everybody who has the right token, as often as they ask; only wrong ones count', async () => {
    const url = `${await served()}api/shell`;
    const many = Array.from({ length: 40 }, (_, i) => i);
    for (const i of many) {
      expect((await ask(url, { authorization: `Bearer ${TOKEN}` })).status).toBe(200);
      expect((await ask(url, { authorization: basic(`user${i}`, TOKEN) })).status).toBe(200);
      // A page with an old password repeats it; that is one guess.
      expect((await ask(url, { authorization: basic('old', 'password') })).status).toBe(401);
    }
    const guesses = await Promise.all(many.map((i) => ask(url, { authorization: `Bearer ${i}` })));
    expect([countOf(401, guesses), countOf(429, guesses)]).toEqual([29, 11]);
    const refused = await ask(url, { authorization: 'Bearer 41' });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(refused.body).toContain('Too many wrong passwords from this address; wait a minute.');
    expect((await ask(url, { authorization: `Bearer ${TOKEN}` })).status).toBe(200);
  });

  it('nobody who guesses passwords of a file by many requests at one time', async () => {
    const url = await served({
      token: undefined,
      users: `ann:$2b$04$hKn73GJbLyBptsuZOi3qdeXD7x2ZBznMvmhHPNMHvYCnZhSHgSfti`,
    });
    const guesses = await Promise.all(
      Array.from({ length: 60 }, (_, i) => ask(url, { authorization: basic('ann', `${i}`) })),
    );
    expect([countOf(401, guesses), countOf(429, guesses)]).toEqual([30, 30]);
  });

  it('a visitor counts by the address that a trusted proxy names, not by one of his own choice', async () => {
    const guess = (url: string, i: number, forwarded: string) =>
      ask(url, { authorization: basic('ann', `${i}`), 'x-forwarded-for': forwarded });
    const guesses = (url: string, forwarded: (i: number) => string) =>
      Promise.all(Array.from({ length: 40 }, (_, i) => guess(url, i, forwarded(i))));
    const behind = await served({ trustProxy: ['loopback'] });
    expect(countOf(429, await guesses(behind, (i) => `198.51.100.${i}, 192.0.2.7`))).toBe(10);
    expect((await guess(behind, 99, '192.0.2.8')).status).toBe(401);
    const direct = await served();
    expect(countOf(429, await guesses(direct, (i) => `198.51.100.${i}`))).toBe(10);
    // Whom to trust is said by address, so nobody trusts everybody by mistake.
    await expect(served({ trustProxy: true as never })).rejects.toThrow('must be a list');
    for (const wrong of ['proxy', '1', '', '10.0.0.0/33', '10.0.0.0/x'])
      await expect(served({ trustProxy: [wrong] }), wrong).rejects.toThrow('is not allowed');
  });

  it('names that exist cost the same work as names that do not', () => {
    const hash = (cost: string) => `$2b$${cost}$${'x'.repeat(53)}`;
    const users = new Map([
      ['ann', hash('05')],
      ['ben', hash('10')],
      ['cat', hash('12')],
    ]);
    const work = (name: string) =>
      compared(users, name).reduce((sum, one) => sum + 2 ** Number(one.slice(4, 6)), 0);
    expect(['ann', 'ben', 'cat', 'nobody'].map(work)).toEqual(Array(4).fill(2 ** 12));
    expect(['ann', 'ben'].map((name) => compared(users, name)[0])).toEqual([
      hash('05'),
      hash('10'),
    ]);
    expect(compared(new Map([['ann', hash('05')]]), 'nobody')).toEqual([
      expect.stringMatching(/^\$2b\$05\$/),
    ]);
  });

  it('by --insecure nobody whom a proxy of this machine passes on', async () => {
    const url = await served({ token: undefined, insecure: true });
    expect((await ask(url)).status).toBe(200);
    for (const headers of [
      { 'x-forwarded-for': '192.0.2.7' },
      { 'x-forwarded-host': 'dash.example' },
      { forwarded: 'for=192.0.2.7' },
      { 'x-real-ip': '192.0.2.7' },
      { via: '1.1 proxy' },
      { host: 'dash.example' },
    ]) {
      const { status, body } = await ask(url, headers as never);
      expect([status, body], JSON.stringify(headers)).toEqual([403, expect.any(String)]);
    }
    // nginx, when nobody has configured what it passes on.
    const { port } = new URL(url);
    expect(await raw(port, `GET / HTTP/1.0\r\nHost: 127.0.0.1:${port}\r\n\r\n`)).toMatch(/ 403 /);
  });

  it('only by an IP address, localhost, or a name of the operator: no page of a rebound name', async () => {
    const url = await served({ hosts: ['dash.example'], trustProxy: ['127.0.0.1'] });
    const by = async (host: string, more: Record<string, string> = {}) =>
      (await ask(url, { host, authorization: `Bearer ${TOKEN}`, ...more })).status;
    for (const host of ['localhost', 'LOCALHOST:80', '127.0.0.1:4000', '[::1]:4000', '192.0.2.7'])
      expect(await by(host), host).toBe(200);
    expect(await by('Dash.example:443')).toBe(200);
    expect(await by('127.0.0.1', { 'x-forwarded-host': 'dash.example' })).toBe(200);
    for (const host of ['evil.example', 'dash.example.evil.example', 'localhost.evil.example'])
      expect(await by(host), host).toBe(421);
    expect(await by('127.0.0.1', { 'x-forwarded-host': 'evil.example' })).toBe(421);
    // It does not even learn whether a token is right.
    expect((await ask(url, { host: 'evil.example', authorization: 'Bearer x' })).status).toBe(421);
  });

  it.each<[unknown, number]>([
    [true, 500],
    [{}, 500],
    [{ name: '' }, 500],
    [{ name: 7 }, 500],
    [{ name: 'ann', control: 'no' }, 500],
    [{ name: 'ann' }, 200],
    [null, 401],
    [false, 401],
  ])('nobody without a name: authorize returns %j', async (visitor, status) => {
    const { app, lines } = await plugin({ authorize: (() => visitor) as never });
    expect((await app.inject('/api/shell')).statusCode).toBe(status);
    const said = lines.some((line) => line.includes('authorize must return { name, control }'));
    expect(said).toBe(status === 500);
  });
});

async function plugin(options: Partial<DashboardOptions>) {
  const lines: string[] = [];
  const stream = { write: (line: string) => void lines.push(line) };
  const app = fastify({ logger: { level: 'info', stream } });
  onTestFinished(() => app.close());
  const queue = freshName('dash');
  const redis = await testUrl();
  await app.register(dashboard, { redis, queues: [{ name: queue }], ...options });
  return { app, lines, queue, redis };
}

/** What a server answers to these bytes, up to the end of the connection. */
async function raw(
  port: string | number,
  bytes: string | Uint8Array,
  send = (socket: Socket) => void socket.write(bytes),
): Promise<string> {
  const socket = connect(Number(port), '127.0.0.1');
  // A reset is an answer, too.
  socket.on('error', () => {});
  // An answer that never comes fails the test instead of holding it up.
  socket.setTimeout(5_000, () => socket.destroy());
  send(socket);
  let text = '';
  socket.setEncoding('utf8').on('data', (part) => {
    text += part;
  });
  await new Promise((resolve) => socket.once('close', resolve));
  return text;
}

describe('an answer of any status', () => {
  it('has the same security headers, and the words of its own reason', async () => {
    const url = await served({ allowControl: true });
    const authorization = `Bearer ${TOKEN}`;
    const json = { authorization, 'content-type': 'application/json' };
    const post = { method: 'POST' };
    const answers: [string, number, Promise<Answer>][] = [
      ['Sign in first.', 401, ask(url)],
      ['Wrong name or password.', 401, ask(url, { authorization: 'Bearer wrong' })],
      ['There is no such page.', 404, ask(`${url}none`, { authorization })],
      ['There is no such page.', 404, ask(url, { authorization }, { method: 'OPTIONS' })],
      ['cannot read this request', 400, ask(`${url}%zz`, { authorization })],
      ['not known by the name', 421, ask(url, { authorization, host: 'evil.example' })],
      ['The address is too long.', 414, ask(`${url}?${'x'.repeat(5_000)}`, { authorization })],
      ['Send JSON.', 415, ask(`${url}api/check`, { authorization }, { ...post, body: 'x' })],
      ['cannot read this', 400, ask(`${url}api/check`, json, { ...post, body: '{' })],
      [
        'The body of the request is too large.',
        413,
        ask(`${url}api/check`, json, { ...post, body: `"${'x'.repeat(70_000)}"` }),
      ],
      ['headers of the request are too large', 431, ask(url, { x: 'x'.repeat(20_000) })],
    ];
    for (const [words, status, asked] of answers) {
      const { headers, body, ...got } = await asked;
      expect([got.status, body], words).toEqual([status, expect.stringContaining(words)]);
      expect(JSON.parse(body)).toEqual({
        error: { code: 'REFUSED', message: expect.stringContaining(words) },
      });
      expect(headers, words).toMatchObject({
        'content-security-policy': expect.stringContaining("default-src 'none'"),
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
      });
    }
    const { port } = new URL(url);
    for (const bytes of ['nonsense\r\n\r\n', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n'])
      expect(await raw(port, bytes), bytes).toMatch(
        /^HTTP\/1\.1 4(00|21) .*no-store.*content-security-policy: default-src 'none'/is,
      );
  });
});

describe('bytes that are no request', () => {
  const HEAD = `GET /api/shell HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKEN}\r\n`;
  const POST = `${HEAD.replace('GET', 'POST')}Content-Type: application/json\r\n`;
  const alive = async (url: string) =>
    expect((await ask(`${url}api/shell`, { authorization: `Bearer ${TOKEN}` })).status).toBe(200);

  it.for([
    ['behind a request of a stranger', 'GET / HTTP/1.1\r\nHost: x\r\n\r\nGARBAGE\r\n\r\n'],
    ['behind a request that is answered', `${HEAD}\r\nGARBAGE\r\n\r\n`],
    ['behind several requests', `${HEAD}\r\n${HEAD}\r\nGARBAGE\r\n\r\nGARBAGE\r\n\r\n`],
    ['in an upload by chunks', `${POST}Transfer-Encoding: chunked\r\n\r\nGARBAGE\r\n\r\n`],
    ['as headers that are too large', `${HEAD}\r\nGET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n`],
  ])('%s close their connection, and the dashboard answers others', async ([, bytes = '']) => {
    const url = await served();
    await raw(new URL(url).port, bytes);
    await alive(url);
  });

  it('in an upload that is closed half-way do, too', async () => {
    const url = await served();
    await raw(new URL(url).port, '', (socket) => {
      socket.end(`${POST}Content-Length: 30000\r\n\r\n{`);
    });
    await alive(url);
  });

  it('that come too slowly get a 408, unless their answer has begun', async () => {
    const server = createServer({ requestTimeout: 50, connectionsCheckingInterval: 10 });
    onTestFinished(() => void server.close());
    server.on('clientError', clientErrorHandler);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    expect(await raw(port, 'GET / HTTP/1.1\r\nHost: x\r\n')).toMatch(
      /^HTTP\/1\.1 408 .*too slowly/s,
    );
    // Its headers were read, so that its answer is under way.
    expect(await raw(port, `${POST}Content-Length: 9\r\n\r\n{`)).toBe('');
  });

  it('of any kind leave the dashboard as it was', async () => {
    const url = await served();
    const { port } = new URL(url);
    const piece = fc.oneof(
      fc.constantFrom(HEAD, POST, 'GET / HTTP/1.1\r\n', 'Host: x\r\n', '\r\n', '\r\n\r\n', '{'),
      fc.constantFrom(
        'Content-Length: 5\r\n',
        'Transfer-Encoding: chunked\r\n',
        '5\r\nab',
        '0\r\n\r\n',
      ),
      fc.constantFrom(
        'Expect: 100-continue\r\n',
        'Upgrade: x\r\nConnection: Upgrade\r\n',
        'CONNECT a:1 HTTP/1.1\r\n',
      ),
      fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(piece, { maxLength: 8 }), { maxLength: 4 }),
        async (parts) => {
          await raw(port, '', (socket) => {
            for (const part of parts) socket.write(Buffer.from(part.join(''), 'latin1'));
            socket.end();
          });
        },
      ),
      { numRuns: 200 },
    );
    await alive(url);
  });
});

it('has the headers of the dashboard also where the application sets other ones', async () => {
  const app = fastify();
  onTestFinished(() => app.close());
  app.addHook('onRequest', async (_, reply) => {
    reply.raw.setHeader('content-security-policy', "default-src 'self'");
  });
  await app.register(dashboard, { redis: await testUrl(), authorize: () => undefined });
  const { statusCode, headers } = await app.inject('/');
  expect([statusCode, headers['content-security-policy']]).toEqual([
    401,
    expect.stringContaining("default-src 'none'"),
  ]);
});

describe('one viewer', () => {
  it('leaves room for others: pages, and searches', async () => {
    const { app, queue } = await plugin({
      authorize: ({ headers }) => ({ name: String(headers.authorization) }),
    });
    await app.listen({ port: 0, host: '127.0.0.1' });
    const { port } = app.server.address() as { port: number };
    const open = (authorization: string, view: string, text = '') => {
      const query = new URLSearchParams({ queue, view, ...(text ? { text } : {}) });
      const url = `http://127.0.0.1:${port}/api/events?${query}`;
      const asked = request(url, { headers: { authorization }, agent: false });
      asked.on('error', () => {});
      asked.end();
      return once(asked, 'response').then(([answer]) => ({
        status: answer.statusCode as number,
        close: () => asked.destroy(),
      }));
    };
    const many = (n: number, of: (i: number) => ReturnType<typeof open>) =>
      Promise.all(Array.from({ length: n }, (_, i) => of(i)));
    const searches = await many(40, (i) => open('eve', 'requests', `text ${i}`));
    expect(searches.filter(({ status }) => status === 200)).toHaveLength(5);
    const pages = await many(100, () => open('eve', 'workers'));
    expect(pages.filter(({ status }) => status === 200)).toHaveLength(15);
    expect(pages.at(-1)?.status).toBe(429);
    const other = await open('ann', 'requests', 'text');
    expect(other.status).toBe(200);
    // What is closed is free again.
    for (const { close } of [...searches, ...pages]) close();
    await until(async () => {
      const again = await open('eve', 'requests', 'again');
      again.close();
      return again.status === 200;
    });
    other.close();
  });

  it('who knows the token and signs in by many names is one viewer', async () => {
    const url = await served();
    const open = async (name: string) => {
      const asked = request(`${url}api/events?view=workers&queue=req`, {
        headers: { authorization: basic(name, TOKEN) },
        agent: false,
      });
      asked.on('error', () => {});
      asked.end();
      const [answer] = await once(asked, 'response');
      onTestFinished(() => void asked.destroy());
      return answer.statusCode as number;
    };
    const opened: number[] = [];
    for (let i = 0; i < 22; i++) opened.push(await open(`name${i}`));
    expect(opened.filter((status) => status === 200)).toHaveLength(20);
  });

  it('and her searches are computed one by one, and others are answered in between', async () => {
    const redis = await testUrl();
    const queue = freshName('dash');
    const pw = new Piecework({ redis, queue });
    const { id } = await pw.submit([1], { id: freshName('r') });
    const source = new QueueSource(
      redis,
      { name: queue },
      new Privacy({}),
      new Addresses(),
      () => {},
    );
    onTestFinished(async () => {
      await source.close();
      await pw.admin.drop(id);
      await pw.close();
    });
    const query: Query = {
      text: '',
      state: 'any',
      priorityFrom: 0,
      priorityTo: 99,
      olderThanMs: 0,
      youngerThanMs: 0,
      sort: 'total',
      descending: true,
      page: 1,
      size: 50,
    };
    await source.requests(query);
    let others = 0;
    let next = setImmediate(function answer() {
      others += 1;
      next = setImmediate(answer);
    });
    const after = await Promise.all(
      Array.from({ length: 5 }, () => source.requests(query).then(() => others)),
    );
    clearImmediate(next);
    expect(new Set(after).size).toBe(5);
  });
});
