import { setTimeout as sleep } from 'node:timers/promises';
import type { HandlerContext } from '@piecework/worker';
import { afterEach, describe, expect, vi } from 'vitest';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

/** Keeps which request each handler that starts belongs to. */
class Starts {
  readonly order: string[] = [];
  readonly handler = async (ms: number, { requestId }: HandlerContext) => {
    // By their last part: the names that the tests give.
    this.order.push(requestId.split('.').at(-1) as string);
    if (ms > 0) await sleep(ms);
  };
  /** How many of `id` had started when the last of `of` did. */
  startedBefore(id: string, of: string): number {
    return this.order.slice(0, this.order.lastIndexOf(of)).filter((name) => name === id).length;
  }
}

/** How long a sub-request takes by the clock of `timeOfWork`, in ms. */
const WORK_MS = 5;

/**
 * From now on time passes as work is started on so many slots: what a time slice holds is then the
 * same on a machine that is busy with something else. While nothing starts it stands still, so what waits for time
 * instead of a slot waits for ever.
 */
function timeOfWork(starts: Starts, slots: number): void {
  const begin = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(
    () => begin + (starts.order.length / slots) * WORK_MS,
  );
}

const repeat = (n: number, ms: number): number[] => Array(n).fill(ms);

async function completed(flow: Flow, names: readonly string[]): Promise<void> {
  for (const name of names) {
    expect(await flow.complete(flow.id(name))).toMatchObject({ outcome: 'succeeded' });
  }
}

describe('with quantumMs 0 and one slot', () => {
  test('a hundred requests are started in the order of their priorities', async ({ flow }) => {
    const starts = new Starts();
    const producer = flow.producer();
    // In an order that has nothing to do with theirs.
    const priorities = numbers(100).map((n) => (n * 37 + 11) % 100);
    for (const priority of priorities) {
      await producer.submit(repeat(3, 0), { id: flow.id(`p${priority}`), priority });
    }
    await flow.worker({ concurrency: 1, quantumMs: 0, handler: starts.handler }).start();
    await completed(
      flow,
      numbers(100).map((n) => `p${n}`),
    );
    expect(starts.order).toEqual(numbers(100).flatMap((n) => [`p${n}`, `p${n}`, `p${n}`]));
  });

  test.for([1, 3, 10, 40, 1_000])(
    'two equal requests of limit %i alternate',
    async (limit, { flow }) => {
      const starts = new Starts();
      const producer = flow.producer();
      await producer.submit(repeat(60, 0), { id: flow.id('a'), limit });
      await producer.submit(repeat(60, 0), { id: flow.id('b'), limit });
      await flow.worker({ concurrency: 1, quantumMs: 0, handler: starts.handler }).start();
      await completed(flow, ['a', 'b']);
      expect(starts.order).toEqual(numbers(60).flatMap(() => ['a', 'b']));
    },
  );

  test('several equal requests take turns', async ({ flow }) => {
    const starts = new Starts();
    const producer = flow.producer();
    const names = ['a', 'b', 'c', 'd', 'e'];
    for (const name of names) await producer.submit(repeat(30, 0), { id: flow.id(name) });
    await flow.worker({ concurrency: 1, quantumMs: 0, handler: starts.handler }).start();
    await completed(flow, names);
    expect(starts.order).toEqual(numbers(30).flatMap(() => names));
  });
});

describe('with the default time slice', () => {
  afterEach(() => void vi.restoreAllMocks());

  test.for([
    { concurrency: 1, limit: 10, items: 600 },
    // So many that the two slices by which one may be ahead weigh little, with what was read ahead in each.
    { concurrency: 10, limit: 10, items: 8_000 },
    { concurrency: 10, limit: 100, items: 8_000 },
    { concurrency: 10, limit: 4, items: 2_000 },
  ])(
    'equal requests end together: $concurrency slots, limit $limit',
    async ({ concurrency, limit, items }, { flow }) => {
      const starts = new Starts();
      const producer = flow.producer();
      await producer.submit(repeat(items, 1), { id: flow.id('a'), limit });
      await producer.submit(repeat(items, 1), { id: flow.id('b'), limit });
      timeOfWork(starts, concurrency);
      await flow.worker({ concurrency, handler: starts.handler }).start();
      await completed(flow, ['a', 'b']);
      const [first, last] =
        starts.order.lastIndexOf('a') < starts.order.lastIndexOf('b') ? ['a', 'b'] : ['b', 'a'];
      // Without turns it would be hardly any. On a busy machine a question lasts as long as many handlers.
      expect(starts.startedBefore(last, first)).toBeGreaterThanOrEqual(items * 0.8);
    },
  );

  test('equal requests end together over several workers', async ({ flow }) => {
    const starts = new Starts();
    const producer = flow.producer();
    // So many that a worker which stands still for a moment weighs little.
    const items = 6_000;
    await producer.submit(repeat(items, WORK_MS), { id: flow.id('a'), limit: 50 });
    await producer.submit(repeat(items, WORK_MS), { id: flow.id('b'), limit: 50 });
    timeOfWork(starts, 15);
    for (let i = 0; i < 3; i += 1) {
      await flow.worker({ concurrency: 5, handler: starts.handler }).start();
    }
    await completed(flow, ['a', 'b']);
    const [first, last] =
      starts.order.lastIndexOf('a') < starts.order.lastIndexOf('b') ? ['a', 'b'] : ['b', 'a'];
    // Three workers are never even on two requests. Without time slices one has two of them: 0.36.
    expect(starts.startedBefore(last, first)).toBeGreaterThanOrEqual(items * 0.8);
  });

  test('a more urgent one that comes later gets the slots within a few slices', async ({
    flow,
  }) => {
    const starts = new Starts();
    const producer = flow.producer();
    await producer.submit(repeat(1_500, WORK_MS), {
      id: flow.id('later'),
      priority: 60,
      limit: 30,
    });
    timeOfWork(starts, 10);
    await flow.worker({ concurrency: 10, handler: starts.handler }).start();
    await until(() => starts.order.length > 100);
    await producer.submit(repeat(300, WORK_MS), { id: flow.id('urgent'), priority: 10, limit: 30 });
    const before = starts.order.length;
    await completed(flow, ['urgent', 'later']);
    const begin = starts.order.indexOf('urgent');
    const end = starts.order.lastIndexOf('urgent');
    // Ten slots, ten sub-requests a slice and slot: five slices.
    expect(begin - before).toBeLessThan(500);
    // And then it has them for itself, but for those that the other still ran.
    expect(starts.order.slice(begin, end).filter((id) => id === 'later').length).toBeLessThan(50);
  });

  test('one that cannot use the slots leaves them to others', async ({ flow }) => {
    const held = gate();
    const starts = new Starts();
    const handler = async (ms: number, ctx: HandlerContext) => {
      await starts.handler(Math.max(ms, 0), ctx);
      if (ms < 0) await held.opened;
    };
    const producer = flow.producer();
    await producer.submit(repeat(50, -1), { id: flow.id('urgent'), priority: 0, limit: 3 });
    await producer.submit(repeat(300, 1), { id: flow.id('later'), priority: 99, limit: 50 });
    await flow.worker({ concurrency: 5, handler }).start();
    await completed(flow, ['later']);
    expect(starts.order.filter((id) => id === 'urgent')).toHaveLength(3);
    held.open();
    await completed(flow, ['urgent']);
  });
});
