/**
 * The dashboard as its visitors and their attackers see it: by HTTP, on a real Redis.
 */
import { type DashboardOptions, dashboard, serveDashboard } from '@piecework/dashboard';
import { shardOf } from '@piecework/protocol';
import { type FastifyInstance, fastify, type InjectOptions } from 'fastify';
import { Redis } from 'ioredis';
import { IdQueue, Piecework, RetryQueue, Worker } from 'piecework';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { ChartNews } from '../../packages/dashboard/dist/data/chart-news.js';
import { Rounds } from '../../packages/dashboard/dist/data/rounds.js';
import { sum, verdictsOf } from '../../packages/views/dist/data/overview.js';
import { Addresses, Privacy } from '../../packages/views/dist/data/private.js';
import { RequestIndex } from '../../packages/views/dist/data/request-index.js';
import { keptRow } from '../../packages/views/dist/data/row.js';
import type { Chart } from '../../packages/views/dist/data/samples.js';
import { search } from '../../packages/views/dist/data/search.js';
import { workersView } from '../../packages/views/dist/data/workers.js';
import { endsAt, timeLeft } from '../../packages/views/dist/shape/format.js';
import type {
  BesideView,
  ChartView,
  OverviewView,
  Point,
  RequestsView,
  RequestView,
  ResultsPage,
} from '../../packages/views/dist/shape/views.js';
import { Log } from '../support/flow.js';
import { freshName } from '../support/given.js';
import { testUrl } from '../support/redis.js';
import { until } from '../support/until.js';

const ends: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

/** A worker that logs nothing here, and has no renewal thread. */
const quietly = { maxBlockMs: 0, logger: new Log() as never };

interface Line {
  readonly msg?: string;
  readonly [field: string]: unknown;
}

const signedIn = { authorization: 'ann' };
const authorize: DashboardOptions['authorize'] = ({ headers }) =>
  headers.authorization === 'ann'
    ? { name: 'ann' }
    : headers.authorization === 'guest'
      ? { name: 'guest', control: false }
      : undefined;

const noWorkers = { at: 0, workers: [], fleet: { slots: 0, busy: 0, stuck: 0 } };

/** What the overview adds up of a request that waits for something. */
function waitingRow(id: string, waitingFor: string, task = '') {
  const counts = { ready: 1, running: 0, delayed: 0, succeeded: 0, failed: 0, cancelled: 0 };
  return {
    ...{ id, waitingFor, task, status: 'sealed', priority: 50, rate: 0 },
    ...{ createdAt: 1, heldUntil: 0, limit: null, counts: { ...counts, total: 1 } },
  };
}

/** A client that notes its commands: 'hlen open' for the key `{<queue>}:open`. */
class Noting extends Redis {
  readonly seen: string[] = [];

  override sendCommand(
    ...[command, stream]: Parameters<Redis['sendCommand']>
  ): ReturnType<Redis['sendCommand']> {
    const key = String(command.args[0]);
    if (key.startsWith('{')) this.seen.push(`${command.name} ${key.split(':').at(-1)}`);
    return super.sendCommand(command, stream);
  }
}

/** An application with the dashboard below a prefix, on a queue of its own. */
async function given(options: Partial<DashboardOptions> = {}) {
  const redis = await testUrl();
  const queue = freshName('dash');
  const lines: Line[] = [];
  const stream = { write: (line: string) => void lines.push(JSON.parse(line) as Line) };
  const app: FastifyInstance = fastify({ logger: { level: 'info', stream } });
  await app.register(dashboard, {
    ...{ prefix: '/pw', redis, authorize, queues: [{ name: queue }] },
    ...options,
  } as DashboardOptions & { prefix: string });
  await app.ready();
  const pw = new Piecework({ redis, queue });
  const ids: string[] = [];
  ends.push(async () => {
    await app.close();
    for (const id of ids) await pw.admin.drop(id).catch(() => {});
    await pw.close();
  });
  const submit = async (items: readonly unknown[], more: object = {}) => {
    const request = await pw.submit(items, { id: freshName('r'), ...more });
    ids.push(request.id);
    return request;
  };
  const get = (path: string, query: Record<string, string> = {}, headers: object = signedIn) =>
    app.inject({ url: `/pw/${path}`, query, headers } as InjectOptions);
  const post = (path: string, body: unknown, headers: object = {}) =>
    app.inject({
      method: 'POST',
      url: `/pw/${path}`,
      payload: typeof body === 'string' ? body : JSON.stringify(body),
      headers: {
        ...{ ...signedIn, host: 'dash.example', origin: 'http://dash.example' },
        ...{ 'content-type': 'application/json', ...headers },
      },
    } as InjectOptions);
  /** The first value of a view, by the stream of events. */
  const view = async <T>(params: Record<string, string>): Promise<T> => {
    const stream = await openStream(app, { queue, ...params });
    try {
      return (await stream.next()) as T;
    } finally {
      stream.close();
    }
  };
  return { app, redis, queue, pw, lines, submit, get, post, view };
}

interface OpenStream {
  /** The next value; what comes of charts before it is in `charts`. */
  next(): Promise<unknown>;
  readonly charts: readonly ChartView[];
  close(): void;
}

async function openStream(
  app: FastifyInstance,
  params: Record<string, string>,
): Promise<OpenStream> {
  if (!app.server.listening) await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as { port: number };
  const ending = new AbortController();
  const query = new URLSearchParams(params);
  const url = `http://127.0.0.1:${port}/pw/api/events?${query}`;
  const response = await fetch(url, { headers: signedIn, signal: ending.signal });
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const charts: ChartView[] = [];
  return {
    charts,
    close: () => ending.abort(),
    next: async () => {
      for (;;) {
        const found = /event: (\w+)\ndata: (.*)\n\n/.exec(text);
        if (found) {
          text = text.slice(found.index + found[0].length);
          const value = JSON.parse(found[2] as string);
          if (found[1] !== 'chart') return value;
          charts.push(value);
          continue;
        }
        const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
        if (done) throw new Error('the stream has ended');
        text += value;
      }
    },
  };
}

describe('who may look', () => {
  it('refuses to start without authorize, unless it is told to be insecure', async () => {
    const redis = await testUrl();
    const start = async (options: object) => {
      const app = fastify();
      try {
        await app.register(dashboard, { redis, ...options } as DashboardOptions);
        await app.ready();
      } finally {
        await app.close();
      }
    };
    await expect(start({})).rejects.toThrow('give authorize, or insecure: true');
    await expect(start({ authorise: () => ({}) })).rejects.toThrow('there is no option authorise');
    await start({ insecure: true });
    // What it could only fail to read later is refused as well.
    await expect(start({ insecure: true, queues: ['req'] as never })).rejects.toThrow(
      "queues must name each queue like { name: 'req' }",
    );
    for (const wrong of [
      { redis: '127.0.0.1' },
      { queues: [{ name: 'a b' }] },
      { queues: [{ name: 'req', shards: 0 }] },
    ])
      await expect(start({ insecure: true, ...wrong })).rejects.toMatchObject({
        code: 'INVALID_OPTION',
      });
    const serve = (options: object) => serveDashboard({ redis, port: 0, ...options });
    await expect(serve({})).rejects.toThrow('give one of token, users, and insecure');
    await expect(serve({ insecure: true, host: '0.0.0.0' })).rejects.toThrow(
      'only for this machine',
    );
    await expect(serve({ token: 'short' })).rejects.toThrow('at least 16 characters');
    await expect(serve({ users: 'ann:secret' })).rejects.toThrow('line 1');
  });

  it('asks authorize before it answers anything, also for its assets and for what is not there', async () => {
    const { get, post, queue, lines } = await given();
    const paths = [
      '',
      'page.js',
      'page.css',
      'api/shell',
      'api/results',
      'api/nothing',
      'api/events',
    ];
    for (const path of paths)
      expect((await get(path, { view: 'overview', queue }, {})).statusCode, path).toBe(401);
    const refused = await post(
      'api/control/drop',
      { queue, id: 'x', typed: 'x' },
      { authorization: 'eve' },
    );
    expect(refused.statusCode).toBe(401);
    expect(lines.filter(({ msg }) => msg === 'dashboard: refused')).toHaveLength(paths.length + 1);
    expect((await get('')).statusCode).toBe(200);
  });

  it('lets only this machine in when it is insecure, and only by its own name', async () => {
    const { app } = await given({ authorize: undefined, insecure: true });
    const ask = (host: string, remoteAddress = '127.0.0.1') =>
      app
        .inject({ url: '/pw/', headers: { host }, remoteAddress })
        .then(({ statusCode }) => statusCode);
    expect(await ask('localhost:4000')).toBe(200);
    expect(await ask('127.0.0.1:4000')).toBe(200);
    expect(await ask('localhost:4000', '192.0.2.7')).toBe(403);
    // DNS rebinding: the page of another site, whose name leads to this machine.
    expect(await ask('evil.example:4000')).toBe(403);
    expect(await ask('localhost.evil.example')).toBe(403);
  });

  it('asks for the token or a password of the file, and bounds the attempts', async () => {
    const redis = await testUrl();
    const token = 'a-token-of-more-than-16';
    const served = await serveDashboard({ redis, port: 0, token });
    ends.push(() => served.close());
    const ask = async (authorization?: string) => {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
      return (await fetch(`${served.url}api/shell`, { headers })).status;
    };
    const basic = (name: string, password: string) => `Basic ${btoa(`${name}:${password}`)}`;
    const unknown = await fetch(served.url);
    expect([unknown.status, unknown.headers.get('www-authenticate')]).toEqual([
      401,
      'Basic realm="Piecework", charset="UTF-8"',
    ]);
    expect(await ask(basic('ann', token))).toBe(200);
    expect(await ask(`Bearer ${token}`)).toBe(200);
    for (const wrong of [
      basic('ann', 'wrong'),
      'Bearer wrong',
      'Basic !',
      'nonsense',
      basic('', ''),
    ])
      expect(await ask(wrong), wrong).toBe(401);
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) => ask(basic('ann', `guess ${i}`))),
    );
    expect(answers).toContain(429);
    // Whoever has signed in is not kept out by those who guess.
    expect(await ask(basic('ann', token))).toBe(200);

    const hash = '$2b$04$hKn73GJbLyBptsuZOi3qdeXD7x2ZBznMvmhHPNMHvYCnZhSHgSfti';
    const users = await serveDashboard({ redis, port: 0, users: `# people\nann:${hash}\n` });
    ends.push(() => users.close());
    const askUsers = async (name: string, password: string) =>
      (await fetch(users.url, { headers: { authorization: basic(name, password) } })).status;
    expect(await askUsers('ann', 'open sesame')).toBe(200);
    expect(await askUsers('ann', 'open sesam')).toBe(401);
    expect(await askUsers('bob', 'open sesame')).toBe(401);
  });
});

describe('an answer', () => {
  it('allows only scripts and styles that carry its nonce, which is another one each time', async () => {
    const { get } = await given();
    const [a, b] = [await get(''), await get('')];
    const nonceOf = (text: unknown) => /'nonce-([^']+)'/.exec(String(text))?.[1];
    const policy = String(a.headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(a.body).toContain(`nonce="${nonceOf(policy)}"`);
    expect(a.body).not.toMatch(/\son\w+=|style=|<script>/);
    expect(nonceOf(policy)).not.toBe(nonceOf(b.headers['content-security-policy']));
    expect(a.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    });
  });

  it('is only one of its two files, whatever the path says', async () => {
    const { app, get, lines } = await given();
    expect((await get('page.js')).headers['content-type']).toMatch('text/javascript');
    const paths = [
      ...['/pw/../package.json', '/pw/%2e%2e/package.json', '/pw/..%2f..%2fetc%2fpasswd'],
      ...['/pw/page.js/../../index.js', '/pw//etc/passwd', '/pw/page.js%00.css'],
    ];
    for (const url of paths) {
      const { statusCode, body } = await app.inject({ url, headers: signedIn });
      expect([statusCode, body.length < 200], url).toEqual([404, true]);
    }
    expect(lines.filter(({ status }) => status === 404).length).toBeGreaterThan(0);
    const long = await get('api/shell', { text: 'x'.repeat(5_000) });
    expect(long.statusCode).toBe(414);
  });

  it('refuses what is not allowed in a question, and names only the field', async () => {
    const { get, queue } = await given();
    const questions: Record<string, string>[] = [
      { view: 'nothing' },
      { view: 'requests', queue, size: '1000' },
      { view: 'requests', queue, text: 'x'.repeat(201) },
      { view: 'requests', queue, sort: 'constructor' },
      { view: 'requests', queue, page: '-1' },
      { view: 'request', queue, id: '' },
      { view: 'request', queue, id: 'x'.repeat(257) },
    ];
    for (const question of questions) {
      const { statusCode, json } = await get('api/events', question);
      expect([statusCode, json().error.code], JSON.stringify(question)).toEqual([400, 'REFUSED']);
    }
    expect((await get('api/events', { view: 'overview', queue: 'other' })).statusCode).toBe(404);
  });

  it('names no server, and neither its address nor its password', async () => {
    const redis = 'redis://admin:pa55word@127.0.0.1:1/0';
    const { get, queue, view, lines } = await given({ redis });
    const said = await view<{ code: string; message: string }>({ view: 'overview' });
    expect(said.code).toBe('REDIS');
    const failed = await get('api/failure', { queue, id: 'x', index: '0' });
    expect(failed.statusCode).toBe(503);
    for (const text of [JSON.stringify(said), failed.body])
      expect(text).not.toMatch(/pa55word|127\.0\.0\.1|admin/);
    // The log says why.
    expect(lines.some(({ msg }) => msg === 'dashboard: could not read')).toBe(true);
    expect(JSON.stringify(lines)).not.toContain('pa55word');
  });
});

describe('a change', () => {
  it('needs allowControl, and a visitor who may', async () => {
    const { post, submit, queue, get } = await given();
    const { id } = await submit([1, 2]);
    expect((await post('api/control/pause', { queue, id })).statusCode).toBe(403);
    expect((await get('api/shell')).json()).toMatchObject({ visitor: 'ann', control: false });
    const free = await given({ allowControl: true });
    const own = await free.submit([1, 2]);
    const body = { queue: free.queue, id: own.id };
    const guest = { authorization: 'guest' };
    expect((await free.post('api/control/pause', body, guest)).statusCode).toBe(403);
    expect((await free.post('api/control/pause', body)).statusCode).toBe(200);
    expect((await own.status()).waitingFor).toBe('resume');
  });

  it('cannot be sent by a page of another site, nor by a form or a link', async () => {
    const { app, post, submit, queue, lines } = await given({ allowControl: true });
    const request = await submit([1]);
    const { id } = request;
    const body = { queue, id };
    const refused = [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { origin: '' },
      { origin: 'http://dash.example.evil.example' },
      { origin: 'http://dash.example:81' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/x-www-form-urlencoded' },
      { 'content-type': 'text/plain;application/json' },
    ];
    for (const headers of refused) {
      const { statusCode } = await post('api/control/cancel', body, headers);
      expect([403, 415], JSON.stringify(headers)).toContain(statusCode);
    }
    const link = { url: `/pw/api/control/cancel?queue=${queue}&id=${id}`, headers: signedIn };
    expect((await app.inject(link)).statusCode).toBe(404);
    expect(lines.filter(({ msg }) => msg === 'dashboard: refused')).toHaveLength(
      refused.length + 1,
    );
    expect((await request.status()).status).toBe('sealed');
  });

  it('is one line in the log: who, what, and how it went', async () => {
    const { post, submit, queue, lines } = await given({ allowControl: true });
    const { id } = await submit([1, 2, 3]);
    const act = async (action: string, body: object = {}) =>
      (await post(`api/control/${action}`, { queue, id, ...body })).statusCode;
    expect(await act('update', { limit: 2, priority: 7 })).toBe(200);
    expect(await act('pause')).toBe(200);
    expect(await act('resume')).toBe(200);
    expect(await act('cancel')).toBe(200);
    expect(await act('pause')).toBe(409);
    expect(await act('drop', { typed: 'another' })).toBe(400);
    expect(await act('drop', { typed: id })).toBe(200);
    // Safe to repeat, for five minutes.
    expect(await act('drop', { typed: id })).toBe(200);
    expect(await act('cancel', { id: freshName('none') })).toBe(404);
    const audited = lines.filter(({ audit }) => audit === true);
    expect(audited.map(({ who, action, outcome }) => [who, action, outcome])).toEqual([
      ['ann', 'update', 'done'],
      ['ann', 'pause', 'done'],
      ['ann', 'resume', 'done'],
      ['ann', 'cancel', 'done'],
      ['ann', 'pause', 'ENDED'],
      ['ann', 'drop', 'done'],
      ['ann', 'drop', 'done'],
      ['ann', 'cancel', 'NOT_FOUND'],
    ]);
    expect(audited[0]).toMatchObject({ change: { queue, id, limit: 2, priority: 7 } });
  });

  it('is refused when it is too large or not as it should be', async () => {
    const { post, queue } = await given({ allowControl: true });
    const code = async (action: string, body: unknown) =>
      (await post(`api/control/${action}`, body)).statusCode;
    expect(await code('pause', { queue, id: 'x'.repeat(300) })).toBe(400);
    expect(await code('pause', '{"queue":')).toBe(400);
    expect(await code('pause', { queue, id: { toString: 'x' } })).toBe(400);
    expect(await code('update', { queue, id: 'x' })).toBe(400);
    expect(await code('update', { queue, id: 'x', limit: 0 })).toBe(400);
    expect(await code('redrive', { queue, id: 'x', indexes: Array(1_001).fill(1) })).toBe(400);
    expect(await code('pause', { queue, id: 'x', more: 'y'.repeat(40_000) })).toBe(413);
    expect(await code('nothing', { queue, id: 'x' })).toBe(404);
  });

  it('redrives all, one class or one index', async () => {
    const { post, submit, queue, redis } = await given({ allowControl: true });
    const handler = (n: unknown) => {
      throw n === 0 ? new RangeError('too far') : new TypeError('of another kind');
    };
    const worker = new Worker({ redis, queue, handler, ...quietly });
    await worker.start();
    const request = await submit([0, 1, 2]);
    const done = () => until(async () => (await request.status()).status === 'complete');
    for (const which of [{ name: 'RangeError' }, { indexes: [1, 2] }, {}]) {
      await done();
      const { body, statusCode } = await post('api/control/redrive', {
        queue,
        id: request.id,
        ...which,
      });
      expect(statusCode, body).toBe(200);
      const n = 'name' in which ? 1 : 'indexes' in which ? 2 : 3;
      expect(JSON.parse(body).done.redriven).toBe(n);
    }
    await done();
    await worker.close();
  });
});

describe('what is shown', () => {
  it('of one request: its options as submitted, and its generations', async () => {
    const { submit, view, queue, redis } = await given();
    let fails = true;
    const handler = () => {
      if (fails) throw new Error('not yet');
    };
    const request = await submit([1, 2], { limit: 5, attempts: 2, deadlineMs: 60_000 });
    await request.update({ limit: 3 });
    const worker = new Worker({ redis, queue, handler, ...quietly });
    await worker.start();
    await request.completion();
    fails = false;
    await request.redrive();
    await request.completion();
    await worker.close();
    const shown = await view<RequestView>({ view: 'request', id: request.id });
    expect(shown.row.limit).toBe(3);
    expect(shown.options).toMatchObject({ limit: 5, attempts: 2, deadlineMs: 60_000 });
    expect(shown.generations).toMatchObject([
      { outcome: 'failed', failed: 2, redriven: 0 },
      { outcome: 'succeeded', failed: 0, redriven: 2 },
    ]);
  });

  it('of what a worker read ahead: it waits, and does not run', async () => {
    const { submit, view, queue, redis } = await given();
    let [begun, quick] = [0, 40];
    const waiting: (() => void)[] = [];
    const handler = () =>
      begun++ < quick ? undefined : new Promise<void>((resolve) => void waiting.push(resolve));
    const goOn = (more: number) => {
      quick = begun + more;
      for (const resolve of waiting.splice(0)) resolve();
    };
    const worker = new Worker({ redis, queue, handler, ...quietly, concurrency: 2 });
    await worker.start();
    const request = await submit(Array.from({ length: 2_000 }, (_, n) => n));
    const shown = await until(async () => {
      const seen = await view<RequestView>({ view: 'request', id: request.id });
      if (waiting.length < 2) return false;
      if (seen.row.ahead > 0 && seen.row.counts.running === 2) return seen;
      // It reads ahead only if handlers are quick; on a busy machine these may not have been.
      goOn(40);
      return false;
    });
    const { counts } = shown.row;
    expect(counts.succeeded + counts.running + counts.ready).toBe(counts.total);
    expect(shown.running).toHaveLength(2);
    goOn(2_000);
    await request.completion();
    await worker.close();
  });

  it('of several queues: each by its name, one of several shards as a whole', async () => {
    const [whole, other] = [freshName('sharded'), freshName('other')];
    const { view, get, redis } = await given({
      queues: [{ name: whole, shards: 3 }, { name: other }],
    });
    expect((await get('api/shell')).json()).toMatchObject({ queues: [whole, other] });
    const ofAllShards = new Piecework({ redis, queue: whole, shards: 3 });
    const ofOther = new Piecework({ redis, queue: other });
    const requests = await Promise.all([
      ...Array.from({ length: 40 }, (_, n) => ofAllShards.submit([n], { id: freshName('r') })),
      ofOther.submit([1], { id: freshName('r') }),
    ]);
    const ids = requests.slice(0, 40).map(({ id }) => id);
    // On all three shards.
    expect(new Set(ids.map((id) => shardOf(id, 3))).size).toBe(3);
    const shown = async (queue: string) =>
      (await view<RequestsView>({ queue, view: 'requests', size: '50' })).rows.map(({ id }) => id);
    expect((await shown(whole)).sort()).toEqual(ids.sort());
    expect(await shown(other)).toEqual([requests[40]?.id]);
    expect((await view<OverviewView>({ queue: whole, view: 'overview' })).open).toBe(40);
    expect((await get('api/failure', { queue: 'none', id: 'x', index: '0' })).statusCode).toBe(404);
    for (const id of ids) await ofAllShards.admin.drop(id);
    await ofOther.admin.drop(requests[40]?.id as string);
    await Promise.all([ofAllShards.close(), ofOther.close()]);
  });

  it('of the queues beside requests: counts, what is due, the latest failures; it joins none', async () => {
    const name = freshName('beside');
    const { view, redis } = await given({
      beside: { retryQueues: [name], schedulers: [name], idQueues: [name] },
    });
    const retry = new RetryQueue({ redis, name });
    const n = 230;
    await Promise.all(
      Array.from({ length: n }, (_, i) => retry.put(i, { at: i, key: `item-${i}` })),
    );
    let left = n;
    for await (const item of retry.items({ demand: 50 })) {
      await item.discard(new Error(`no ${item.payload}`));
      left -= 1;
      if (left === 0) break;
    }
    const [retries, , absent] = (await view<BesideView>({ view: 'beside' })).queues;
    expect(retries?.counts.find(({ label }) => label === 'discarded')).toMatchObject({ n });
    expect(retries?.failures).toHaveLength(20);
    expect(retries?.failures[0]).toMatchObject({ key: 'item-229', message: 'Error: no 229' });
    expect(absent).toMatchObject({ kind: 'id queue', counts: [] });
    expect(absent?.problem).toContain('There is no queue of this name');
    const ids = await IdQueue.join(name, { redis });
    await ids.add(['a', 'b']);
    const pulled = await ids.pull();
    if (pulled.state === 'ready') await ids.fail(pulled.key, 'no a');
    await until(async () => {
      const [, , joined] = (await view<BesideView>({ view: 'beside' })).queues;
      return joined?.problem === '' && joined.failures[0]?.message === 'no a';
    });
    await ids.drop();
    await ids.close();
    await retry.drop();
    await retry.close();
  });

  it('of a chart: all points once, then only what is new', () => {
    const point = (at: number, running = 1) => {
      return { at, succeeded: 1, failed: 0, retried: 0, running, slots: 1 };
    };
    const points = Array.from({ length: 360 }, (_, n) => point(n * 10_000));
    let chart: Chart = { from: 'hour', intervalMs: 10_000, points };
    const news = new ChartNews(() => chart);
    const next = () => JSON.parse(news.next() ?? 'null') as ChartView | null;
    expect(next()).toMatchObject({ whole: true, begins: 0, points });
    expect(next()).toBeNull();
    const grown = point(358 * 10_000, 2);
    const fresh = point(360 * 10_000);
    chart = { ...chart, points: [...points.slice(1, 358), grown, points[359] as Point, fresh] };
    expect(next()).toEqual({
      ...{ from: 'hour', intervalMs: 10_000, whole: false, begins: 10_000 },
      points: [grown, fresh],
    });
    chart = { from: 'here', intervalMs: 1_000, points: [fresh] };
    expect(next()).toMatchObject({ whole: true, from: 'here', points: [fresh] });
  });

  it('of a payload, a result and a stack: nothing without leave, then what mask leaves of it', async () => {
    const hostile = '<img src=x onerror=alert(1)>';
    const run = async (options: Partial<DashboardOptions>) => {
      const { submit, get, queue, redis } = await given(options);
      const handler = (n: { secret: string; fails: boolean }) => {
        if (n.fails) throw new TypeError(`${hostile} ${n.secret}`);
        return { echoed: n.secret };
      };
      const worker = new Worker({ redis, queue, handler, ...quietly });
      await worker.start();
      const request = await submit([
        { secret: 'tango', fails: false },
        { secret: 'tango', fails: true },
      ]);
      await request.completion();
      await worker.close();
      const results = await get('api/results', { queue, id: request.id });
      const failure = await get('api/failure', { queue, id: request.id, index: '1' });
      return {
        results: results.json(),
        failure: failure.json(),
        text: results.body + failure.body,
      };
    };
    const hidden = await run({});
    expect(hidden.results.rows.map((row: { value: object }) => row.value)).toContainEqual({
      ...{ hidden: true, text: '', cut: false, about: 'object with 1 field, 18 bytes' },
    });
    expect(hidden.failure).toMatchObject({
      name: 'TypeError',
      payload: { hidden: true, text: '' },
    });
    expect(
      hidden.results.rows.map(({ value }: { value: object }) => JSON.stringify(value)).join(),
    ).not.toContain('tango');
    expect(JSON.stringify(hidden.failure.payload)).not.toContain('tango');
    const shown = await run({ showPayloads: true });
    expect(JSON.parse(shown.failure.payload.text)).toEqual({ secret: 'tango', fails: true });
    const mask: DashboardOptions['mask'] = (value, { kind }) =>
      kind === 'error' ? String(value).replaceAll('tango', '***') : { kind };
    const masked = await run({ showPayloads: true, mask });
    expect(masked.text).not.toContain('tango');
    expect(JSON.parse(masked.failure.payload.text)).toEqual({ kind: 'payload' });
    const broken = await run({
      showPayloads: true,
      mask: () => {
        throw new Error('no');
      },
    });
    expect(broken.text).not.toContain('tango');
    const late = await run({
      showPayloads: true,
      mask: async () => Promise.reject(new Error('no')),
    });
    expect(late.text).not.toContain('tango');
    expect(late.failure.payload.text).toContain('answered with a promise');
  });

  it('nothing to a page that left while authorize was asked, and its place is free', async () => {
    let asked = 0;
    let answer = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const slowly: DashboardOptions['authorize'] = async ({ headers, url }) => {
      if (url.includes('leaves')) {
        asked += 1;
        await answered;
      }
      return authorize?.({ headers } as never);
    };
    const { app, queue } = await given({ authorize: slowly });
    await app.listen({ port: 0, host: '127.0.0.1' });
    const { port } = app.server.address() as { port: number };
    const query = new URLSearchParams({ queue, view: 'overview', leaves: 'yes' });
    const leaving = new AbortController();
    // More than one viewer may have open at a time.
    const left = Array.from({ length: 100 }, () =>
      fetch(`http://127.0.0.1:${port}/pw/api/events?${query}`, {
        headers: signedIn,
        signal: leaving.signal,
      }).catch(() => {}),
    );
    await until(() => asked === 100);
    leaving.abort();
    await Promise.all(left);
    const connections = () =>
      new Promise<number>((resolve) => app.server.getConnections((_, n) => resolve(n)));
    await until(async () => (await connections()) === 0);
    answer();
    const stream = await openStream(app, { queue, view: 'overview' });
    expect(await stream.next()).toBeDefined();
    stream.close();
  });

  it('of a worker: those in trouble first, with the reason, and no address of a server', () => {
    const now = 1_000_000;
    const worker = {
      ...{ id: 'w', host: 'host', pid: 1, concurrency: 10, running: 1, tasks: '*' as const },
      ...{ startedAt: 0, seenAt: now, draining: false, longest: [], leftovers: 0, why: [] },
      ready: true,
    };
    const run = { requestId: 'r', index: 7, attempt: 1, startedAt: now - 60_000, medianMs: 50 };
    const addresses = new Addresses();
    const view = workersView(
      [
        worker,
        { ...worker, id: 'drains', draining: true },
        { ...worker, id: 'overdue', longest: [run] },
        {
          ...worker,
          id: 'unwell',
          ready: false,
          why: ['redis://u:pa55@db.example:6380/2 and 10.0.0.5:6379 are away'],
        },
        { ...worker, id: 'stuck', leftovers: 2 },
        { ...worker, id: 'silent', seenAt: now - 60_000 },
        // It ticks only every 50 s.
        { ...worker, id: 'idle', running: 0, seenAt: now - 50_000, restMs: 50_000 },
        // What a report says of that moment holds for that moment.
        {
          ...worker,
          id: 'young',
          pid: 2,
          seenAt: now - 9_000,
          longest: [{ ...run, startedAt: now - 9_100 }],
        },
      ],
      (text) => addresses.without(text),
      now,
    );
    const { workers, states } = view;
    expect(workers[3]).toMatchObject({ why: [], longest: [{ isOverdue: true }] });
    // For how long, and how long is usual; and what else a restart would hit.
    const [said] = verdictsOf(
      { open: 1 } as never,
      { ...view, workers: [workers[3]] } as never,
      sum([]),
      [],
      [],
    ).filter(({ what }) => what.includes('sub-request') || what.includes('Sub-request'));
    expect(said).toMatchObject({
      what: 'Sub-request 7 of r has been running for 1 min, usually 50 ms.',
      cure: expect.stringContaining('in 7 workers'),
      request: { id: 'r', from: 'Sub-request 7 of '.length },
    });
    expect(workers.map(({ id, state }) => (id === 'w' ? state : id))).toEqual([
      ...['silent', 'stuck', 'unwell', 'overdue', 'drains', 'works', 'young', 'idle'],
    ]);
    expect(states).toMatchObject({ silent: 1, works: 2 });
    expect(workers.map(({ mates }) => mates)).toEqual([6, 6, 6, 6, 6, 6, 0, 6]);
    // Of those that take work: not the silent one, nor the one that drains, nor the one that is not ready.
    expect(view.fleet).toEqual({ slots: 50, busy: 4, stuck: 2 });
    expect(workers[2]?.why).toEqual(['server 1 and server 2 are away']);
    // The same server has the same number, and other words stay as they are.
    const text =
      'master db.example:6379, [::1]:7000, 10.0.0.5:6379 at 12:30:05, 5:1, item 3:14, /run/redis.sock';
    expect(addresses.without(text)).toBe(
      'master server 3, server 4, server 2 at 12:30:05, 5:1, item 3:14, server 5',
    );
  });

  it('of a request: why it is not further, without an address of a server or a message of an error', () => {
    const counts = { ready: 1, inFlight: 0, delayed: 0, succeeded: 0, failed: 0, cancelled: 0 };
    const status = {
      ...{ id: 'r', status: 'sealed', counts: { ...counts, total: 1 }, running: 0 },
      why: 'worker w takes no work: ECONNREFUSED 10.0.0.5:6379; the last error: E: no card 4111',
      retry: { dueAt: 1, lastError: { index: 0, name: 'E', message: 'no card 4111' } },
    };
    const addresses = new Addresses();
    const told = (text: string) => addresses.without(text);
    const privacy = new Privacy({ mask: () => '(hidden)' });
    const { row } = keptRow(status as never, 'q', privacy, told, 1, undefined);
    expect(row.why).toBe(
      'worker w takes no work: ECONNREFUSED server 1; the last error: E: (hidden)',
    );
    const paused = {
      ...status,
      retry: undefined,
      why: 'its queue is paused until 2026-11-28T20:05:00Z; handlers of order:12345 run',
    };
    expect(keptRow(paused as never, 'q', privacy, told, 1, undefined).row.why).toBe(paused.why);
    expect(told(`until 2026-11-28T20:05:00Z at redis:6379`)).toBe(
      'until 2026-11-28T20:05:00Z at server 2',
    );
  });

  it('of what is ready: how much of it cannot start, and why', () => {
    const counts = { ready: 10, running: 0, delayed: 0, succeeded: 0, failed: 0, cancelled: 0 };
    const row = { status: 'sealed', priority: 50, counts: { ...counts, total: 10 }, rate: 0 };
    const rows = [
      ...['', 'resume', 'time', 'task', 'task', 'lease'].map((waitingFor) => ({ waitingFor })),
      { waitingFor: 'resume', counts: { ...counts, ready: 0, total: 0 } },
    ].map((more, i) => ({ row: { id: `r${i}`, createdAt: i, heldUntil: 0, ...row, ...more } }));
    const { ready, blocked } = sum(rows as never);
    expect(ready).toBe(60);
    expect(blocked).toEqual({ count: 40, reasons: ['paused', 'held back', 'no handler'] });
  });

  it.each([
    [['mail'], 'No worker serves mail: r0 waits. Start workers with handlers for it.'],
    [
      ['mail', 'pages'],
      'No worker serves mail, pages: r0 and 1 other request wait. Start workers with handlers for them.',
    ],
    [
      ['a', 'b', 'c', 'd'],
      'No worker serves a, b, c and others: r0 and 3 other requests wait. Start workers with handlers for them.',
    ],
  ])('of tasks that no worker serves: %j', (tasks, said) => {
    const workers = { ...noWorkers, total: 1, states: { idle: 1 } };
    const rows = tasks.map((task, i) => ({ row: waitingRow(`r${i}`, 'task', task) }));
    const verdicts = verdictsOf({ open: 1 } as never, workers as never, sum(rows as never), [], []);
    expect(verdicts.map(({ what, cure }) => `${what} ${cure}`)).toEqual([said]);
    expect(verdicts[0]?.request).toEqual({ id: 'r0', from: said.indexOf(': r0') + 2 });
  });

  it.each([
    [1, 'r0 is paused.'],
    [3, 'r0 and 2 other requests are paused.'],
  ])('of %i paused requests: which', (n, said) => {
    const workers = { ...noWorkers, total: 1, states: { idle: 1 } };
    const rows = Array.from({ length: n }, (_, i) => ({ row: waitingRow(`r${i}`, 'resume') }));
    const verdicts = verdictsOf({ open: n } as never, workers as never, sum(rows as never), [], []);
    const request = { id: 'r0', from: 0 };
    expect(verdicts).toEqual([{ level: 'ok', what: said, cure: '', request }]);
  });

  it('of failed attempts: as many as the workers have reported, not only those of the list', () => {
    const now = 10_000_000;
    const workers = { ...noWorkers, total: 1, states: { works: 1 } };
    const error = { at: now - 1_000, name: 'HttpError', message: 'busy', requestId: 'r', task: '' };
    const errors = Array.from({ length: 100 }, (_, index) => ({ ...error, index, attempt: 1 }));
    const said = (history: readonly object[]) =>
      verdictsOf(
        { open: 1 } as never,
        workers as never,
        sum([]),
        errors as never,
        history as never,
        now,
      ).map(({ what }) => what);
    const end =
      'attempts failed in the last five minutes; the most frequent of the latest is HttpError.';
    expect(said([])).toEqual([`At least 100 ${end}`]);
    const point = { failed: 400, retried: 800 };
    const before = { ...point, at: now - 600_000 };
    // The workers have reported some more since.
    expect(said([before, { ...point, at: now - 20_000 }])).toEqual([`At least 1,200 ${end}`]);
    errors.length = 30;
    expect(said([])).toEqual([`30 ${end}`]);
    expect(said([{ ...point, failed: 0, retried: 31, at: now }])).toEqual([`At least 31 ${end}`]);
  });

  it('of limits that leave slots free, and of slots that are all busy', () => {
    const workers = (busy: number) => ({
      ...{ ...noWorkers, total: 1, states: { works: 1 } },
      fleet: { slots: 100, busy, stuck: 0 },
    });
    const open = (id: string, limit: number | null, ready: number, running: number) => ({
      row: {
        ...waitingRow(id, ''),
        ...{ limit, counts: { ...waitingRow('', '').counts, ready, running, total: 10_000 } },
      },
    });
    const said = (rows: readonly object[], busy: number) =>
      verdictsOf({ open: 2 } as never, workers(busy) as never, sum(rows as never), [], []).map(
        ({ what }) => what,
      );
    const limited = [open('a', 30, 5_000, 17), open('b', 12, 3_000, 12)];
    expect(said(limited, 42)).toEqual(['The limits of a and 1 other request leave 58 slots free.']);
    expect(said([open('a', 30, 5_000, 30), open('b', 60, 4, 2)], 32)).toEqual([
      'The limit of a leaves 64 slots free.',
    ]);
    // It is not the limits: one has none, or has no more to run.
    expect(said([...limited, open('c', null, 5_000, 58)], 100)).toEqual([
      'Every slot is busy; more workers would make it quicker.',
    ]);
    expect(said([open('a', 30, 13, 17)], 17)).toEqual([]);
  });

  it('of the end of a request: a minute that is not over, and whole seconds', () => {
    const at = new Date(2026, 0, 1, 14, 5, 10).getTime();
    expect(endsAt(at, 15_000)).toMatch(/14:06$/);
    expect(endsAt(at, 50_000)).toMatch(/14:06$/);
    expect(endsAt(at, 50_001)).toMatch(/14:07$/);
    expect([timeLeft(9_400), timeLeft(1), timeLeft(323_100)]).toEqual([
      '10 s',
      '1 s',
      '5 min 24 s',
    ]);
  });

  it('of what runs: one number in the tile, the table and the rows, by the books', async () => {
    const { submit, view, queue, redis } = await given();
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const worker = new Worker({ redis, queue, handler: () => held, ...quietly, concurrency: 3 });
    await worker.start();
    const request = await submit([1, 2, 3, 4, 5]);
    const shown = await until(async () => {
      const now = await view<OverviewView>({ view: 'overview' });
      return now.running === 3 && now.workers.busy === 3 && now;
    });
    expect(shown.backlog).toMatchObject([{ running: 3, ready: 2 }]);
    expect(shown.busiest).toMatchObject([{ id: request.id, counts: { running: 3, ready: 2 } }]);
    const one = await view<RequestView>({ view: 'request', id: request.id });
    expect(one).toMatchObject({ row: { counts: { running: 3 } }, slots: 3 });
    release();
    await request.completion();
    await worker.close();
  });

  it('of a queue that is paused: nothing of what is ready can start', async () => {
    const { submit, view, pw } = await given();
    await submit([1, 2, 3]);
    await pw.admin.pauseQueue();
    const shown = await view<OverviewView>({ view: 'overview' });
    expect(shown.blocked).toEqual({ count: 3, reasons: ['queue paused'] });
    await pw.admin.resumeQueue();
  });

  it('of the queue: its books, its workers, what waits and why', async () => {
    const { submit, view, redis, queue } = await given();
    const request = await submit([1, 2, 3], {
      priority: 12,
      task: 'nobody',
      metadata: { customer: 'Acme' },
    });
    const view1 = await view<Record<string, unknown>>({ view: 'overview' });
    expect(view1).toMatchObject({
      open: 1,
      ready: 3,
      backlog: [{ priority: 12, ready: 3, running: 0, delayed: 0, requests: 1 }],
      oldest: { id: request.id },
      verdicts: [{ level: 'error', what: 'No worker is alive, and requests are open.' }],
    });
    const worker = new Worker({ redis, queue, handler: () => 1, ...quietly, concurrency: 3 });
    await worker.start();
    await request.completion();
    const shown = await until(async () => {
      const now = await view<{ total: number }>({ view: 'workers' });
      return now.total === 1 && now;
    });
    expect(shown).toMatchObject({ workers: [{ concurrency: 3 }] });
    await worker.close();
    expect(await view({ view: 'request', id: request.id })).toMatchObject({
      row: { outcome: 'succeeded', counts: { succeeded: 3, total: 3 }, task: 'nobody' },
    });
    const find = (text: string) => view<{ matches: number }>({ view: 'requests', text });
    await until(async () => (await find('')).matches === 1);
    expect((await find('ACME')).matches).toBe(1);
    expect((await find(`nobody ${request.id}`)).matches).toBe(1);
    expect((await find('acme other')).matches).toBe(0);
    expect(await view({ view: 'errors' })).toMatchObject({ errors: [] });
    const gone = await view<{ code: string }>({ view: 'request', id: freshName('none') });
    expect(gone.code).toBe('NOT_FOUND');
  });
});

describe('what it costs Redis', () => {
  it('is the same for ten pages as for one', async () => {
    const redis = new Noting(await testUrl(), { protocol: 2 });
    ends.push(async () => redis.disconnect());
    const { app, submit, queue } = await given({ redis });
    await submit([1, 2, 3]);
    const { seen } = redis;
    const one = await openStream(app, { queue, view: 'overview' });
    const others = await Promise.all(
      Array.from({ length: 9 }, () => openStream(app, { queue, view: 'overview' })),
    );
    // The checks run once a minute, besides.
    await until(async () => {
      const { checks } = (await one.next()) as { checks: { busy: boolean } | null };
      return checks?.busy === false;
    });
    const before = seen.length;
    await one.next();
    await one.next();
    // Two rounds, and perhaps the beginning of a third.
    for (const [read, most] of [
      ['hlen open', 3],
      // For the workers, and for why the requests of the list are not further.
      ['zrange workers', 6],
      ['zrange errors', 3],
      ['hscan open', 3],
      ['zrange history', 3],
    ] as const) {
      const times = seen.slice(before).filter((line) => line === read).length;
      expect([read, times >= 1 && times <= most]).toEqual([read, true]);
    }
    for (const stream of [one, ...others]) stream.close();
  });

  it('is nothing while nobody looks, and one round a second however many look', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    try {
      let [reads, rests] = [0, 0];
      const rounds = new Rounds(() => {
        rests += 1;
      });
      await vi.advanceTimersByTimeAsync(10_000);
      const got: string[] = [];
      const listener = () => ({ value: (json: string) => void got.push(json), failed: () => {} });
      const read = async () => ++reads;
      const leave = Array.from({ length: 10 }, () => rounds.subscribe('queue', read, listener()));
      await vi.advanceTimersByTimeAsync(0);
      expect(reads).toBe(1);
      reads = 0;
      await vi.advanceTimersByTimeAsync(5_050);
      expect(reads).toBe(5);
      expect(got.slice(-10)).toEqual(Array(10).fill(got.at(-1)));
      for (const end of leave) end();
      await vi.advanceTimersByTimeAsync(59_000);
      expect([reads, rests]).toEqual([5, 0]);
      await vi.advanceTimersByTimeAsync(2_000);
      expect([reads, rests]).toEqual([5, 1]);
      rounds.close();
    } finally {
      vi.useRealTimers();
    }
  });

  it('goes on as before when a page is closed in the middle of an answer', async () => {
    const { app, queue, view } = await given();
    const closed = Array.from({ length: 5 }, async () => {
      const stream = await openStream(app, { queue, view: 'overview' });
      stream.close();
    });
    await Promise.all(closed);
    expect(await view({ view: 'overview' })).toMatchObject({ open: 0 });
    const head = await app.inject({
      headers: signedIn,
      method: 'HEAD',
      url: `/pw/api/events?view=workers&queue=${queue}`,
    });
    expect(head.statusCode).toBe(404);
    const open = await openStream(app, { queue, view: 'overview' });
    await open.next();
    // Streams do not keep the application from closing.
    await app.close();
    await expect(open.next().then(() => open.next())).rejects.toThrow();
  });

  it('is bounded for each step through a long list, and the list is found, sorted and paged', async () => {
    let asked = 0;
    const statusOf = (n: number) => ({
      ...{ id: `request-${n}`, status: 'sealed', generation: 1, priority: n % 100, limit: null },
      ...{ task: `task-${n % 7}`, metadata: { n }, createdAt: n, progress: {}, running: 0 },
      why: 'it waits for its turn',
      counts: {
        ready: n,
        inFlight: 0,
        delayed: 0,
        succeeded: 0,
        failed: 0,
        cancelled: 0,
        total: n,
      },
    });
    async function* list() {
      for (let n = 0; n < 10_000; n++) {
        asked += 1;
        yield statusOf(n);
      }
    }
    const shown = (id: string) => ({
      status: async () => {
        asked += 1;
        return statusOf(Number(id.split('-')[1]));
      },
    });
    const told = (text: string) => text;
    const index = new RequestIndex({ list } as never, shown as never, 'q', new Privacy({}), told);
    const steps: number[] = [];
    while (!index.state.complete) {
      asked = 0;
      await index.step();
      steps.push(asked);
    }
    expect(steps.length).toBe(6);
    expect(Math.max(...steps)).toBeLessThanOrEqual(2_000);
    index.show(Array.from({ length: 1_000 }, (_, n) => `request-${n}`));
    asked = 0;
    await index.step();
    expect(asked).toBeLessThanOrEqual(500);
    const query = {
      text: '',
      state: 'any',
      priorityFrom: 0,
      priorityTo: 99,
      olderThanMs: 0,
    } as const;
    const more = { youngerThanMs: 0, sort: 'total', descending: true, page: 1, size: 50 } as const;
    const found = search(index.rows, { ...query, ...more });
    expect([found.matches, found.pages, found.rows[0]?.id]).toEqual([10_000, 200, 'request-9999']);
    const last = search(index.rows, { ...query, ...more, page: 999, text: 'TASK-3 request-33' });
    expect([last.page, last.matches]).toEqual([last.pages, 17]);
    const some = search(index.rows, { ...query, ...more, priorityFrom: 5, priorityTo: 6 });
    expect([some.matches, some.states['open']]).toEqual([200, 10_000]);
  });
});

it('shows the results that are there while a request runs, and goes on behind them', async () => {
  const { pw, redis, queue, submit, get } = await given();
  let open = () => {};
  const held = new Promise<void>((resolve) => {
    open = resolve;
  });
  const worker = new Worker({
    ...quietly,
    ...{ redis, queue, concurrency: 3, handler: (n: number) => (n === 2 ? held : n) },
  });
  ends.push(() => worker.close());
  await worker.start();
  const { id } = await submit([0, 1, 2]);
  const read = async (cursor: string) =>
    (await get('api/results', { queue, id, cursor })).json() as ResultsPage;
  const first = await until(async () => {
    const page = await read('');
    return page.rows.length === 2 && page;
  });
  expect(await read(first.cursor)).toEqual({ rows: [], cursor: first.cursor });
  open();
  await pw.request(id).completion();
  expect(await read(first.cursor)).toMatchObject({ rows: [{ index: 2 }], cursor: '' });
});
