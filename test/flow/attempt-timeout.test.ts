import { TimeoutError } from '@piecework/protocol';
import type { HandlerContext } from '@piecework/worker';
import { describe, expect } from 'vitest';
import { gate, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

/** In time for a handler that ends at once, also on a machine that stands still for a moment. */
const AMPLE_MS = 500;

describe('an attempt that takes longer than it may', () => {
  test('fails at once, and what it does later counts for nothing', async ({ flow }) => {
    const hold = gate();
    const reasons: unknown[] = [];
    const handler = async (n: number, { attempt, signal }: HandlerContext) => {
      if (attempt > 1) return `${n} again`;
      signal.addEventListener('abort', () => reasons.push(signal.reason));
      // It does not care, and succeeds in the end.
      await hold.opened;
      return 'late';
    };
    const worker = flow.worker({ handler, concurrency: 4 });
    await worker.start();
    const options = { attempts: 2, attemptTimeoutMs: AMPLE_MS };
    const { id } = await flow.producer().submit(numbers(2), options);
    expect(await flow.complete(id)).toMatchObject({ succeeded: 2, failed: 0 });
    expect(reasons).toEqual([expect.any(TimeoutError), expect.any(TimeoutError)]);
    expect(worker.running).toBe(2);
    hold.open();
    await until(() => worker.running === 0);
    expect([...(await flow.results(id)).values()].sort()).toEqual(['0 again', '1 again']);
  });

  test('fails for good when it was the last one, and says why', async ({ flow }) => {
    const hold = gate();
    await flow.worker({ handler: () => hold.opened }).start();
    const { id } = await flow.producer().submit([1], { attemptTimeoutMs: 20 });
    expect(await flow.complete(id)).toMatchObject({ failed: 1, outcome: 'failed' });
    const [failure] = await flow.request(id).failures([0]);
    expect(JSON.parse(String(failure))).toMatchObject({
      name: 'TimeoutError',
      message: expect.stringContaining('not within 20 ms'),
    });
    hold.open();
  });

  test('keeps its slot until its handler has really ended', async ({ flow }) => {
    const hold = gate();
    let running = 0;
    let most = 0;
    const handler = async (n: number) => {
      running += 1;
      most = Math.max(most, running);
      if (n === 0) await hold.opened;
      running -= 1;
    };
    const worker = flow.worker({ handler, concurrency: 2 });
    await worker.start();
    // Only the one that is held has little time: others may be stopped with their machine in the middle.
    const late = await flow.producer().submit([0], { id: flow.id('late'), attemptTimeoutMs: 30 });
    expect(await flow.complete(late.id)).toMatchObject({ failed: 1 });
    const { id } = await flow.producer().submit(numbers(39, 1), { id: flow.id('in-time') });
    expect(await flow.complete(id)).toMatchObject({ succeeded: 39, failed: 0 });
    // All beside it, one after the other.
    expect(most).toBe(2);
    hold.open();
    await until(() => worker.running === 0);
    // And all of them are there again.
    const next = await flow.producer().submit(numbers(10), { id: flow.id('next') });
    expect(await flow.complete(next.id)).toMatchObject({ succeeded: 10 });
  });

  test('has failed too if it ended before anybody could stop it', async ({ flow }) => {
    const handler = (_: number) => {
      const end = performance.now() + 60;
      while (performance.now() < end);
      return 'too late';
    };
    await flow.worker({ handler }).start();
    const { id } = await flow.producer().submit([1], { attemptTimeoutMs: 20 });
    expect(await flow.complete(id)).toMatchObject({ failed: 1, succeeded: 0 });
  });

  test('gives no slot to a worker that has no other', async ({ flow }) => {
    const hold = gate();
    let starts = 0;
    const handler = () => {
      starts += 1;
      return hold.opened;
    };
    const stuck = flow.worker({ handler, concurrency: 1 });
    await stuck.start();
    const options = { attempts: 2, attemptTimeoutMs: AMPLE_MS, limit: 1 };
    const { id } = await flow.producer().submit([1], options);
    // It is ready before it is taken, too.
    await until(() => starts === 1);
    await until(async () => (await flow.request(id).inspect())?.ready === 1);
    expect(starts).toBe(1);
    // Somebody else takes the next attempt.
    await flow.worker({ handler: () => 'done', concurrency: 1 }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
    expect(starts).toBe(1);
    hold.open();
  });
});

describe('an attempt in time', () => {
  test('is not touched', async ({ flow }) => {
    let aborted = 0;
    const handler = async (n: number, { signal }: HandlerContext) => {
      signal.addEventListener('abort', () => {
        aborted += 1;
      });
      return n;
    };
    await flow.worker({ handler }).start();
    const { id } = await flow.producer().submit(numbers(50), { attemptTimeoutMs: 20_000 });
    expect(await flow.complete(id)).toMatchObject({ succeeded: 50 });
    expect(aborted).toBe(0);
  });
});
