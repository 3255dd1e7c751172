import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import type { Verdict } from '../../tools/chaos/src/judge/verdict.js';
import { combine } from '../../tools/chaos/src/report/combine.js';
import { markdown, report } from '../../tools/chaos/src/report/report.js';
import { ruleOfThree } from '../../tools/chaos/src/report/trials.js';
import {
  at,
  countsOf,
  ended,
  judged,
  type Line,
  ran,
  started,
  submitted,
  told,
  value,
  wasRead,
  withJournals,
} from './journals.js';

const PROGRAM = fileURLToPath(new URL('../../tools/chaos/dist/judge-main.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'piecework-judge-report-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A request of one item, whose worker is killed and followed by another after `recoveryMs`. */
const killed = (recoveryMs: number, left: readonly string[] = []): Line[] => [
  ...[started('worker-1'), started('worker-2'), ...submitted('r', 1, 1)],
  ...ran('worker-1', 'r', 0, [10]),
  at(20, 'nemesis', { does: 'fault', fault: 'kill worker', target: 'worker-1' }),
  at(21, 'nemesis', { did: 'fault', fault: 'kill worker', target: 'worker-1' }),
  ...ran('worker-2', 'r', 0, [20 + recoveryMs, 30 + recoveryMs]),
  ...told('r', countsOf(1)),
  wasRead('r', [value(0)], countsOf(1)),
  ...ended('r', countsOf(1), left),
];

/** Runs the judge as a user would. */
function run(...args: string[]): { code: number; text: string } {
  try {
    const text = execFileSync(process.execPath, [PROGRAM, ...args], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
    return { code: 0, text };
  } catch (error) {
    const { status, stdout } = error as { status: number; stdout: string };
    return { code: status, text: stdout };
  }
}

describe('a report', () => {
  it('says beside each zero how much it is worth', async () => {
    const text = report(await judged(killed(500)));
    expect(text).toMatch(/lost .* 0 .*fewer than 3\/1 of acknowledged sub-requests/);
    expect(text).toContain('Clean.');
    expect(ruleOfThree({ n: 600_000, of: 'sub-requests' })).toBe(
      'fewer than 3/600,000 of sub-requests (5.0e-6)',
    );
    expect(ruleOfThree({ n: 0, of: 'sub-requests' })).toBe('not tried');
  });

  it('names what was found', async () => {
    const text = markdown(await judged(killed(500, ['sub:{r}'])));
    expect(text).toContain('- key left: sub:{r}');
    expect(text).toContain('NOT CLEAN.');
    expect(text).not.toMatch(/key left .*fewer than/);
  });
});

describe('several verdicts as one', () => {
  it('add up, keep the greatest, and have the percentiles of all', async () => {
    const verdicts = await Promise.all([500, 800, 100].map((ms) => judged(killed(ms))));
    const all = combine(verdicts);
    expect(all).toMatchObject({ runs: 3, clean: true, faults: { 'kill worker': 3 } });
    expect(all.items).toMatchObject({ acknowledged: 3, settled: 3 });
    expect(all.executions.repeats['after a kill']).toBe(3);
    expect(all.executions.starts).toBe(6);
    expect(all.samples.recoveryMs).toEqual([500, 800, 100]);
    expect(all.durations.drainMs).toBeCloseTo(450);
    expect(all.durations.mostDrainMs).toBeCloseTo(150);
  });

  it('are not clean when one of them is not', async () => {
    const all = combine([await judged(killed(500)), await judged(killed(500, ['a', 'b']))]);
    expect(all.clean).toBe(false);
    expect(all.findings['key left']).toEqual({ count: 2, examples: ['a', 'b'] });
  });
});

describe('the command line of the judge', () => {
  it('judges a folder, and several verdicts together', async () => {
    const files: string[] = [];
    for (const [n, left] of [[], ['sub:{r}']].entries()) {
      const { code, text } = await withJournals(killed(500, left), async (journals) => {
        expect(run(journals).code).toBe(n);
        return run(journals, '--json');
      });
      expect(code).toBe(n);
      expect((JSON.parse(text) as Verdict).clean).toBe(n === 0);
      const file = join(folder, `${n}.json`);
      writeFileSync(file, text);
      files.push(file);
    }
    const { code, text } = run('combine', ...files, '--json');
    expect(code).toBe(1);
    expect(JSON.parse(text)).toMatchObject({ runs: 2, items: { settled: 2 } });
  });

  it('says by its exit code that it was asked wrongly, or cannot believe what it reads', () => {
    expect(run('--no-such-option').code).toBe(2);
    expect(run(folder).code).toBe(1);
  });
});
