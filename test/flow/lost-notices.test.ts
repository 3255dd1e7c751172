import { Notifier } from '@piecework/notifier';
import { describe, expect } from 'vitest';
import { ReadPace } from '../../packages/notifier/dist/waiting/read-pace.js';
import { startDeafProxy } from '../support/deaf-proxy.js';
import { numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

const SWEEP_MS = 15_000;

/** Lets `n` be waited for during `forMs`, by a clock of its own; when each was read. */
function reads(n: number, forMs: number): number[][] {
  const pace = new ReadPace<number>(SWEEP_MS);
  const readAt = numbers(n).map((): number[] => []);
  for (const thing of numbers(n)) pace.begin(thing, 0);
  for (let now = 0; now <= forMs; now += pace.stepMs)
    for (const thing of pace.due(now)) readAt[thing]?.push(now);
  return readAt;
}

const total = (readAt: number[][]) => readAt.reduce((sum, { length }) => sum + length, 0);

/** The longest time that one of them was not read. */
const longest = (readAt: number[][], forMs: number) =>
  Math.max(
    ...readAt.map((times) =>
      Math.max(...[...times, forMs].map((at, i) => at - (times[i - 1] ?? 0))),
    ),
  );

describe('an awaited request is read again, in case its notice was lost', () => {
  test.for([1, 10, 100])('within two seconds where %i are', (n) => {
    expect(longest(reads(n, 5 * 60_000), 5 * 60_000)).toBeLessThanOrEqual(2_000);
  });

  test.for([
    [1_000, 100],
    [10_000, 10_000 / 15],
  ] as const)('within 18 s where %i are, at no more than %i reads a second', ([n, aSecond]) => {
    const readAt = reads(n, 150_000);
    expect(longest(readAt, 150_000)).toBeLessThanOrEqual(18_000);
    expect(total(readAt)).toBeLessThanOrEqual(aSecond * 150);
  });

  test('less often the longer the wait lasts, and at least at the slow pace', () => {
    const [times = []] = reads(1, 2 * 3_600_000);
    const within = (from: number, to: number) => times.filter((at) => at >= from && at < to).length;
    expect(within(0, 300_000)).toBeGreaterThan(150);
    expect(within(3_600_000, 3_900_000)).toBeLessThanOrEqual(20);
    expect(longest([times], 2 * 3_600_000)).toBeLessThanOrEqual(18_000);
  });

  test('for all waiting callers when every notice is lost', {
    tags: ['one-server', 'plain'],
  }, async ({ flow }) => {
    const proxy = await startDeafProxy(flow.redis as string, /ssubscribe/i);
    flow.after(() => proxy.close());
    const notifier = new Notifier({ redis: proxy.url, queue: flow.queue });
    flow.after(() => notifier.close());
    const producer = flow.producer();
    const ids: string[] = [];
    for (const n of numbers(30)) ids.push((await producer.submit([n])).id);
    let heard = 0;
    const completions = ids.map((id) => notifier.completion(id).finally(() => (heard += 1)));
    await until(() => proxy.pops > 0);
    await flow.connection.client.ping();
    proxy.deafen();
    await flow.worker({ handler: (n: number) => n }).start();
    for (const id of ids) await flow.complete(id);
    // A slow pace, or whoever finds the connection dead, would take longer.
    await until(() => heard === ids.length, { timeoutMs: 10_000, what: 'all are heard of' });
    for (const { status } of await Promise.all(completions)) expect(status).toBe('succeeded');
  });
});
