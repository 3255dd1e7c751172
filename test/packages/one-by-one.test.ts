/**
 * Items that are yielded one by one: from runs, or from what is at hand when the first is wanted.
 */
import { describe, expect, test } from 'vitest';
import { OneByOne } from '../../packages/notifier/dist/results/one-by-one.js';

/** Runs of items; `begun` counts how often they were begun. */
function runsOf(runs: readonly (readonly number[])[]) {
  const seen = { begun: 0 };
  async function* iterate() {
    seen.begun += 1;
    yield* runs;
  }
  return { seen, iterate };
}

async function all(items: AsyncIterable<number>): Promise<number[]> {
  const found: number[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe('items one by one', () => {
  test('come from what is at hand, and the runs are not begun', async () => {
    const { seen, iterate } = runsOf([[7]]);
    const items = new OneByOne(iterate(), () => [1, 2, 3]);
    expect(await all(items)).toEqual([1, 2, 3]);
    expect(await items.next()).toEqual({ done: true, value: undefined });
    expect(seen.begun).toBe(0);
  });

  test('come from the runs when nothing is at hand', async () => {
    const { seen, iterate } = runsOf([[1, 2], [], [3]]);
    const items = new OneByOne(iterate(), () => undefined);
    expect(await all(items)).toEqual([1, 2, 3]);
    expect(seen.begun).toBe(1);
  });

  test('at hand answer overlapping calls in their order', async () => {
    const items = new OneByOne(runsOf([]).iterate(), () => [1, 2]);
    const answers = await Promise.all([items.next(), items.next(), items.next()]);
    expect(answers.map(({ value }) => value)).toEqual([1, 2, undefined]);
  });

  test.each([
    ['return', (items: OneByOne<number>) => items.return()],
    ['throw', (items: OneByOne<number>) => items.throw(new Error('enough')).catch(() => {})],
  ] as const)('are not asked for behind a %s', async (_, end) => {
    const { seen, iterate } = runsOf([[7]]);
    let asked = 0;
    const items = new OneByOne(iterate(), () => {
      asked += 1;
      return [1];
    });
    await end(items);
    expect(await items.next()).toEqual({ done: true, value: undefined });
    expect({ asked, ...seen }).toEqual({ asked: 0, begun: 0 });
  });

  test('end with the error of one that is at hand', async () => {
    const { seen, iterate } = runsOf([[7]]);
    const failing = function* () {
      yield 1;
      throw new Error('unreadable');
    };
    const items = new OneByOne<number>(iterate(), failing);
    expect(await items.next()).toEqual({ done: false, value: 1 });
    await expect(items.next()).rejects.toThrow('unreadable');
    expect(await items.next()).toEqual({ done: true, value: undefined });
    expect(seen.begun).toBe(0);
  });
});
