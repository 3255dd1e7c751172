/**
 * The bench starts servers of its own.
 * @module-tag processes
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { verdict } from '../../tools/bench/src/figure/figure.js';
import { plot } from '../../tools/bench/src/figure/plot.js';
import { jain } from '../../tools/bench/src/figures/fairness.js';
import { gapsOf } from '../../tools/bench/src/figures/idle-gap.js';
import { figureNames } from '../../tools/bench/src/figures/index.js';
import { perfectMakespanMs } from '../../tools/bench/src/fleet/perfect-sharing.js';
import { isWanted } from '../../tools/bench/src/fleet/shape.js';
import type { Outcome } from '../../tools/bench/src/outcome.js';
import { checkAttempts, Handlers } from '../../tools/bench/src/small/attempts.js';
import { compareSmall } from '../../tools/bench/src/small/compare-small.js';
import type { Attempts } from '../../tools/bench/src/small/small-order.js';
import { Tally } from '../../tools/bench/src/tally.js';
import { listen } from '../support/listen.js';
import { partOf } from '../support/mode.js';
import { startOwnRedis } from '../support/redis.js';

const PROGRAM = fileURLToPath(new URL('../../tools/bench/dist/main.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'piecework-bench-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs the bench as a user would; it starts a Redis of its own. */
function bench(...args: string[]) {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  return listen(child).finished;
}

describe('the bench', () => {
  test('compares small requests of two revisions in turns', async () => {
    const own = await startOwnRedis();
    const probe = new Redis(own.url);
    onTestFinished(async () => {
      probe.disconnect();
      await own.close();
    });
    const entrants = ['one', 'other'].map((title) => ({
      title,
      contender: 'piecework' as const,
      pieceworkRoot: fileURLToPath(new URL('../..', import.meta.url)),
    }));
    const { hostname: host, port } = new URL(own.url);
    const { rows } = await compareSmall({ host, port: Number(port), probe }, entrants, {
      ...{ size: 3, requests: 5, turns: 3, payloadBytes: 100, concurrency: 10 },
    });
    expect(rows.map(([title]) => title)).toEqual(['one', 'other', 'median of the ratios']);
    for (const [, ...figures] of rows) {
      expect(figures).toHaveLength(3);
      for (const figure of figures) expect(Number.parseFloat(figure as string)).toBeGreaterThan(0);
    }
  });

  test('measures every contender in every round, and each of them ends with all results', async () => {
    const file = join(folder, 'report.md');
    writeFileSync(
      file,
      'old\n<!-- Written by hand from here on; --report keeps it. -->\nby hand\n',
    );
    const size = ['--n', '300', '--warm-up', '50', '--rounds', '2', '--concurrency', '10'];
    const rates = ['--figures', 'rates', '--json'];
    const { code, stdout, stderr } = await bench(...size, ...rates, '--report', file);
    expect(stderr).toContain('round 2');
    expect(code).toBe(0);

    const { measured } = JSON.parse(stdout) as Outcome;
    expect(measured.map(({ entrant }) => entrant.contender)).toEqual([
      'piecework',
      'piecework-discard',
      'bullmq-flow',
      'bullmq-bulk',
      'bee-queue',
      'first-published',
      'bare-xdel',
      'bare-xtrim',
    ]);
    for (const { entrant, runs, waitingBytes } of measured) {
      expect(runs, entrant.title).toHaveLength(2);
      // Of so few it can be anything: see measureMemory.
      expect(Number.isFinite(waitingBytes), entrant.title).toBe(true);
      for (const { inTime, finished, redis, sent, clientCpuMicros } of runs) {
        expect({ inTime, finished }).toEqual({ inTime: true, finished: 300 });
        // Each payload goes in and out; no server runs fewer commands than it is sent.
        expect(redis.wireBytes / finished, entrant.title).toBeGreaterThan(200);
        expect(redis.commands, entrant.title).toBeGreaterThanOrEqual(sent);
        expect(redis.cpuMicros, entrant.title).toBeGreaterThan(0);
        expect(clientCpuMicros, entrant.title).toBeGreaterThan(0);
      }
    }
    // The floors run no script: what they send is what the server runs.
    const floor = measured.find(({ entrant }) => entrant.contender === 'bare-xdel')?.runs[0];
    // One look at the server's own figures comes on top.
    expect((floor?.redis.commands ?? 0) - (floor?.sent ?? 0)).toBeLessThanOrEqual(1);

    const report = readFileSync(file, 'utf8');
    expect(report).toContain('| BullMQ flow');
    expect(report).not.toContain('old');
    expect(report.endsWith('by hand\n')).toBe(true);
  });

  test('measures what a waiting sub-request takes in Redis', async () => {
    const size = ['--n', '20000', '--warm-up', '1', '--rounds', '1'];
    const { code, stdout } = await bench(
      ...size,
      ...['--figures', 'rates', '--only', 'piecework', 'bare-xdel', '--json'],
    );
    expect(code).toBe(0);
    for (const { entrant, waitingBytes } of (JSON.parse(stdout) as Outcome).measured) {
      // A payload of 100 bytes and what the stream adds.
      expect(waitingBytes, entrant.title).toBeGreaterThan(100);
      expect(waitingBytes, entrant.title).toBeLessThan(160);
    }
  });

  test('cuts off and marks a run that takes longer than its budget', async () => {
    const size = ['--n', '5000', '--warm-up', '1', '--rounds', '1', '--budget-ms', '1'];
    const { code, stdout } = await bench(
      ...size,
      ...['--figures', 'rates', '--only', 'bullmq-flow', '--json'],
    );
    expect(code).toBe(0);
    const { measured, summaries } = JSON.parse(stdout) as Outcome;
    const [run] = measured[0]?.runs ?? [];
    expect(run?.inTime).toBe(false);
    expect(run?.finished).toBeLessThan(5_000);
    expect(summaries[0]?.cutOff).toEqual([run?.finished]);
  });

  test('ends with code 2 and names the argument on wrong usage', async () => {
    const { code, stderr } = await bench('--n', 'many');
    expect(code).toBe(2);
    expect(stderr).toContain('--n <count>');
  });

  test('ends with code 2 and lists the rows when no row has the name', async () => {
    const { code, stderr } = await bench('--figures', 'fleet', '--rows', '41x5');
    expect(code).toBe(2);
    expect(stderr).toContain('40x5 50ms 20');
  });
});

describe('the figures beyond the rates', () => {
  const tiny = ['--size', 'tiny', '--n', '300', '--warm-up', '50', '--rounds', '1'];
  // Each row starts processes: all of them take minutes on a busy machine.
  const someRows: Readonly<Record<string, readonly string[]>> = {
    fleet: ['4x50', '40x5 5ms', 'makespan', 'live'],
    'small-request': ['1 busy', '4x25 failing', '12s', 'idle apart', 'network', '4x50'],
  };

  test.each(partOf(figureNames))(
    '%s is measured, judged, reported and drawn',
    async (name) => {
      const file = join(folder, `${name}.md`);
      const chosen = someRows[name];
      const { code, stdout, stderr } = await bench(
        ...[...tiny, '--figures', name, '--json', '--report', file],
        ...(chosen ? ['--rows', ...chosen] : []),
      );
      expect(stderr).toContain(`figure: ${name}`);
      expect(code).toBe(0);

      const { figures, measured } = JSON.parse(stdout) as Outcome;
      expect(measured).toEqual([]);
      expect(figures.map((figure) => figure.name)).toEqual([name]);
      const rows = figures[0]?.rows ?? [];
      expect(rows.length).toBeGreaterThan(0);
      for (const row of rows) expect(row.value, row.label).toEqual(expect.any(Number));
      // What the target is in words, some row is held against.
      const judged = rows.filter(({ target }) => target).length;
      if (figures[0]?.target === 'reported') expect(judged).toBe(0);
      else expect(judged).toBeGreaterThan(0);

      const report = readFileSync(file, 'utf8');
      expect(report).toContain(`(${name}/${name}.svg)`);
      const drawn = readFileSync(join(folder, name, `${name}.svg`), 'utf8');
      for (const { label } of rows) expect(drawn).toContain(label.replaceAll('<', '&lt;'));
    },
    240_000,
  );

  test('a value on its target has reached it, on either side', () => {
    const row = { label: '', unit: '×', value: 2 };
    expect(verdict({ ...row, target: { atMost: 2 } })).toBe('reached');
    expect(verdict({ ...row, target: { atLeast: 2 } })).toBe('reached');
    expect(verdict({ ...row, target: { atMost: 1.9 } })).toBe('not reached');
    expect(verdict({ ...row, target: { atLeast: 2.1 } })).toBe('not reached');
    expect(verdict(row)).toBe('');
  });

  test('Jain’s index is 1 for equal shares and 1/n when one has everything', () => {
    expect(jain([3, 3, 3, 3])).toBe(1);
    expect(jain([5, 0, 0, 0])).toBe(0.25);
  });

  test('a gap is the time in which a slot stood empty, in the order in which slots were freed', () => {
    const run = (startMs: number, endMs: number) => ({ requestId: 'r', n: 0, startMs, endMs });
    const first = [run(0, 10), run(0, 20), run(0, 30), run(0, 40)];
    expect(gapsOf([...first, run(11, 50), run(23, 50)])).toEqual([1, 3]);
  });

  test('a row is measured if its name has all words of one text', () => {
    const name = '40x5 50ms 20';
    for (const text of ['40x5', '40x5 20', name]) expect(isWanted(name, ['live', text])).toBe(true);
    for (const text of ['0x5', '40x5 5ms']) expect(isWanted(name, [text])).toBe(false);
    expect(isWanted(name, [])).toBe(true);
  });

  test('perfect sharing gives each sub-request to the slot that is free first', () => {
    const quick = { fromMs: 0, slowness: 1 };
    expect(perfectMakespanMs([4, 1, 1, 1, 1], [quick, quick])).toBe(4);
    expect(perfectMakespanMs([2, 2, 2], [quick, { fromMs: 0, slowness: 4 }])).toBe(8);
    expect(perfectMakespanMs([2, 2, 2], [quick, { fromMs: 3, slowness: 1 }])).toBe(5);
  });

  test('a plot escapes its texts and draws each target once', () => {
    const rows = [
      { label: 'a < b & c', unit: 'ms', value: 3, target: { atMost: 5 } },
      { label: 'other', unit: 'ms', value: 4 },
    ];
    const svg = plot('<title>', rows, ['by hand']);
    expect(svg).toContain('a &lt; b &amp; c');
    expect(svg).toContain('&lt;title&gt;');
    expect(svg.match(/class="target"/g)).toHaveLength(1);
  });
});

describe('the attempts of small requests', () => {
  const order = { count: 5, size: 20, handlerMs: 0, failingPercent: 30, attempts: 2 } as const;

  /** Attempts of one run, in which sub-requests that fail are tried again. */
  async function play(failingPercent: number): Promise<Attempts> {
    const handlers = new Handlers({ ...order, failingPercent });
    for (let n = 0; n < order.count * order.size; n += 1) {
      const attempt = (number: number) => handlers.handle({ n, pad: '' }, number);
      await attempt(1).catch(() => attempt(2));
    }
    return handlers.take();
  }

  test.each([0, 5, 30, 100])('%i % of the sub-requests fail, once', async (failingPercent) => {
    const attempts = await play(failingPercent);
    expect(attempts).toEqual({ made: 100 + failingPercent, failed: failingPercent });
    expect(() => checkAttempts({ ...order, failingPercent }, attempts)).not.toThrow();
  });

  test('a run is refused in which handlers ran or failed too often or too seldom', async () => {
    const { made, failed } = await play(30);
    const wrong = [
      { made: made + 1, failed },
      { made: made - 1, failed },
      { made, failed: failed + 1 },
      { made, failed: failed - 1 },
    ];
    for (const attempts of wrong)
      expect(() => checkAttempts(order, attempts)).toThrow('instead of 130 and 30');
  });
});

describe('the tally', () => {
  test('accepts each number once, in any order', () => {
    const tally = new Tally(3);
    for (const n of [2, 0, 1]) tally.add(n);
    expect(() => tally.check()).not.toThrow();
  });

  test('refuses what came twice, what belongs to no payload, and an end with results missing', () => {
    const tally = new Tally(3);
    tally.add(1);
    expect(() => tally.add(1)).toThrow('result 1 came twice');
    expect(() => tally.add(3)).toThrow('a result of another run: 3');
    expect(() => tally.add(undefined)).toThrow('a result of another run');
    expect(() => tally.check()).toThrow('1 results of 3');
  });
});
