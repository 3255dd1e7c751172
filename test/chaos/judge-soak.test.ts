import { describe, expect, it } from 'vitest';
import { Dice } from '../../tools/chaos/src/contract/dice.js';
import { slope } from '../../tools/chaos/src/growth/slope.js';
import { type Soak, soak } from '../../tools/chaos/src/growth/soak.js';
import { soakReport } from '../../tools/chaos/src/report/report.js';
import { at, type Line, withJournals } from './journals.js';

const MINUTES = 15;
const MIB = 1_048_576;

/** Noise that remembers: what memory looks like between two collections of garbage. */
function wave(seed: number, memory: number): () => number {
  const dice = new Dice(seed);
  let value = 0;
  return () => {
    value = memory * value + dice.between(-1, 1);
    return value;
  };
}

/** A sample a second, growing by `perSecond`, with noise of some MiB. */
function series(perSecond: number, seed: number, memory: number): [number, number][] {
  const wobble = wave(seed, memory);
  return Array.from({ length: 60 * MINUTES }, (_, x) => [x, perSecond * x + MIB * wobble()]);
}

describe('the slope of a series', () => {
  it('is exact without noise', () => {
    const found = slope(Array.from({ length: 100 }, (_, x) => [x, 3 * x + 7]));
    expect(found?.perUnit).toBeCloseTo(3);
    expect(found?.high).toBeCloseTo(3);
  });

  it.each([0, 0.5, 0.9, 0.95])(
    'lies between its bounds in about 95 of 100 series (memory %f)',
    (memory) => {
      const truth = 200;
      const inside = Array.from({ length: 400 }, (_, seed) =>
        slope(series(truth, seed, memory)),
      ).filter((found) => found && found.low <= truth && truth <= found.high);
      expect(inside.length).toBeGreaterThan(400 * 0.92);
      // Bounds that are always right are too wide to say anything.
      expect(inside.length).toBeLessThan(400);
    },
  );

  it('is seen although noise hides it from the eye', () => {
    const found = slope(series(50 * 1_024, 1, 0.5));
    expect(found?.low).toBeGreaterThan(0);
  });

  it('is none of too few samples, or of a unit that stands still', () => {
    expect(slope([[1, 1]])).toBeUndefined();
    expect(slope(Array.from({ length: 100 }, (_, y) => [1, y]))).toBeUndefined();
  });
});

describe('a soak', () => {
  /** Redis stays as it is, worker-1 grows by 1 MiB a minute; both jump in their first minute. */
  const lines = Array.from({ length: 60 * MINUTES }, (_, second): Line => {
    const jump = second < 60 ? 0 : 50 * MIB;
    return at(second * 1_000, 'observer', {
      did: 'sample',
      redis: jump + (second % 7) * 1_024,
      processes: {
        'worker-1': jump + (second * MIB) / 60,
        ...(second > 300 && second < 360 ? { 'worker-2': 1 } : {}),
      },
      settled: 1_000 * second,
    });
  });
  const judged = (): Promise<Soak> => withJournals(lines, (folder) => soak(folder));

  it('shows what grows, by minute and by sub-request, without its warm-up', async () => {
    const { growths, settled, tooShort } = await judged();
    expect(settled).toBe(1_000 * (60 * MINUTES - 1));
    expect(tooShort).toBe(1);
    const [redis, worker] = growths;
    expect(redis?.name).toBe('redis');
    expect(redis?.perMinute?.low).toBeLessThanOrEqual(0);
    expect(redis?.perMinute?.high).toBeGreaterThanOrEqual(0);
    expect(redis?.perMinute?.high).toBeLessThan(1_024);
    expect(worker?.perMinute?.perUnit).toBeCloseTo(MIB, -1);
    // 60,000 are settled in a minute.
    expect(worker?.perMillionSettled?.perUnit).toBeCloseTo((MIB * 1_000) / 60, -2);
    expect(worker?.minutes).toBeCloseTo(MINUTES - 2, 1);
  });

  it('is put into a table', async () => {
    const text = soakReport(await judged());
    expect(text).toMatch(/worker-1 .*1\.00 MiB \(1\.00 MiB to 1\.00 MiB\)/);
    expect(text).toContain('1 processes did not live long enough');
  });
});
