import { setTimeout as sleep } from 'node:timers/promises';
import { nextTurn, type RedisInput } from '@piecework/protocol';
import type { HandlerContext, Worker, WorkerOptions } from '@piecework/worker';
import { type Command, Redis } from 'ioredis';
import { Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { fieldsIn, READ_COMPACT } from '../support/compact.js';
import { leaseOver, startWorker } from '../support/fleet.js';
import { type Flow, gate, heard, numbers, test } from '../support/flow.js';
import { holdable } from '../support/held-settles.js';
import { LossyRedis } from '../support/lossy-redis.js';
import { ownClock } from '../support/own-clock.js';
import { requestsOf } from '../support/script-names.js';
import { until } from '../support/until.js';

/*
 * What a worker has read ahead: it owns these sub-requests without a permit, and starts one whenever a handler ends.
 */

/** So long that nothing that recurs with the lease happens during a test. */
const LONG_MS = 600_000;
const SLOTS = 5;
/** So many sub-requests are quick; from them a worker learns how much to read ahead. */
const QUICK = 5;
/**
 * They are so slow that outcomes may wait for two fifths of a second, and what is read ahead for four times that:
 * until then a test has done what it does.
 */
const QUICK_MS = 200;
const SETTLE_DELAY_MS = 400;
const TOTAL = 60;
/** More slots than an enter reads for. */
const MANY = 200;
/** After so long what is to run at once goes back. */
const AT_ONCE_MS = 20;
/** For so long a handler stops the event loop: longer than the lease. */
const BLOCK_MS = 3_200;

function clientOf<T extends Redis>(flow: Flow, Client: new (...args: never[]) => T): T {
  const made = Client as unknown as new (url: string, options: object) => T;
  const client = new made(flow.redis as string, { lazyConnect: true, protocol: 2 });
  flow.after(() => client.disconnect());
  return client;
}

function piecework(flow: Flow): Piecework {
  const pw = new Piecework({ redis: flow.redis as RedisInput, queue: flow.queue });
  flow.after(() => pw.close());
  return pw;
}

/** How many sub-requests the server has given to a worker, and how many permits, at one moment. */
async function owned(flow: Flow, id: string, worker: string) {
  const { keys } = flow.request(id);
  const replies = await flow.connection.client
    .multi()
    .eval(READ_COMPACT, 1, keys.request)
    .xpending(keys.work, 'workers', '-', '+', 1_000, worker)
    .exec();
  const [read, pending] = (replies ?? []).map(([, answer]) => answer as unknown[] | undefined);
  const state = fieldsIn(read ?? [[]]);
  const permits = Number(state[`permits:${worker}`] ?? 0);
  const total = Number(state['total'] ?? 0);
  // A worker has all of a compact request.
  return { permits, pending: pending?.length ?? (permits && total) };
}

type Way = 'succeed' | 'hold' | 'block';

/** Sub-requests of which the first are quick; each of the others ends when it is let go. */
class Work {
  /** Indexes in the order in which they were started. */
  readonly started: number[] = [];
  readonly running = new Set<number>();
  readonly settled = new Set<number>();
  aborted = 0;
  onStart = () => {};
  readonly #gates = new Map<number, ReturnType<typeof gate<Way>>>();
  #open = false;

  readonly handler = async (n: number, context: HandlerContext) => {
    this.started.push(n);
    this.running.add(n);
    this.onStart();
    context.signal.addEventListener('abort', () => {
      this.aborted += 1;
    });
    try {
      return await this.#run(n, context);
    } finally {
      this.running.delete(n);
    }
  };

  async #run(n: number, context: HandlerContext): Promise<number> {
    if (n < QUICK) await sleep(QUICK_MS + 20 * n);
    else if (!this.#open) {
      const way = await this.#gate(n).opened;
      if (way === 'hold') throw context.holdRequest(LONG_MS);
      if (way === 'block') {
        const end = performance.now() + BLOCK_MS;
        while (performance.now() < end);
      }
    }
    return n;
  }

  #gate(n: number) {
    const known = this.#gates.get(n) ?? gate<Way>();
    this.#gates.set(n, known);
    return known;
  }

  /** Lets one of those that run go. Returns its index. */
  letOne(way: Way = 'succeed'): number {
    const [n] = this.running;
    if (n === undefined) throw new Error('none runs');
    this.#gate(n).open(way);
    return n;
  }

  /** Lets those go that run now. */
  letThese(): void {
    for (const n of this.running) this.#gate(n).open('succeed');
  }

  /** Lets all go, also those that start later. */
  letAll(): void {
    this.#open = true;
    for (const one of this.#gates.values()) one.open('succeed');
  }
}

interface Scene {
  readonly id: string;
  readonly work: Work;
  readonly worker: Worker;
  /** How many sub-requests the worker had read ahead. */
  readonly ahead: number;
}

/** A worker whose slots are all in use, that has settled everything else, and has read ahead. */
async function readAhead(
  flow: Flow,
  options: Partial<WorkerOptions> = {},
  request: object = {},
  total = TOTAL,
): Promise<Scene> {
  for (;;) {
    const scene = await oneAhead(flow, options, request, total);
    if (scene) return scene;
  }
}

/**
 * The same; undefined if it has read nothing ahead: after a stall of the machine all quick ones are settled by one call,
 * and nothing was known of their duration before.
 */
async function oneAhead(
  flow: Flow,
  options: Partial<WorkerOptions>,
  request: object,
  total: number,
): Promise<Scene | undefined> {
  const work = new Work();
  const worker = flow.worker({
    ...{ concurrency: SLOTS, leaseMs: LONG_MS, quantumMs: LONG_MS, settleDelayMs: SETTLE_DELAY_MS },
    ...options,
    handler: work.handler,
  });
  flow.after(() => work.letAll());
  worker.on('settled', ({ index }) => work.settled.add(index));
  await worker.start();
  await heard(flow);
  const { id } = await flow.producer().submit(numbers(total), { limit: SLOTS, ...request });
  await until(() => work.settled.size === QUICK && work.running.size === SLOTS, {
    everyMs: 2,
    what: 'the quick ones are settled',
  });
  // The settle that said so has read what is read ahead.
  const { pending } = await owned(flow, id, worker.id);
  if (pending > SLOTS) return { id, work, worker, ahead: pending - SLOTS };
  work.letAll();
  await flow.complete(id);
  await worker.close();
  return undefined;
}

/** A worker with two slots whose last handlers took no time by its clock, which stands still, and what it does next. */
async function quickWorker(flow: Flow) {
  const clock = ownClock(flow);
  clock.stop();
  const redis = clientOf(flow, LossyRedis);
  const next: { handler: (n: number) => unknown } = { handler: (n) => n };
  const worker = flow.worker({
    ...{ redis, concurrency: 2, leaseMs: LONG_MS, quantumMs: LONG_MS },
    handler: async (n: number) => next.handler(n),
  });
  flow.after(() => worker.close());
  await worker.start();
  await heard(flow);
  const { id } = await flow.producer().submit(numbers(TOTAL), {});
  await flow.complete(id);
  return { clock, redis, worker, next };
}

/** Such a worker that has read a request of ten whole, of which the two that run wait until they are let go. */
async function takenForShort(flow: Flow) {
  const { clock, worker, next } = await quickWorker(flow);
  const started: number[] = [];
  const running = new Map<number, () => void>();
  const block = { ms: 0 };
  let isOpen = false;
  const handler = async (n: number) => {
    started.push(n);
    clock.move(block.ms);
    if (isOpen || block.ms > 0) return n;
    await new Promise<void>((resolve) => running.set(n, resolve));
    running.delete(n);
    return n;
  };
  const letOne = () => [...running.values()][0]?.();
  /** Also those that start later. The clock goes again. */
  const letAll = () => {
    isOpen = true;
    block.ms = 0;
    clock.go();
    for (const resolve of running.values()) resolve();
  };
  flow.after(letAll);
  next.handler = handler;
  const { id } = await flow.producer().submit(numbers(10), {});
  await until(() => running.size === 2, { what: 'two run' });
  expect((await owned(flow, id, worker.id)).pending).toBe(10);
  return { clock, id, started, running, worker, letOne, letAll, handler, block };
}

const state = (flow: Flow, id: string) => flow.request(id).inspect();

/** Waits until the worker owns nothing of the request any more. */
const ownsNothing = (flow: Flow, { id, worker }: Scene) =>
  until(async () => (await owned(flow, id, worker.id)).pending === 0, {
    what: 'the worker owns nothing',
  });

/** Each ran once, and has one result. */
async function ranOnce(flow: Flow, id: string, started: readonly number[], total = TOTAL) {
  expect(await flow.complete(id)).toMatchObject({ succeeded: total, failed: 0, total });
  expect(started.toSorted((a, b) => a - b)).toEqual(numbers(total));
  expect((await flow.results(id)).size).toBe(total);
}

describe('a fleet of small workers', { tags: ['one-server'] }, () => {
  test('settles several outcomes in one call', async ({ flow }) => {
    const clients = numbers(2).map(() => clientOf(flow, LossyRedis));
    const handler = async (n: number) => {
      await sleep(25 + (n % 10));
      return n;
    };
    for (const redis of clients) {
      const worker = flow.worker({ redis, concurrency: SLOTS, handler });
      flow.after(() => worker.close());
      await worker.start();
    }
    const { id } = await flow.producer().submit(numbers(300), { limit: 2 * SLOTS });
    expect(await flow.complete(id)).toMatchObject({ succeeded: 300 });
    const calls = clients.reduce((sum, client) => sum + client.callsOf('settle'), 0);
    expect(calls).toBeLessThan(150);
  });

  test('enters and settles a small request of short handlers once', async ({ flow }) => {
    const { redis } = await quickWorker(flow);
    const counted = () => [redis.callsOf('enter'), redis.callsOf('settle'), redis.callsOf('push')];
    // The server learns the scripts, one with each of the first two.
    for (let i = 0; i < 2; i += 1)
      await flow.complete((await flow.producer().submit(numbers(40), {})).id);
    for (let i = 0; i < 5; i += 1) {
      const before = counted();
      const { id } = await flow.producer().submit(numbers(40), {});
      expect(await flow.complete(id)).toMatchObject({ succeeded: 40, failed: 0 });
      expect(counted().map((count, j) => count - before[j]!)).toEqual([1, 1, 0]);
    }
  });

  test('takes from one another what was taken for short and is not', async ({ flow }) => {
    const { clock, id, started, running, worker, letOne, letAll, handler } =
      await takenForShort(flow);
    // One ends, and another one starts in its place: the others go back all the same.
    letOne();
    await until(() => started.length === 3);
    clock.move(AT_ONCE_MS);
    await until(async () => (await owned(flow, id, worker.id)).pending === 2);
    expect(started).toHaveLength(3);
    const other = flow.worker({ concurrency: 8, leaseMs: LONG_MS, handler });
    await other.start();
    await until(() => running.size === 9, { what: 'all run, seven of them in the other worker' });
    letAll();
    await ranOnce(flow, id, started, 10);
  });

  test('leaves to others what was taken for short, and blocks', async ({ flow }) => {
    const { id, started, letOne, letAll, block } = await takenForShort(flow);
    // Each of the next ones takes longer than all were to take, and none awaits anything.
    block.ms = AT_ONCE_MS;
    const turn = nextTurn();
    letOne();
    await turn;
    expect(started).toHaveLength(3);
    letAll();
    await ranOnce(flow, id, started, 10);
  });

  test('holds nothing beyond its permits where no outcome may wait', async ({ flow }) => {
    let most = 0;
    const workers = numbers(2).map(() => {
      const worker: Worker = flow.worker({
        ...{ concurrency: SLOTS, settleDelayMs: 0, leaseMs: LONG_MS },
        handler: async (n: number, { requestId }) => {
          await sleep(10 + (n % 10));
          const { permits, pending } = await owned(flow, requestId, worker.id);
          most = Math.max(most, pending - permits);
          return n;
        },
      });
      return worker;
    });
    for (const worker of workers) await worker.start();
    const { id } = await flow.producer().submit(numbers(200), { limit: 2 * SLOTS });
    expect(await flow.complete(id)).toMatchObject({ succeeded: 200 });
    expect(most).toBe(0);
  });

  test('asks for no more ahead than its share of what nobody has read', async ({ flow }) => {
    const clients = numbers(2).map(() => clientOf(flow, Sharing));
    let running = 0;
    let busiest = 0;
    const last = gate();
    const handler = async (n: number) => {
      running += 1;
      busiest = Math.max(busiest, running);
      if (n < 150) await sleep(20 + (n % 10));
      else await last.opened;
      running -= 1;
      return n;
    };
    for (const redis of clients) {
      const worker = flow.worker({ redis, concurrency: SLOTS, leaseMs: LONG_MS, handler });
      flow.after(() => worker.close());
      await worker.start();
    }
    const { id } = await flow.producer().submit(numbers(160), { limit: 2 * SLOTS });
    // The last ten: none waits behind the handlers of one worker while the other one is idle.
    await until(() => running === 10, { what: 'the last ten run at once' });
    last.open();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 160 });
    for (const { asked } of clients) {
      expect(Math.max(...asked.map(({ ahead }) => ahead))).toBeGreaterThan(0);
      for (const { ahead, share } of asked) expect(ahead).toBeLessThanOrEqual(Math.max(0, share));
    }
  });
});

/** A client that notes how much each settle asked for ahead, and what share had been answered before. */
class Sharing extends Redis {
  readonly asked: { ahead: number; share: number }[] = [];
  #share = 0;

  override sendCommand(command: Command, stream?: never): unknown {
    const reply = super.sendCommand(command, stream) as Promise<unknown>;
    const [settled] = requestsOf('settle', command);
    if (!settled) return reply;
    const [read, ahead] = [Number(settled.of('read')), Number(settled.of('ahead'))];
    if (read > 0) this.asked.push({ ahead, share: this.#share });
    return reply.then((answer) => {
      const [[verdict, numbers]] = answer as [[string, string]];
      const share = verdict === 'ok' ? Number(numbers.split(' ')[7]) : 0;
      if (verdict === 'ok' && (share < 0 || read > 0)) this.#share = share;
      return answer;
    });
  }
}

/** Changes the limit, or pauses the request, and workers receive no message of that. */
async function withoutNotice(
  flow: Flow,
  id: string,
  change: { limit: number } | { paused: true },
): Promise<void> {
  const { generation } = (await flow.request(id).state()) as { generation: number };
  const changed = await flow.request(id).update(generation, change);
  if (changed.verdict === 'ok' && changed.mint > 0)
    await flow.queueCommands.push({ id, generation, ...changed });
}

describe('the limit', () => {
  test('holds over several workers that read ahead', async ({ flow }) => {
    const limit = 7;
    let now = 0;
    let most = 0;
    let ahead = 0;
    const runs = new Map<number, number>();
    const workers = numbers(4).map(() =>
      flow.worker({
        ...{ concurrency: SLOTS, leaseMs: LONG_MS },
        handler: async (n: number) => {
          now += 1;
          most = Math.max(most, now);
          runs.set(n, (runs.get(n) ?? 0) + 1);
          await sleep(15 + (n % 10));
          now -= 1;
          return n;
        },
      }),
    );
    for (const worker of workers) await worker.start();
    const { id } = await flow.producer().submit(numbers(600), { limit });
    for (;;) {
      const seen = await state(flow, id);
      if (!seen || seen.state.status === 'complete') break;
      ahead = Math.max(ahead, seen.inFlight - limit);
      await sleep(5);
    }
    expect(await flow.complete(id)).toMatchObject({ succeeded: 600, failed: 0 });
    expect(most).toBe(limit);
    expect([...runs.values()]).toEqual(Array(600).fill(1));
    expect(ahead).toBeGreaterThan(0);
  });

  test('that was lowered is kept from the settles on that follow', async ({ flow }) => {
    let now = 0;
    let most = 0;
    const workers = numbers(3).map(() =>
      flow.worker({
        ...{ concurrency: SLOTS, leaseMs: LONG_MS },
        handler: async (n: number) => {
          now += 1;
          most = Math.max(most, now);
          await sleep(15 + (n % 10));
          now -= 1;
          return n;
        },
      }),
    );
    for (const worker of workers) await worker.start();
    const request = await piecework(flow).submit(numbers(900), { id: flow.id('a'), limit: 15 });
    const granted = async () => Number((await state(flow, request.id))?.state.granted);
    for (const limit of [4, 12, 2]) {
      await until(async () => now > limit || ((await granted()) < limit && now > 0));
      await request.update({ limit });
      // Then each worker has settled since, and runs no more than it has permits.
      await until(async () => (await granted()) <= limit);
      most = now;
      expect(most).toBeLessThanOrEqual(limit);
      await until(async () => now === limit && (await state(flow, request.id))!.inFlight > limit, {
        what: `${limit} run, and something is read ahead`,
      });
      expect(most).toBeLessThanOrEqual(limit);
    }
    await request.update({ limit: null });
    expect(await flow.complete(request.id)).toMatchObject({ succeeded: 900, failed: 0 });
  });

  test('that is lowered before a settle arrives is kept, though handlers end until its reply', {
    tags: ['one-server'],
  }, async ({ flow }) => {
    const redis = holdable(flow);
    const { id, work, worker } = await readAhead(flow, { redis, concurrency: MANY }, {}, 2 * MANY);
    flow.after(() => worker.close());
    const held = gate();
    redis.held = held.opened;
    flow.after(() => held.open());
    // More permits than an enter reads for: the settle that reads for the others says how many run.
    await withoutNotice(flow, id, { limit: MANY });
    await until(() => redis.waiting > 0);
    const running = work.running.size;
    await withoutNotice(flow, id, { limit: SLOTS });
    const last = work.letOne();
    await until(() => !work.running.has(last) && work.running.size >= running);
    const most = work.running.size;
    redis.held = undefined;
    held.open();
    expect(running).toBeLessThan(MANY);
    expect(most).toBe(running);
    await until(async () => (await owned(flow, id, worker.id)).permits === running);
    work.letAll();
    await ranOnce(flow, id, work.started, 2 * MANY);
  });

  test('that was lowered lets nothing start that was read ahead before', async ({ flow }) => {
    const { id, work, worker } = await readAhead(flow);
    // What was read ahead is not late, however long this takes: only the answer to a settle has it returned.
    const clock = ownClock(flow);
    clock.stop();
    const letOne = async () => {
      const n = work.letOne();
      await until(() => !work.running.has(n));
      // Its outcome waits for no others any more.
      clock.move(SETTLE_DELAY_MS);
      await until(() => work.settled.has(n));
    };
    await withoutNotice(flow, id, { limit: 1 });
    // The worker does not know yet: this one has a successor.
    await letOne();
    const { length } = work.started;
    expect(work.running.size).toBe(SLOTS);
    while (work.running.size > 1) {
      await letOne();
      expect(work.started).toHaveLength(length);
    }
    expect(await owned(flow, id, worker.id)).toEqual({ permits: 1, pending: 1 });
    clock.go();
    work.letAll();
    await ranOnce(flow, id, work.started);
  });
});

describe('an outcome behind which nothing more is read ahead', { tags: ['one-server'] }, () => {
  test('is settled at once', async ({ flow }) => {
    const redis = clientOf(flow, LossyRedis);
    const work = new Work();
    const worker = flow.worker({
      ...{ redis, concurrency: SLOTS, leaseMs: LONG_MS, settleDelayMs: SETTLE_DELAY_MS },
      handler: work.handler,
    });
    flow.after(() => worker.close());
    worker.on('settled', ({ index }) => work.settled.add(index));
    await worker.start();
    const total = QUICK + SLOTS + 1;
    const { id } = await flow.producer().submit(numbers(total), { limit: SLOTS });
    await until(() => work.settled.size === QUICK && work.running.size === SLOTS);
    const before = redis.callsOf('settle');
    // The last one starts in its place.
    const first = work.letOne();
    // It would wait longer for this one.
    await sleep(SETTLE_DELAY_MS / 5);
    const second = work.letOne();
    await until(() => work.settled.has(first) && work.settled.has(second));
    expect(redis.callsOf('settle') - before).toBe(2);
    work.letAll();
    await ranOnce(flow, id, work.started, total);
  });
});

describe('outcomes', { tags: ['one-server'] }, () => {
  test('wait for no others while somebody follows the results', async ({ flow }) => {
    const redis = clientOf(flow, LossyRedis);
    const { id, work, worker } = await readAhead(flow, { redis });
    flow.after(() => worker.close());
    const seen: number[] = [];
    const reading = (async () => {
      for await (const { index } of piecework(flow).request(id).results()) seen.push(index);
    })();
    const { request } = flow.request(id).keys;
    await until(() => flow.connection.client.hexists(request, 'followedUntil'), {
      what: 'the reader says that it follows',
    });
    // With the answer to its settle the worker knows.
    const first = work.letOne();
    await until(() => work.settled.has(first));
    const before = redis.callsOf('settle');
    const others = [work.letOne()];
    for (let i = 0; i < 2; i += 1) {
      await sleep(SETTLE_DELAY_MS / 10);
      others.push(work.letOne());
    }
    await until(() => others.every((n) => work.settled.has(n)));
    // Each would wait for much longer.
    expect(redis.callsOf('settle') - before).toBeGreaterThan(1);
    work.letAll();
    await ranOnce(flow, id, work.started);
    await reading;
    expect(seen).toHaveLength(TOTAL);
  });
});

/** What runs may end: nothing starts in its place, and all that was read ahead goes back. */
async function startsNothing(flow: Flow, scene: Scene) {
  const { work } = scene;
  const { length } = work.started;
  work.letAll();
  await ownsNothing(flow, scene);
  expect(work.started).toHaveLength(length);
}

describe('nothing that was read ahead starts', () => {
  test('after a settle says that the request is paused', async ({ flow }) => {
    const scene = await readAhead(flow);
    const { id, work } = scene;
    await withoutNotice(flow, id, { paused: true });
    // The worker does not know yet: this one may have a successor.
    const first = work.letOne();
    await until(() => work.settled.has(first));
    await startsNothing(flow, scene);
    await piecework(flow).request(id).resume();
    await ranOnce(flow, id, work.started);
  });

  test('after the queue was paused', async ({ flow }) => {
    const told = gate();
    Object.assign(flow.log, {
      info: (_: unknown, what: string) => what === 'queue paused' && told.open(),
    });
    const scene = await readAhead(flow);
    const { id, work } = scene;
    const { admin } = piecework(flow);
    flow.after(() => admin.resumeQueue());
    await admin.pauseQueue();
    await told.opened;
    await startsNothing(flow, scene);
    await admin.resumeQueue();
    await ranOnce(flow, id, work.started);
  });

  test('after a handler held its request', async ({ flow }) => {
    const scene = await readAhead(flow);
    const { id, work } = scene;
    const { length } = work.started;
    work.letOne('hold');
    await until(() => work.running.size === SLOTS - 1);
    await until(async () => Number((await state(flow, id))?.state.heldUntil) > 0);
    // The reply that tells the worker was sent before the one that was just read, and may be read after it.
    await nextTurn();
    work.letAll();
    await ownsNothing(flow, scene);
    expect(work.started).toHaveLength(length);
    expect(await state(flow, id)).toMatchObject({ ready: TOTAL - QUICK - SLOTS + 1 });
  });

  test('after the request was cancelled', async ({ flow }) => {
    const scene = await readAhead(flow);
    const { id, work } = scene;
    const { length } = work.started;
    await piecework(flow).request(id).cancel();
    await until(() => work.aborted === SLOTS);
    work.letAll();
    expect(await flow.complete(id)).toMatchObject({
      succeeded: QUICK + SLOTS,
      cancelled: TOTAL - QUICK - SLOTS,
    });
    expect(work.started).toHaveLength(length);
  });

  test('after the request was dropped', async ({ flow }) => {
    const { id, work, worker } = await readAhead(flow);
    const { length } = work.started;
    await piecework(flow).request(id).drop();
    await until(() => work.aborted === SLOTS);
    work.letAll();
    await until(() => worker.running === 0);
    expect(work.started).toHaveLength(length);
  });

  test('after the server says that the permits were withdrawn', async ({ flow }) => {
    const { id, work, worker } = await readAhead(flow);
    const started: number[] = [];
    worker.on('leaseLost', () => {
      started.push(work.started.length);
      work.letAll();
      // Before the worker can have new permits.
      setImmediate(() => started.push(work.started.length));
    });
    const { request } = flow.request(id).keys;
    const { client } = flow.connection;
    await client.hdel(request, `permits:${worker.id}`, `lease:${worker.id}`);
    await client.hset(request, 'granted', 0);
    work.letOne();
    await until(() => started.length === 2);
    expect(started[1]).toBe(started[0]);
    expect(await flow.complete(id)).toMatchObject({ succeeded: TOTAL, failed: 0 });
  });

  test('after the lease by the clock of its worker, as behind a handler that blocked it', async ({
    flow,
  }) => {
    const leaseMs = BLOCK_MS - 200;
    const { id, work, worker } = await readAhead(flow, { leaseMs, maxBlockMs: 0 });
    const seen: string[] = [];
    worker.on('leaseLost', () => seen.push('lost'));
    work.onStart = () => seen.push('started');
    work.letOne('block');
    await until(() => seen.length > 0);
    expect(seen[0]).toBe('lost');
    work.letAll();
    expect(await flow.complete(id)).toMatchObject({ succeeded: TOTAL, failed: 0 });
  });

  test('in a worker that closes; another one runs it, and no attempt or crash is counted', async ({
    flow,
  }) => {
    const scene = await readAhead(flow);
    const { id, work, worker } = scene;
    const { length } = work.started;
    const closed = worker.close({ timeoutMs: 20_000 });
    await new Promise((resolve) => setImmediate(resolve));
    work.letAll();
    await closed;
    expect(work.started).toHaveLength(length);
    expect(await state(flow, id)).toMatchObject({ inFlight: 0, ready: TOTAL - length, delayed: 0 });
    const counts = new Set<string>();
    const next = flow.worker({
      handler: (n: number, { attempt, crashes }) => {
        work.started.push(n);
        counts.add(`${attempt} ${crashes}`);
        return n;
      },
    });
    await next.start();
    await ranOnce(flow, id, work.started);
    expect([...counts]).toEqual(['1 0']);
  });
});

describe('what was read ahead', () => {
  test('behind handlers that turn out slow goes to a worker that is idle', async ({ flow }) => {
    const { id, work } = await readAhead(flow, {}, { limit: 2 * SLOTS });
    const idle = flow.worker({
      concurrency: SLOTS,
      handler: (n: number) => work.started.push(n),
    });
    await idle.start();
    await until(async () => Number((await state(flow, id))?.state.succeeded) === TOTAL - SLOTS, {
      what: 'all has succeeded but what runs',
    });
    expect(work.running.size).toBe(SLOTS);
    work.letAll();
    await ranOnce(flow, id, work.started);
  });

  test('goes back without others being read for it', async ({ flow }) => {
    const { id, work, worker } = await readAhead(flow);
    const { work: stream } = flow.request(id).keys;
    const lastRead = async () => {
      const [group] = (await flow.connection.client.xinfo('GROUPS', stream)) as unknown[][];
      return group?.[group.indexOf('last-delivered-id') + 1];
    };
    const before = await lastRead();
    await until(async () => (await owned(flow, id, worker.id)).pending === SLOTS, {
      what: 'only what runs is owned',
    });
    expect(await lastRead()).toBe(before);
    work.letAll();
    await ranOnce(flow, id, work.started);
  });

  test('is known when the reply to a settle was lost', { tags: 'one-server' }, async ({ flow }) => {
    const redis = clientOf(flow, LossyRedis);
    const { id, work, worker } = await readAhead(flow, { redis }, { limit: 2 * SLOTS });
    flow.after(() => worker.close());
    let settles = 0;
    worker.on('settled', () => {
      settles = redis.callsOf('settle');
    });
    redis.loseNext('settle');
    // So many that the settle reads others in their place.
    work.letThese();
    await until(() => work.settled.size === QUICK + SLOTS);
    // What the lost reply brought is given back, and nothing else: another worker would run that too.
    await until(() => redis.callsOf('settle') > settles);
    await redis.ping();
    const other = flow.worker({ handler: (n: number) => work.started.push(n) });
    await other.start();
    await until(async () => (await state(flow, id))?.ready === 0, { everyMs: 2 });
    work.letAll();
    await ranOnce(flow, id, work.started);
  });

  test('by a settle whose reply was lost is found', { tags: 'one-server' }, async ({ flow }) => {
    const redis = clientOf(flow, LossyRedis);
    const work = new Work();
    const worker = flow.worker({
      ...{ redis, concurrency: SLOTS, leaseMs: LONG_MS, settleDelayMs: SETTLE_DELAY_MS },
      handler: work.handler,
    });
    flow.after(() => worker.close());
    worker.on('settled', ({ index }) => {
      // The next settle is the first that reads ahead.
      if (work.settled.size === 0) redis.loseNext('settle');
      work.settled.add(index);
    });
    await worker.start();
    const { id } = await flow.producer().submit(numbers(TOTAL), { limit: SLOTS });
    await until(() => work.settled.size === QUICK);
    work.letAll();
    await ranOnce(flow, id, work.started);
  });

  test('by a process that was killed is run once by others', async ({ flow }) => {
    const dead = await startWorker(flow, { minMs: 100, maxMs: 150 }, { settleDelayMs: 400 });
    const { id } = await flow.producer().submit(numbers(200), { limit: 2 * SLOTS });
    const seen = await until(
      async () => {
        const now = await owned(flow, id, dead.id);
        return now.pending > now.permits + 3 && now;
      },
      { everyMs: 2, what: 'something is read ahead' },
    );
    dead.kill('SIGKILL');
    await dead.ended;
    expect(seen.permits).toBe(SLOTS);
    const alive: number[] = [];
    const worker = flow.worker({
      concurrency: SLOTS,
      handler: async (n: number) => {
        alive.push(n);
        await sleep(2);
        return n;
      },
    });
    await worker.start();
    await leaseOver(flow, id, dead.id);
    expect(await flow.complete(id)).toMatchObject({ succeeded: 200, failed: 0, total: 200 });
    expect([...(await flow.results(id)).keys()].sort((a, b) => a - b)).toEqual(numbers(200));
    expect(new Set(alive).size).toBe(alive.length);
    // What the dead one had ended and not settled, or was running.
    const again = (await dead.started()).filter((n) => alive.includes(n));
    expect(again.length).toBeGreaterThan(0);
  });
});
