import { Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { numbers, test } from '../support/flow.js';

const handler = (n: number) => {
  if (n % 10 === 0) throw new Error('no');
  return n;
};

describe('more failures than are tolerated', () => {
  test('let everything run to its end by default, and decide the outcome', async ({ flow }) => {
    const { redis, queue } = flow;
    await using pw = new Piecework({ redis, queue });
    await flow.worker({ handler }).start();
    const outcomes: Record<string, string> = {};
    for (const tolerated of [9, 10, '9%', '10%'] as const) {
      const id = flow.id(String(tolerated).replace('%', '-percent'));
      const request = await pw.submit(numbers(100), { id, toleratedFailures: tolerated });
      const { status, counts, endReason } = await request.completion();
      expect(counts).toMatchObject({ succeeded: 90, failed: 10, cancelled: 0 });
      expect(endReason).toBeUndefined();
      outcomes[tolerated] = status;
    }
    const [more, enough] = ['failed', 'succeeded'];
    expect(outcomes).toEqual({ 9: more, 10: enough, '9%': more, '10%': enough });
  });

  test('end the request early when that is asked for', async ({ flow }) => {
    const { redis, queue } = flow;
    await using pw = new Piecework({ redis, queue });
    await flow.worker({ handler }).start();
    const policy = { toleratedFailures: { percent: 1 }, onExceeded: 'cancel' } as const;
    const request = await pw.submit(numbers(2_000), { id: flow.id('early'), limit: 5, ...policy });
    const { status, endReason, counts } = await request.completion();
    expect({ status, endReason }).toEqual({ status: 'failed', endReason: 'failures' });
    expect(counts.failed).toBeGreaterThan(20);
    expect(counts.failed).toBeLessThan(200);
    expect(counts.cancelled).toBeGreaterThan(0);
    expect(counts.succeeded + counts.failed + counts.cancelled).toBe(2_000);
  });
});
