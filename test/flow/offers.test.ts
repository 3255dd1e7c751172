/**
 * Requests that are submitted in one call, which needs one server for all keys.
 * @module-tag one-server
 */
import type { Granted } from '@piecework/protocol';
import type { Worker } from '@piecework/worker';
import { Redis } from 'ioredis';
import { describe, expect } from 'vitest';
import { Offer } from '../../packages/worker/dist/fetch/offer.js';
import { startDeafProxy } from '../support/deaf-proxy.js';
import { type Flow, numbers, test } from '../support/flow.js';
import { LEASE_MS } from '../support/given.js';
import { scriptOf } from '../support/script-names.js';
import { until } from '../support/until.js';

/** A client that notes the scripts that it sends. */
class Noting extends Redis {
  readonly sent: string[] = [];

  override sendCommand(
    ...[command, stream]: Parameters<Redis['sendCommand']>
  ): ReturnType<Redis['sendCommand']> {
    const script = scriptOf(command.name, command.args);
    if (script) this.sent.push(script);
    return super.sendCommand(command, stream);
  }
}

const offerOf = (flow: Flow, { id }: Pick<Worker, 'id'>) =>
  flow.connection.client.hget(flow.queueCommands.keys.offers, id);

/** Waits until an offer of this worker stands. */
const offers = (flow: Flow, worker: Pick<Worker, 'id'>) =>
  until(async () => /^\d/.test((await offerOf(flow, worker)) ?? ''), { what: 'it offers' });

/** Waits until a request was entered by an offer of this worker. */
const isTaken = (flow: Flow, worker: Pick<Worker, 'id'>) =>
  until(async () => (await offerOf(flow, worker))?.startsWith('taken'), { what: 'it is taken' });

/** Behind this proxy a worker does not receive what is published from `deafen` on. */
async function behindProxy(flow: Flow) {
  const proxy = await startDeafProxy(flow.redis as string, /ssubscribe/i);
  flow.after(() => proxy.close());
  return proxy;
}

const crashes = (_: unknown, context: { readonly crashes: number }) => context.crashes;

describe('an idle worker', () => {
  test('runs one request after the other without a token and an enter', async ({ flow }) => {
    const redis = new Noting(flow.redis as string, { protocol: 2 });
    flow.after(() => redis.disconnect());
    const worker = flow.worker({ redis, handler: (n: number) => n });
    await worker.start();
    flow.after(() => worker.close());
    const producer = flow.producer();
    const runOne = async (n: number) => {
      const { id } = await producer.submit([n, n + 1], { id: flow.id(`r${n}`) });
      expect(await flow.complete(id)).toMatchObject({ succeeded: 2 });
      expect([...(await flow.results(id)).values()]).toEqual([n, n + 1]);
    };
    await offers(flow, worker);
    redis.sent.length = 0;
    for (const n of numbers(5)) {
      await runOne(n);
      await offers(flow, worker);
    }
    expect(redis.sent.filter((script) => script.startsWith('enter'))).toEqual([]);
    expect(redis.sent).toContain('settle-compact');
    expect(redis.sent).not.toContain('settle');
  });

  test('has what it is given beside a request that takes all its slots later', async ({ flow }) => {
    const worker = flow.worker({ concurrency: 1, handler: (n: number) => n });
    await worker.start();
    flow.after(() => worker.close());
    await offers(flow, worker);
    const producer = flow.producer();
    // More than a compact request may have, so they come by a token.
    const large = await producer.submit(numbers(200));
    const small = await Promise.all(numbers(3).map((n) => producer.submit([n])));
    for (const { id } of small) expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
    expect(await flow.complete(large.id)).toMatchObject({ succeeded: 200 });
  });

  test('gives back what it was given in a message that got lost', async ({ flow }) => {
    const proxy = await behindProxy(flow);
    const deaf = flow.worker({ redis: proxy.url, handler: crashes, leaseMs: 60_000 });
    await deaf.start();
    flow.after(() => deaf.close());
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
    const other = flow.worker({ handler: crashes });
    await other.start();
    flow.after(() => other.close());
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
    expect((await flow.results(id)).get(0)).toBe(0);
  });

  test('that closes offers nothing any more', async ({ flow }) => {
    const worker = flow.worker({ handler: (n: number) => n });
    await worker.start();
    await offers(flow, worker);
    await worker.close();
    expect(await offerOf(flow, worker)).toBeNull();
  });

  test('takes its turn by tokens only, where it has several queues', async ({ flow }) => {
    const worker = flow.worker({ shards: 2, handler: (n: number) => n });
    await worker.start();
    flow.after(() => worker.close());
    const made = flow.queueCommands.keys.offers;
    const { id } = await flow.producer({ shards: 2 }).submit([1]);
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
    expect(await flow.connection.client.exists(made)).toBe(0);
  });
});

/** An offer of a worker that is idle, and what it was asked to enter again. */
function offerIn(flow: Flow) {
  let op = 0;
  const missed: unknown[][] = [];
  const context = {
    id: 'idle',
    connection: flow.connection,
    memory: { of: () => ({ isStale: false, tight: false, refresh: async () => {} }) },
    lately: { averageMs: undefined },
    handlers: { served: '*', pulled: false },
    leaseMs: LEASE_MS,
    quantumMs: 100,
    settleDelayMs: 4,
    nextOp: () => ++op,
  };
  const slots = { free: 3, shared: false };
  flow.after(() => flow.queueCommands.deregister('idle'));
  const hooks = {
    isIdle: () => true,
    fleet: () => 1,
    onMissed: (...about: unknown[]) => missed.push(about),
  };
  const offer = new Offer(
    context as unknown as ConstructorParameters<typeof Offer>[0],
    flow.queueCommands,
    slots as unknown as ConstructorParameters<typeof Offer>[2],
    hooks,
  );
  return { offer, missed, context };
}

const grantOf = (id: string, generation: number, op: number, ends: number) =>
  ({ id, generation, op, entered: { ends } }) as unknown as Granted;

describe('what was entered by an offer', () => {
  test('is entered once, whether the message or the answer of the server comes first', async ({
    flow,
  }) => {
    const { offer, missed } = offerIn(flow);
    await offer.check();
    const { id, generation } = await flow.producer().submit([1]);
    // Nobody listens, so that a token was pushed: as though it had been entered, and the message were under way.
    await flow.connection.client.hset(flow.queueCommands.keys.offers, {
      idle: `taken ${Date.now()} 1 ${id}~${generation}`,
    });
    await offer.close();
    expect(missed).toEqual([[id, generation, 1]]);
    expect(offer.granted(grantOf(id, generation, 1, Date.now()))).toBeUndefined();
    await offer.close();
    expect(missed).toHaveLength(1);
    const worker = flow.worker({ handler: (n: number) => n });
    await worker.start();
    flow.after(() => worker.close());
    await flow.complete(id);
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
