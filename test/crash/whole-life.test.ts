import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { judgeStarts } from '../scale/starts.mjs';

const PROGRAM = fileURLToPath(new URL('../scale/whole-life.mjs', import.meta.url));

/** The short form; whole-life.mjs by itself is the long one. It fails by itself if anything is amiss. */
describe('a request through retries, failures, changes of its limit, a pause and a redrive', {
  tags: ['processes'],
}, () => {
  const forms = {
    'ends with exact counts': [],
    'ends with the same counts though its workers are killed': [
      '--kill-every-ms',
      '400',
      '--kills',
      '4',
    ],
  };
  for (const [name, more] of Object.entries(forms)) {
    test(name, { timeout: 240_000 }, async ({ onTestFinished }) => {
      // No lease is lost but by a kill: whoever stood still for so long would be a zombie unawares.
      const size = ['--items', '3000', '--workers', '3', '--lease-ms', '4000'];
      const args = [PROGRAM, ...size, '--json', ...more];
      const life = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
      onTestFinished(() => void life.kill('SIGTERM'));
      const exit = once(life, 'exit');
      const [said, words] = await Promise.all([text(life.stdout), text(life.stderr)]);
      // Some are meant to fail, and the worker says so. Others take over what a killed worker had.
      const meant =
        more.length > 0 ? /sub-request failed"|took over what ended/ : /sub-request failed"/;
      const wrong = words.split('\n').filter((line) => line !== '' && !meant.test(line));
      expect({ code: (await exit)[0], wrong }).toEqual({ code: 0, wrong: [] });
      const { runs, kills, figures } = JSON.parse(said);
      expect(runs).toBeGreaterThanOrEqual(3_180);
      expect(kills > 0).toBe(more.length > 0);
      // Or the limit would have been tried by nobody.
      expect(figures).toMatchObject([{}, { limit: 10 }, {}, { limit: 0, starts: 0 }, {}]);
      expect(figures[1].starts).toBeGreaterThan(0);
    });
  }
});

/** Lines of a journal: kind, turn, ns, run, index; of an `s` only the index. */
const journal = (lines: readonly string[], endNs = 1_000n) => ({
  text: lines.map((line) => `${line}\n`).join(''),
  endNs,
});
const limits = [
  { limit: 2, askedNs: 0n, doneNs: 1n },
  { limit: 1, askedNs: 100n, doneNs: 110n },
];
/** Two run when the limit falls from 2 to 1; then one ends, and its settle is answered. */
const lowered = ['l 1 0', 'b 2 50 1 1', 'b 2 51 2 2', 'e 3 120 1 1', 's 4 130 1'];

describe('who judges the starts', () => {
  const above = (lines: readonly string[]) => judgeStarts([journal(lines)], limits).violations;

  test('finds one above the lowered limit after the next settle', () => {
    expect(above([...lowered, 'b 5 140 3 3'])).toEqual(['3 began as number 2 of 1']);
    expect(above([...lowered, 'e 5 140 2 2', 'b 5 141 3 3'])).toEqual([]);
  });

  test('finds one that the reply of that settle brought, reported or not', () => {
    expect(above([...lowered.slice(0, -1), 'b 4 129 3 3', 's 4 130 1'])).toHaveLength(1);
  });

  test('lets one begin that an earlier settle brought', () => {
    expect(above([...lowered.slice(0, -1), 'b 5 129 3 3'])).toEqual([]);
    // What it reports ended before the change was acknowledged: it may have been settled before.
    const early = [...lowered.slice(0, 3), 'e 3 105 1 1', 's 4 130 1'];
    expect(above([...early, 'b 5 140 3 3'])).toEqual([]);
  });

  test('takes a worker that was born later to know the limit', () => {
    const [running, born] = [journal(lowered.slice(0, 3)), journal(['l 1 200', 'b 2 210 1 9'])];
    expect(judgeStarts([running, born], limits).violations).toHaveLength(1);
  });

  test('counts neither what is dead nor a zombie', () => {
    const next = 'b 6 400 3 3';
    const living = journal([...lowered, next]);
    expect(judgeStarts([living], limits).violations).toHaveLength(1);
    expect(above([...lowered, 'a 5 140 2 2', next])).toEqual([]);
    // Killed in the middle of a line, with one under way.
    const dead = { text: 'l 1 0\nb 2 5 1 7\nb 2 6 2', endNs: 40n };
    const alone = journal([...lowered, 'e 5 140 2 2', next, 'e 7 410 3 3']);
    expect(judgeStarts([alone, dead], limits)).toMatchObject({ violations: [], killed: 1 });
    const late = judgeStarts([alone, { ...dead, endNs: 60n }], limits);
    expect(late.violations).toEqual(['2 began as number 3 of 2']);
  });
});
