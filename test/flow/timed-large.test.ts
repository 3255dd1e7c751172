/**
 * What is large in timed sets is taken, settled and remembered in portions.
 */
import type { RetryItem } from '@piecework/queues';
import { describe, expect, onTestFinished, vi } from 'vitest';
import { Locks } from '../../packages/queues/dist/timed/locks.js';
import { TakenItem } from '../../packages/queues/dist/timed/taken-item.js';
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

  test('are remembered by a digest: a Map compares long texts of one length one by one', () => {
    const locks = new Locks();
    const remembered = vi.spyOn(Map.prototype, 'set');
    onTestFinished(() => remembered.mockRestore());
    const keys = Array.from({ length: 20 }, (_, k) => `${LARGE}${k + 1_000}`);
    for (const key of keys) {
      const taken = { key, at: 0, created: 0, numFailures: 0, payload: '' };
      const lease = { token: key.slice(-4), lockedUntil: 0, sentMs: 0, leftMs: 1e12 };
      locks.add(new TakenItem(taken, lease, () => {}));
    }
    const names = remembered.mock.calls.map(([name]) => String(name));
    expect(Math.max(...names.map((name) => name.length))).toBeLessThan(1_000);
    for (const key of keys) expect(locks.tokenOf(key)).toBe(key.slice(-4));
    for (const key of keys) locks.forget(key, key.slice(-4));
    for (const key of keys) expect(locks.tokenOf(key)).toBeUndefined();
  });
});

test('items with large payloads that failed are put back in several calls', async ({ timed }) => {
  const queue = timed.retryQueue<string>();
  for (let i = 0; i < 4; i += 1) await queue.put('x'.repeat(300_000));
  const items: RetryItem<string>[] = [];
  for await (const item of queue.items({ demand: 4 })) if (items.push(item) === 4) break;
  const retried = await Promise.all(items.map((item) => item.retry({ delayMs: 60_000 })));
  expect(retried).toEqual([true, true, true, true]);
  const { client } = timed.connection;
  const callers = (await timed.keys()).filter((key) => key.includes(':caller:'));
  const calls = await Promise.all(callers.map((key) => client.hget(key, 'settle')));
  expect(calls.filter((number) => number !== null)).toEqual(['4']);
});
