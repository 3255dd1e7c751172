import { describe, expect, test } from 'vitest';
import { RestartBudget } from '../../packages/cli/dist/processes/restart-budget.js';

describe('the restarts of a fleet', () => {
  test('waits longer from end to end, and not after something was finished', () => {
    const budget = new RestartBudget(2, 100);
    const waits = () => Array.from({ length: 7 }, () => budget.spend(0, true));
    const growing = [100, 200, 400, 800, 1_600, 2_000, 2_000];
    expect(waits()).toEqual(growing);
    // The other one has ended for the first time.
    expect(budget.spend(1, true)).toBe(100);
    budget.refill(0);
    expect(waits()).toEqual(growing);
    expect(budget.spend(1, false)).toBe(200);
  });

  test('are over when nothing is finished in between', () => {
    const budget = new RestartBudget(2, 3);
    for (let n = 0; n < 6; n += 1) expect(budget.spend(n % 2, true)).toBeGreaterThan(0);
    expect(budget.spend(0, true)).toBeUndefined();
    expect(budget.ends).toBe(7);
    budget.refill(1);
    expect(budget.spend(0, true)).toBeGreaterThan(0);
  });

  test('end ten times sooner for those that do not get ready, and none are had for nothing', () => {
    const budget = new RestartBudget(1, 20);
    expect(budget.spend(0, false)).toBe(100);
    expect(budget.spend(0, false)).toBe(200);
    expect(budget.spend(0, false)).toBeUndefined();
    expect(new RestartBudget(4, 0).spend(0, true)).toBeUndefined();
  });
});
