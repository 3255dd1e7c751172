/**
 * Idle processes that send few commands. They note what they send by a client of one server.
 * @module-tag one-server
 */
import { type Idle, InvalidOptionError } from '@piecework/protocol';
import { RetryQueue, Scheduler } from '@piecework/queues';
import { Worker } from '@piecework/worker';
import { DelayedTasks, Notifier, Piecework } from 'piecework';
import { describe, expect, it } from 'vitest';
import { holds, startWorker } from '../support/fleet.js';
import { type Flow, gate, test } from '../support/flow.js';
import { NotingRedis } from '../support/noting-redis.js';
import { until } from '../support/until.js';

/** As long as a frugal process needs, on a machine that has little time for it. */
const PATIENT = { timeoutMs: 40_000 };

const registered = async (flow: Flow, { id }: Pick<Worker, 'id'>) =>
  (await flow.queueCommands.workers()).find((one) => one.id === id);

/** Opens the same with each setting. Counts the calls of this script that each has sent since. */
async function both(
  flow: Flow,
  script: string,
  open: (redis: NotingRedis, idle: Idle) => Promise<unknown>,
): Promise<() => Record<Idle, number>> {
  const redis = { responsive: new NotingRedis(flow), frugal: new NotingRedis(flow) };
  await Promise.all([open(redis.responsive, 'responsive'), open(redis.frugal, 'frugal')]);
  const sent = (idle: Idle) => redis[idle].sent.filter((one) => one === script).length;
  await until(() => sent('responsive') > 0 && sent('frugal') > 0, { what: `first ${script}` });
  const before = { responsive: sent('responsive'), frugal: sent('frugal') };
  return () => ({
    responsive: sent('responsive') - before.responsive,
    frugal: sent('frugal') - before.frugal,
  });
}

describe('an idle frugal process', () => {
  test('calls less often than a responsive one beside it: a worker', async ({ flow }) => {
    const calls = await both(flow, 'tick', async (redis, idle) => {
      const worker = flow.worker({ redis, idle, handler: () => {} });
      await worker.start();
      flow.after(() => worker.close());
    });
    await until(() => calls().responsive >= 2, { ...PATIENT, what: 'the other ticks' });
    expect(calls().frugal).toBe(0);
    const workers = await flow.queueCommands.workers();
    expect(workers.map(({ restMs }) => restMs).sort()).toEqual([5_000, 50_000]);
  });

  test('calls less often than a responsive one beside it: a notifier', async ({ flow }) => {
    const { id } = await flow.producer().submit([1]);
    const calls = await both(flow, 'read-state', async (redis, idle) => {
      const notifier = new Notifier({ redis, idle, queue: flow.queue });
      flow.after(() => notifier.close());
      notifier.completion(id).catch(() => {});
    });
    // The first two of them, perhaps, because the script was unknown, and because of the subscription.
    await until(() => calls().responsive >= 4, { ...PATIENT, what: 'the other reads' });
    expect(calls().frugal).toBeLessThanOrEqual(2);
    const worker = flow.worker({ handler: () => {} });
    await worker.start();
    await flow.complete(id);
  });

  test('calls less often than a responsive one beside it: a Scheduler', async ({ flow }) => {
    const any = new Scheduler({ redis: flow.redis, name: flow.id('scheduler') });
    flow.after(() => any.close());
    // From here on the server knows the script.
    await any.takeDue();
    const calls = await both(flow, 'timed-take', async (redis, idle) => {
      const scheduler = new Scheduler({ redis, idle, name: flow.id('scheduler') });
      flow.after(async () => {
        await scheduler.drop();
        await scheduler.close();
      });
      const over = new AbortController();
      flow.after(() => over.abort());
      scheduler.takeDue({ waitMs: 600_000, signal: over.signal }).catch(() => {});
    });
    // The first of them because of the subscription.
    await until(() => calls().responsive >= 2, { ...PATIENT, what: 'the other takes' });
    expect(calls().frugal).toBeLessThanOrEqual(1);
  });
});

describe('a frugal worker', () => {
  test('ticks as often as any other while it has work', async ({ flow }) => {
    const { opened, open } = gate<void>();
    const worker = flow.worker({ idle: 'frugal', handler: () => opened });
    await worker.start();
    flow.after(() => worker.close());
    expect(await registered(flow, worker)).toMatchObject({ restMs: 50_000, running: 0 });
    const { id } = await flow.producer().submit([1]);
    await until(async () => (await registered(flow, worker))?.restMs === 5_000, {
      what: 'it says that it works',
    });
    expect(worker.health()).toMatchObject({ ready: true, why: [] });
    open();
    await flow.complete(id);
    await until(async () => (await registered(flow, worker))?.restMs === 50_000, {
      what: 'it rests again',
    });
  });

  for (const dead of ['responsive', 'frugal'] as const)
    test(`takes over from a ${dead} worker that has died`, async ({ flow }) => {
      const died = await startWorker(flow, { hold: true }, { idle: dead, concurrency: 1 });
      const { id } = await flow.producer().submit([1]);
      await until(() => holds(flow, id, died.id));
      const worker = flow.worker({ idle: 'frugal', handler: () => worker.id });
      await worker.start();
      flow.after(() => worker.close());
      died.kill('SIGKILL');
      expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
      expect((await flow.results(id)).get(0)).toBe(worker.id);
    });
});

it('is a typed error where the word is another one', () => {
  const wrong = { redis: 'redis://localhost:1', idle: 'lazy' as never };
  const makes = [
    () => new Worker({ ...wrong, handler: () => {} }),
    () => new Piecework(wrong),
    () => new Notifier(wrong),
    () => new DelayedTasks(wrong),
    () => new Scheduler(wrong),
    () => new RetryQueue(wrong),
  ];
  for (const make of makes) {
    expect(make).toThrow(InvalidOptionError);
    expect(make).toThrow(`idle: "lazy" is not allowed; allowed: 'responsive' or 'frugal'`);
  }
});
