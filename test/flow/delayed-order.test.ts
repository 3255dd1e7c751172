import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { judgeOrder } from '../scale/delayed-order.mjs';
import { runDelayedTasks, runTwoQueues, wrongIn } from '../scale/delayed-run.mjs';
import { playsAll } from '../support/mode.js';

/** An append-only file of these commands, judged. */
async function judged(...commands: string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'piecework-judge-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const encoded = commands.map((command) => {
    const words = command.split(' ');
    return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
  });
  // Some at the end of one file, the rest in the next.
  await writeFile(join(folder, 'appendonly.aof.9.incr.aof'), encoded.slice(0, 2).join(''));
  await writeFile(join(folder, 'appendonly.aof.10.incr.aof'), encoded.slice(2).join(''));
  const { pops = [], breaches = [] } = (await judgeOrder(folder, ['q'])).get('q') ?? {};
  return { popped: pops.map(({ id }) => id).join(''), breaches };
}

const A = 'LPUSH {q}:5 a~1~1';
const B = 'LPUSH {q}:5 b~2~1';
const C = 'LPUSH {q}:5:due c~3~1~70';
const D = 'LPUSH {q}:4 d~4~1';
const [LIST, LANE, HIGHER] = ['RPOP {q}:5', 'RPOP {q}:5:due', 'RPOP {q}:4'];

describe('the judge of the order', () => {
  it('finds nothing wrong with what is in order', async () => {
    expect(await judged(A, B, C, D, HIGHER, LANE, 'RPOP {q}:5 2')).toEqual({
      popped: 'dcab',
      breaches: [],
    });
    expect((await judged(A, LIST, D, HIGHER, C, LANE)).breaches).toEqual([]);
    const earlier = 'LINSERT {q}:5:due BEFORE c~3~1~70 e~5~1~80';
    expect((await judged(C, earlier, LANE, LANE)).popped).toBe('ce');
  });

  it('finds a pop of the list before its lane, or before a higher priority', async () => {
    expect((await judged(A, C, LIST)).breaches).toEqual(['a~1~1 before c~3~1~70']);
    expect((await judged(C, A, D, LANE)).breaches).toEqual(['c~3~1~70 before d~4~1']);
  });

  it('finds a lane that is not in due order', async () => {
    const first = 'LPUSH {q}:5:due e~5~1~60';
    expect((await judged(C, first, LANE)).breaches).toEqual(['e~5~1~60 behind c~3~1~70']);
  });
});

describe('tasks of two queues', { tags: 'own-server' }, () => {
  /** How many pops of the later queue a task of the earlier one saw at most. */
  async function passes(concurrency: number, busy: boolean) {
    const count = playsAll ? 800 : 400;
    const { ran, orders } = await runTwoQueues({ count, concurrency, busy });
    expect(ran).toBe(count);
    const [first, second] = [orders.get('first'), orders.get('second')];
    expect([first?.breaches, second?.breaches]).toEqual([[], []]);
    // Of sixteen in turn, the first queue gets five.
    expect(first?.pops.length).toBeGreaterThanOrEqual((count * 5) / 16);
    expect(second?.pops.length).toBeGreaterThanOrEqual((count * 11) / 16);
    return first?.overtaken;
  }

  for (const concurrency of [1, 4]) {
    it(`of which a worker takes let at most one pop of a later one pass: ${concurrency} slots`, async () => {
      expect(await passes(concurrency, true)).toBeLessThanOrEqual(1);
    }, 120_000);

    it(`let one more pass at the end of a wait: ${concurrency} slots`, async () => {
      expect(await passes(concurrency, false)).toBeLessThanOrEqual(2);
    }, 120_000);
  }
});

describe('delayed and undelayed tasks of all priorities', { tags: 'own-server' }, () => {
  it('are run in order: priority by priority, what was delayed first, in due order', async () => {
    const size = { before: 1_400, live: 600 };
    const run = await runDelayedTasks({ ...size, delayMs: 1_500 });
    expect(wrongIn(run, size)).toEqual([]);
    expect(run.recorded).toHaveLength(2_000);
    expect(run.moved).toBe(700);
    expect(new Set(run.pops.map(({ priority }) => priority)).size).toBe(100);
    // A run out of order is found.
    const recorded = run.recorded.toReversed();
    expect(wrongIn({ ...run, recorded }, size).length).toBeGreaterThan(500);
  }, 180_000);
});
