/**
 * What is large in timed sets is taken, settled and remembered in portions.
 */
import type { RetryTask } from '@piecework/queues';
import { describe, expect, onTestFinished, vi } from 'vitest';
import { Holding } from '../../packages/queues/dist/timed/holding.js';
import { Locks } from '../../packages/queues/dist/timed/locks.js';
import { test } from '../support/timed.js';

const LARGE = 'x'.repeat(60_000);

describe('large objects', () => {
  test('are taken in several calls, as many as were asked for', async ({ timed }) => {
    const scheduler = timed.scheduler<{ body: string; k: number }>();
    await Promise.all(
      Array.from({ length: 20 }, (_, k) => scheduler.enqueue({ body: LARGE, k }, k)),
    );
    const due = await scheduler.takeDue({ count: 19, lockMs: 600_000 });
    expect(due.map(({ object }) => object.k)).toEqual(Array.from({ length: 19 }, (_, k) => k));
    expect(await scheduler.remove({ k: 3, body: LARGE })).toBe(true);
    expect(await scheduler.counts()).toMatchObject({ waiting: 1, locked: 18 });
  });

  test('are remembered by a short name: a Map finds long texts of one length one by one', () => {
    const locks = new Locks();
    const remembered = vi.spyOn(Map.prototype, 'set');
    onTestFinished(() => remembered.mockRestore());
    const keys = Array.from({ length: 20 }, (_, k) => `${LARGE}${k + 1_000}`);
    for (const key of keys) {
      const taken = { key, at: 0, created: 0, numFailures: 0, payload: '' };
      const lease = { token: key.slice(-4), lockedUntil: 0, sentMs: 0, leftMs: 1e12 };
      locks.add(new Holding(taken, lease, () => {}));
    }
    const names = remembered.mock.calls.map(([name]) => String(name));
    expect(Math.max(...names.map((name) => name.length))).toBeLessThan(1_000);
    for (const key of keys) expect(locks.tokenOf(key)).toBe(key.slice(-4));
    for (const key of keys) locks.forget(key, key.slice(-4));
    for (const key of keys) expect(locks.tokenOf(key)).toBeUndefined();
  });
});

test('tasks with large payloads that failed are put back in several calls', async ({ timed }) => {
  const queue = timed.retryQueue<string>();
  for (let i = 0; i < 4; i += 1) await queue.put('x'.repeat(300_000));
  const tasks: RetryTask<string>[] = [];
  for await (const task of queue.tasks({ demand: 4 })) if (tasks.push(task) === 4) break;
  const retried = await Promise.all(tasks.map((task) => task.retry({ delayMs: 60_000 })));
  expect(retried).toEqual([true, true, true, true]);
  const { client } = timed.connection;
  const callers = (await timed.keys()).filter((key) => key.includes(':caller:'));
  const calls = await Promise.all(callers.map((key) => client.hget(key, 'settle')));
  expect(calls.filter((number) => number !== null)).toEqual(['4']);
});
