import { expect, it } from 'vitest';
import { pauseMs, planOf } from '../../tools/chaos/src/contract/plan.js';

it('of a slow request is filled within 15 s, however large its pieces are', () => {
  const plans = Array.from({ length: 1_000 }, (_, number) => planOf(5, number));
  const slow = plans.filter((plan) => pauseMs(plan, 1) > 0);
  expect(slow.some(({ piece, size }) => piece > size)).toBe(true);
  for (const { number, size, piece } of slow) {
    let waitedMs = 0;
    for (let from = 0; from < size; from += piece)
      waitedMs += pauseMs(planOf(5, number), Math.min(piece, size - from));
    expect(waitedMs).toBeCloseTo(15_000);
  }
});
