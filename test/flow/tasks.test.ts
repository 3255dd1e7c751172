import { setTimeout as sleep } from 'node:timers/promises';
import type { HandlerContext } from '@piecework/worker';
import { describe, expect } from 'vitest';
import { type Flow, mastersOf, numbers, test } from '../support/flow.js';
import { NotingRedis } from '../support/noting-redis.js';
import { until } from '../support/until.js';

/** Handlers that keep what they ran, by task. */
function handlersFor(...tasks: string[]) {
  const ran: Record<string, number[]> = {};
  const handlers = tasks.map((task) => ({
    task,
    run: async (n: number, _: HandlerContext) => {
      ran[task] ??= [];
      ran[task].push(n);
      await new Promise((resolve) => setTimeout(resolve, 2));
      return `${task} ${n}`;
    },
  }));
  return { ran, handlers };
}

/** How often no handler began for so long that a worker may have waited for a tick, in beats. */
const PAUSE_BEATS = 25;
const BEAT_MS = 10;

/**
 * How often a worker has paused, which has begun so many. A beat that comes late is one, and the server has to
 * answer it: while this process or the server stands still nobody waits.
 */
function pausesOf(flow: Flow, begun: () => number) {
  let [count, idle, last] = [0, 0, 0];
  const over = new AbortController();
  const beat = async () => {
    await sleep(BEAT_MS);
    await Promise.all(mastersOf(flow.connection).map((master) => master.ping()));
    idle = begun() > last ? 0 : idle + 1;
    last = begun();
    if (idle === PAUSE_BEATS) count += 1;
  };
  const beating = (async () => {
    while (!over.signal.aborted) await beat();
  })();
  return {
    get count() {
      return count;
    },
    stop: () => {
      over.abort();
      return beating;
    },
  };
}

const parked = (flow: Flow) =>
  flow.connection.client.hgetall(flow.queueCommands.keys.parked) as Promise<Record<string, string>>;

/** A started worker of one task, and how often it has ticked. */
async function searching(flow: Flow, task: string) {
  const redis = new NotingRedis(flow);
  const worker = flow.worker({ redis, handlers: handlersFor(task).handlers });
  await worker.start();
  flow.after(() => worker.close());
  return () => redis.sent.filter((script) => script === 'tick').length;
}

describe('a worker with named handlers', () => {
  test('searches for parked requests at the same pace, however many requests it ends', {
    tags: ['one-server'],
  }, async ({ flow }) => {
    const [ofBusy, ofIdle] = [await searching(flow, 'busy'), await searching(flow, 'idle')];
    const producer = flow.producer();
    for (let i = 0; i < 60; i += 1) {
      const { id } = await producer.submit([i], { id: flow.id(`${i}`), task: 'busy' });
      await flow.complete(id);
    }
    const [before, idleBefore] = [ofBusy(), ofIdle()];
    await until(() => ofIdle() >= idleBefore + 4);
    expect(ofBusy() - before).toBeLessThan(12);
  });

  test('runs each task by its own handler, and no other task', async ({ flow }) => {
    const { ran, handlers } = handlersFor('census', 'resize');
    const worker = flow.worker({ handlers });
    await worker.start();
    const producer = flow.producer();
    await producer.submit(numbers(20), { id: flow.id('other'), task: 'other' });
    await producer.submit(numbers(20), { id: flow.id('none') });
    await producer.submit(numbers(20), { id: flow.id('census'), task: 'census' });
    await producer.submit(numbers(20, 100), { id: flow.id('resize'), task: 'resize' });
    await flow.complete(flow.id('census'));
    await flow.complete(flow.id('resize'));
    expect(ran.census?.sort((a, b) => a - b)).toEqual(numbers(20));
    expect(ran.resize?.sort((a, b) => a - b)).toEqual(numbers(20, 100));
    await until(async () => Object.keys(await parked(flow)).length === 2);
    expect(await flow.request(flow.id('other')).inspect()).toMatchObject({
      ready: 20,
      inFlight: 0,
    });
    expect(await flow.request(flow.id('none')).inspect()).toMatchObject({ ready: 20, inFlight: 0 });
    // Its names are no start of longer ones, and the other way round.
    await producer.submit([1], { id: flow.id('longer'), task: 'census.' });
    await producer.submit([1], { id: flow.id('shorter'), task: 'censu' });
    await until(async () => Object.keys(await parked(flow)).length === 4);
  });

  test('leaves requests of other tasks, or of none, to a worker with one handler for all', async ({
    flow,
  }) => {
    const { handlers } = handlersFor('census');
    await flow.worker({ handlers }).start();
    const producer = flow.producer();
    await producer.submit(numbers(50), { id: flow.id('any') });
    await producer.submit(numbers(50), { id: flow.id('named'), task: 'whatever' });
    await until(async () => Object.keys(await parked(flow)).length === 2);
    await flow.worker({ handler: (n: number) => n }).start();
    expect(await flow.complete(flow.id('any'))).toMatchObject({ succeeded: 50 });
    expect(await flow.complete(flow.id('named'))).toMatchObject({ succeeded: 50 });
    expect(await parked(flow)).toEqual({});
  });

  test('makes progress beside many others', async ({ flow }) => {
    const tasks = ['a', 'b', 'c'];
    const fleet = [['a'], ['b'], ['c'], ['a', 'b'], ['c', 'a']].map((served) => {
      const { ran, handlers } = handlersFor(...served);
      return { ran, worker: flow.worker({ handlers, concurrency: 4 }) };
    });
    await Promise.all(fleet.map(({ worker }) => worker.start()));
    const producer = flow.producer();
    const given = numbers(9).map((n) => ({ id: flow.id(String(n)), task: tasks[n % 3]! }));
    await Promise.all(
      given.map((options) => producer.submit(numbers(60), { ...options, limit: 6 })),
    );
    for (const { id } of given)
      expect(await flow.complete(id)).toMatchObject({ succeeded: 60, failed: 0 });
    const runs = fleet.flatMap(({ ran }) => Object.values(ran)).flat().length;
    expect(runs).toBe(9 * 60);
  });

  test('does not slow down others whose tasks it meets', async ({ flow }) => {
    const mine = handlersFor('mine');
    const idle = handlersFor('idle');
    await flow.worker({ handlers: idle.handlers, concurrency: 10 }).start();
    const worker = flow.worker({ handlers: mine.handlers, concurrency: 4 });
    await worker.start();
    const pauses = pausesOf(flow, () => mine.ran['mine']?.length ?? 0);
    flow.after(pauses.stop);
    await flow.producer().submit(numbers(1_500), { id: flow.id('mine'), task: 'mine', limit: 50 });
    expect(await flow.complete(flow.id('mine'))).toMatchObject({ succeeded: 1_500 });
    // 1,500 sub-requests in 4 slots: a worker that waited for a tick each second would pause far more often.
    expect(pauses.count).toBeLessThan(7);
  });
});

test('a busy worker takes parked requests in the order of their priority', async ({ flow }) => {
  let busy = true;
  const endless = (function* () {
    while (busy) yield 1;
  })();
  const producer = flow.producer();
  const submitting = producer.submit(endless, {
    id: flow.id('endless'),
    task: 'endless',
    window: 100,
  });
  await until(async () => Number((await flow.request(flow.id('endless')).state())?.total) > 90);
  // Its two slots are never free: there is always more of the endless one.
  const handlers = ['endless', 'known'].map((task) => ({
    task,
    run: () => new Promise((resolve) => setTimeout(resolve, 5)),
  }));
  const worker = flow.worker({ handlers, concurrency: 2 });
  await worker.start();
  await until(() => worker.running === 2);
  // This one is idle, so it pops the tokens first; and it does not serve the task.
  await flow.worker({ handlers: handlersFor('strange').handlers }).start();
  await producer.submit(numbers(10), { id: flow.id('urgent'), task: 'known', priority: 0 });
  expect(await flow.complete(flow.id('urgent'), 20_000)).toMatchObject({ succeeded: 10 });
  busy = false;
  await submitting;
  await flow.complete(flow.id('endless'));
});
