import { Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

const HOUR_MS = 3_600_000;

describe('a deadline', () => {
  test('ends a request that no worker serves, and who waits learns it', async ({ flow }) => {
    const { redis, queue } = flow;
    await using pw = new Piecework({ redis, queue });
    const request = await pw.submit(numbers(5), { id: flow.id('late'), deadlineMs: 300 });
    const outcome = await request.completion();
    expect(outcome).toMatchObject({ status: 'failed', endReason: 'deadline' });
    expect(outcome.counts).toMatchObject({ total: 5, cancelled: 5, ready: 0 });
    const { createdAt, completedAt, deadline } = await request.status();
    expect(deadline).toBe(createdAt + 300);
    expect(completedAt).toBeGreaterThanOrEqual(deadline as number);
  });
});

describe('a delayed request', () => {
  for (const how of ['delayMs', 'runAt as a time', 'runAt as a Date'] as const) {
    test(`begins when it is due, by ${how}`, async ({ flow }) => {
      const { redis, queue } = flow;
      await using pw = new Piecework({ redis, queue });
      const ran: number[] = [];
      await flow.worker({ handler: () => void ran.push(Date.now()) }).start();
      const [seconds] = (await flow.connection.client.time()) as unknown as [string];
      const at = (Number(seconds) + 2) * 1_000;
      const later = (ms: number) =>
        ({
          delayMs: { delayMs: ms + 600 },
          'runAt as a time': { runAt: at + ms },
          'runAt as a Date': { runAt: new Date(at + ms) },
        })[how];
      // One that is not due as long as this test looks on.
      const far = await pw.submit(numbers(3), { id: flow.id('far'), ...later(HOUR_MS) });
      const seen = await far.status();
      expect(seen.heldUntil).toBe((how === 'delayMs' ? seen.createdAt + 600 : at) + HOUR_MS);
      expect(seen.why).toMatch(/^its start is delayed until/);
      expect(seen.counts).toMatchObject({ ready: 3, inFlight: 0 });

      const when = later(0);
      const request = await pw.submit(numbers(3), { id: flow.id('later'), ...when });
      const { createdAt } = await request.status();
      const due = how === 'delayMs' ? createdAt + 600 : at;
      expect(await request.completion()).toMatchObject({ status: 'succeeded' });
      expect(ran).toHaveLength(3);
      await until(async () => (await request.status()).heldUntil === undefined);
      for (const time of ran) expect(time).toBeGreaterThanOrEqual(due - 50);
    });
  }

  test('is refused with both, or with a deadline that is over before', async ({ flow }) => {
    const producer = flow.producer();
    const both = { delayMs: 5, runAt: 5 };
    await expect(producer.submit([1], both)).rejects.toMatchObject({ field: 'runAt' });
    const over = { delayMs: 500, deadlineMs: 500 };
    await expect(producer.open(over)).rejects.toMatchObject({ field: 'deadlineMs' });
    const late = { runAt: new Date(Date.now() + 600_000), deadlineMs: 60_000 };
    await expect(producer.submit([1], late)).rejects.toMatchObject({ field: 'deadlineMs' });
    expect(await flow.keys()).toEqual([]);
  });
});
