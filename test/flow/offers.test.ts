/**
 * Requests that are submitted in one call, which needs one server for all keys.
 * @module-tag one-server
 */
import { type Granted, nextTurn, offerChannel } from '@piecework/protocol';
import type { Worker } from '@piecework/worker';
import { Redis } from 'ioredis';
import { Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { Offer } from '../../packages/worker/dist/fetch/offer.js';
import { startDeafProxy } from '../support/deaf-proxy.js';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { LEASE_MS } from '../support/given.js';
import { NotingRedis } from '../support/noting-redis.js';
import { startOwnRedis } from '../support/redis.js';
import { until } from '../support/until.js';

/** A worker that has started; it closes with the test. */
async function started(flow: Flow, options: Parameters<Flow['worker']>[0]): Promise<Worker> {
  const worker = flow.worker(options);
  await worker.start();
  flow.after(() => worker.close());
  return worker;
}

const offerOf = (flow: Flow, { id }: Pick<Worker, 'id'>) =>
  flow.connection.client.hget(flow.queueCommands.keys.offers, id);

/** Waits until an offer of this worker stands. */
const stands = (flow: Flow, worker: Pick<Worker, 'id'>) =>
  until(async () => /^\d/.test((await offerOf(flow, worker)) ?? ''), { what: 'it offers' });

/** The same of the only worker, which has to see first how long its handlers take. */
async function offers(flow: Flow, worker: Pick<Worker, 'id'>) {
  const { id } = await flow.producer().submit([0]);
  await flow.complete(id);
  await stands(flow, worker);
}

/** Waits until a request was entered by an offer of this worker. */
const isTaken = (flow: Flow, worker: Pick<Worker, 'id'>) =>
  until(async () => (await offerOf(flow, worker))?.startsWith('taken'), { what: 'it is taken' });

/** Behind this proxy a worker does not receive what is published from `deafen` on. */
async function behindProxy(flow: Flow) {
  const proxy = await startDeafProxy(flow.redis as string, /ssubscribe/i);
  flow.after(() => proxy.close());
  return proxy;
}

/**
 * A worker with two slots runs these items until `open` is called. A request was entered by an offer that it seems to
 * have made before. `sent`: its scripts since.
 */
async function givenBeside(flow: Flow, items: readonly number[]) {
  const redis = new NotingRedis(flow);
  const { opened, open } = gate<void>();
  const large = flow.id('large');
  const busy = flow.worker({
    redis,
    concurrency: 2,
    leaseMs: 60_000,
    handler: async (_: unknown, context) => {
      if (context.requestId === large) await opened;
      return busy.id;
    },
  });
  await busy.start();
  flow.after(() => busy.close());
  await offers(flow, busy);
  const producer = flow.producer();
  // With a deadline it is not compact, so it comes by a token.
  await producer.submit([...items], { id: large, deadlineMs: 600_000 });
  await until(() => busy.running === items.length);
  await until(async () => (await offerOf(flow, busy)) === null, {
    what: 'its offer is taken back',
  });
  redis.sent.length = 0;
  const terms = `1000 60000 1 16 0 0 ${offerChannel(busy.id)} *`;
  await flow.queueCommands.offer(busy.id, '', terms);
  const { id } = await producer.submit([3]);
  await isTaken(flow, busy);
  return { busy, large, id, open, sent: redis.sent };
}

const crashes = (_: unknown, context: { readonly crashes: number }) => context.crashes;

describe('an idle worker', () => {
  test('runs one request after the other without a token and an enter', async ({ flow }) => {
    const redis = new NotingRedis(flow);
    const worker = await started(flow, { redis, handler: (n: number) => n });
    const producer = flow.producer();
    const runOne = async (n: number) => {
      const { id } = await producer.submit([n, n + 1], { id: flow.id(`r${n}`) });
      expect(await flow.complete(id)).toMatchObject({ succeeded: 2 });
      expect([...(await flow.results(id)).values()]).toEqual([n, n + 1]);
    };
    await offers(flow, worker);
    // One that comes while the process stands still, or between two pops, comes by a token.
    const sent: string[][] = [];
    for (const n of numbers(5)) {
      redis.sent.length = 0;
      await runOne(n);
      await stands(flow, worker);
      sent.push(redis.sent.filter((script) => /^(enter|settle)/.test(script)));
    }
    expect(sent).toContainEqual(['settle-compact']);
  });

  test('gives back what it is given when it is not idle any more', async ({ flow }) => {
    const { busy, large, id, open } = await givenBeside(flow, [1, 2]);
    const other = flow.worker({ handler: () => other.id });
    await other.start();
    flow.after(() => other.close());
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
    expect((await flow.results(id)).get(0)).toBe(other.id);
    open();
    expect(await flow.complete(large)).toMatchObject({ succeeded: 2 });
    expect(busy.running).toBe(0);
  });

  test('gives back what would leave no slot for its pop', async ({ flow }) => {
    const { large, id, open, sent } = await givenBeside(flow, [1]);
    // It comes as a token then, for this worker too.
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
    expect(sent.filter((script) => script.startsWith('enter'))).toHaveLength(1);
    open();
    expect(await flow.complete(large)).toMatchObject({ succeeded: 1 });
  });

  test('takes its offer back before it enters other work', async ({ flow }) => {
    const redis = new NotingRedis(flow);
    const worker = await started(flow, { redis, handler: (n: number) => n });
    await offers(flow, worker);
    redis.sent.length = 0;
    const { id } = await flow.producer().submit([1], { deadlineMs: 600_000 });
    await flow.complete(id);
    const sent = redis.sent.filter((script) => /^(offer|enter)/.test(script));
    expect(sent[sent.findIndex((script) => script.startsWith('enter')) - 1]).toBe('offer');
  });

  test('starts nothing that was entered long ago', async ({ flow }) => {
    const seen: unknown[] = [];
    const worker = await started(flow, { handler: (value: unknown) => seen.push(value) });
    await offers(flow, worker);
    // A message that was under way for ten seconds, about a request that is gone since.
    const ends = Date.now() - 10_000 + 30_000;
    const head = `${flow.id('gone')}~5 1 ${ends} 1 1 1 0`;
    const message = [head, '50', '', '', '"late"'].join('\x1e');
    const channel = offerChannel(worker.id);
    expect(await flow.connection.client.call('spublish', channel, message)).toBe(1);
    const { id } = await flow.producer().submit(['in time']);
    await flow.complete(id);
    expect(seen).toEqual([0, 'in time']);
  });

  test('gives back what it was given in a message that got lost', async ({ flow }) => {
    const proxy = await behindProxy(flow);
    const deaf = await started(flow, { redis: proxy.url, handler: crashes, leaseMs: 60_000 });
    await offers(flow, deaf);
    proxy.deafen();
    const { id } = await flow.producer().submit([1]);
    await isTaken(flow, deaf);
    // It comes as a token, for this worker too.
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
    expect((await flow.results(id)).get(0)).toBe(0);
  });

  test('that closes leaves to others what it did not receive', async ({ flow }) => {
    const proxy = await behindProxy(flow);
    const deaf = flow.worker({ redis: proxy.url, handler: crashes, leaseMs: 60_000 });
    await deaf.start();
    await offers(flow, deaf);
    proxy.deafen();
    const { id } = await flow.producer().submit([1]);
    await isTaken(flow, deaf);
    await deaf.close();
    await started(flow, { handler: crashes });
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
    expect((await flow.results(id)).get(0)).toBe(0);
  });
});

test('a worker whose user may not have a channel of its own works by tokens, and receives notices', {
  tags: ['own-server'],
}, async ({ flow }) => {
  const { url, close } = await startOwnRedis();
  flow.after(() => close());
  const client = new Redis(url);
  flow.after(() => client.disconnect());
  const { control } = flow.queueCommands.keys;
  const channels = ['resetchannels', `&${control}`, '&done:{orders.*}'];
  await client.call('ACL', 'SETUSER', 'limited', 'on', 'nopass', '~*', '+@all', ...channels);
  const pw = new Piecework({ redis: url, queue: flow.queue });
  flow.after(() => pw.close());
  const redis = url.replace('//', '//limited:any@');
  const worker = await started(flow, { redis, handler: (n: number) => n });
  const listeners = async (channel: string) =>
    Number(((await client.call('PUBSUB', 'SHARDNUMSUB', channel)) as [string, number])[1]);
  await until(async () => (await listeners(control)) === 1, { what: 'it hears notices' });
  expect(await listeners(offerChannel(worker.id))).toBe(0);
  const request = await pw.submit([1], { id: 'orders.1' });
  expect((await request.completion()).counts).toMatchObject({ succeeded: 1 });
  expect(await client.exists(flow.queueCommands.keys.offers)).toBe(0);
});

/** An offer of a worker that is idle, and what it was asked to enter again. */
function offerIn(flow: Flow) {
  let op = 0;
  const missed: unknown[][] = [];
  const lately: { averageMs: number | undefined } = { averageMs: 1 };
  const memory = { isStale: false, tight: false, refreshIfStale: async () => {} };
  const context = {
    id: 'idle',
    connection: flow.connection,
    memory: { of: () => memory },
    lately,
    blockedAt: Number.NEGATIVE_INFINITY,
    handlers: { served: '*', pulled: false },
    leaseMs: LEASE_MS,
    idleFactor: 1,
    quantumMs: 100,
    mayReadAhead: true,
    nextOp: () => ++op,
    insist: (_: string, call: () => Promise<void>) => call(),
  };
  const slots = { free: 3, shared: false };
  const state = { sessions: 0, isWaiting: true };
  flow.after(() => flow.queueCommands.deregister('idle'));
  const hooks = {
    isWaiting: () => state.isWaiting,
    sessions: () => state.sessions,
    fleet: () => 1,
    onMissed: (...about: unknown[]) => missed.push(about),
  };
  const offer = new Offer(
    context as unknown as ConstructorParameters<typeof Offer>[0],
    flow.queueCommands,
    slots as unknown as ConstructorParameters<typeof Offer>[2],
    hooks,
  );
  const isThere = async () => (await offerOf(flow, { id: 'idle' })) !== null;
  return { offer, missed, slots, state, memory, lately, context, isThere };
}

describe('an offer', () => {
  test('is made by a worker that waits, and taken back when it closes', async ({ flow }) => {
    const { offer, isThere } = offerIn(flow);
    await offer.check();
    expect(await isThere()).toBe(true);
    expect(offer.next()).toBeUndefined();
    await offer.close();
    expect(await isThere()).toBe(false);
  });

  test('is taken back as soon as the call that makes it is answered', async ({ flow }) => {
    const { offer, isThere } = offerIn(flow);
    const made = offer.check();
    // No answer comes within this turn of the event loop.
    for (let i = 0; i < 1_000 && !offer.stands; i += 1) await Promise.resolve();
    expect(offer.stands).toBe(true);
    offer.withdraw();
    await made;
    await until(async () => !(await isThere()), { what: 'it is taken back' });
    expect(offer.stands).toBe(false);
  });

  test('is made by no other worker', async ({ flow }) => {
    const { offer, slots, state, memory, lately, isThere } = offerIn(flow);
    const makesNone = async (next = false) => {
      await offer.check();
      expect(await isThere()).toBe(false);
      if (!next) expect(offer.next()).toBeUndefined();
    };
    state.isWaiting = false;
    await makesNone();
    state.isWaiting = true;
    // Beside a request. The settle of the last one may make an offer.
    state.sessions = 1;
    await makesNone(true);
    state.sessions = 2;
    await makesNone();
    state.sessions = 0;
    slots.free = 1;
    await makesNone();
    slots.free = 3;
    // Where another queue has a turn at the same slots.
    slots.shared = true;
    await makesNone();
    slots.shared = false;
    memory.tight = true;
    await makesNone();
    memory.tight = false;
    // It does not know yet how long its handlers take.
    lately.averageMs = undefined;
    await makesNone();
    lately.averageMs = 1;
    state.sessions = 1;
    expect(offer.next()?.terms).toMatch(/^1 \d+ 2 128 4 2 done:\{idle\} \*$/);
  });

  test('is not made where a handler has blocked the event loop', async ({ flow }) => {
    const { offer, context, isThere } = offerIn(flow);
    context.blockedAt = performance.now() - 300_000;
    await offer.check();
    expect(await isThere()).toBe(false);
    context.blockedAt = performance.now() - 600_001;
    await offer.check();
    expect(await isThere()).toBe(true);
  });
});

const grantOf = (id: string, generation: number, op: number, ends: number) =>
  ({ id, generation, op, entered: { ends } }) as unknown as Granted;

describe('what was entered by an offer', () => {
  const isTakenBy = (flow: Flow, op: number) =>
    flow.connection.client.hset(flow.queueCommands.keys.offers, {
      idle: `taken ${Date.now()} ${op} r~5`,
    });

  test('is entered once, also if the message comes behind the answer of the server', async ({
    flow,
  }) => {
    const { offer, missed } = offerIn(flow);
    await offer.check();
    await isTakenBy(flow, 1);
    await offer.close();
    expect(missed).toEqual([['r', 5, 1]]);
    expect(offer.granted(grantOf('r', 5, 1, Date.now()))).toBeUndefined();
  });

  test('is entered once, also if the message comes before the answer', async ({ flow }) => {
    const { offer, missed } = offerIn(flow);
    await offer.check();
    await isTakenBy(flow, 1);
    const closed = offer.close();
    expect(offer.granted(grantOf('r', 5, 1, Date.now()))).toBeDefined();
    await closed;
    expect(missed).toEqual([]);
  });

  test('is known when the worker has closed, also if it asked just before', async ({ flow }) => {
    const { offer, missed } = offerIn(flow);
    await offer.check();
    await isTakenBy(flow, 1);
    offer.ask();
    // It has been answered, and waits for the message.
    while (offer.stands) await nextTurn();
    await offer.close();
    expect(missed).toEqual([['r', 5, 1]]);
  });

  test('is known when the worker has closed, also if a call of it failed', async ({ flow }) => {
    const { offer, missed } = offerIn(flow);
    await offer.check();
    await isTakenBy(flow, 1);
    const { queueCommands } = flow;
    const ask = queueCommands.offer.bind(queueCommands);
    let calls = 0;
    queueCommands.offer = async (...args) => {
      calls += 1;
      if (calls === 1) throw new Error('a failover');
      return ask(...args);
    };
    await offer.close();
    expect(missed).toEqual([['r', 5, 1]]);
  });

  test('leaves no note when the worker has gone on to other work', async ({ flow }) => {
    const { offer, state, isThere } = offerIn(flow);
    await offer.check();
    await isTakenBy(flow, 1);
    expect(offer.granted(grantOf('r', 5, 1, Date.now()))).toBeDefined();
    state.sessions = 3;
    await offer.check();
    expect(await isThere()).toBe(false);
  });

  test('has its lease from when the server entered it, however late the message comes', async ({
    flow,
  }) => {
    const { offer } = offerIn(flow);
    const before = performance.now();
    await offer.check();
    const { now } = await flow.queueCommands.offer('another', '', '');
    const late = 5_000;
    // Entered five seconds before the offer was made.
    const from = offer.granted(grantOf('r', 1, 1, now - late + LEASE_MS)) as number;
    expect(from).toBeLessThan(performance.now() - late + 1_000);
    expect(from).toBeGreaterThan(before - late - 1_000);
    // A clock that went ahead does not make a lease longer.
    const ahead = offer.granted(grantOf('s', 1, 2, now + 3_600_000)) as number;
    expect(ahead).toBeLessThanOrEqual(performance.now());
  });
});
