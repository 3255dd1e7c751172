/**
 * The bench starts servers of its own.
 * @module-tag processes
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import type { Outcome } from '../../packages/bench/src/outcome.js';
import { Tally } from '../../packages/bench/src/tally.js';
import { listen } from '../support/listen.js';

const PROGRAM = fileURLToPath(new URL('../../packages/bench/dist/main.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'piecework-bench-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs the bench as a user would; it starts a Redis of its own. */
function bench(...args: string[]) {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  return listen(child).finished;
}

describe('the bench', () => {
  test('measures every contender in every round, and each of them ends with all results', async () => {
    const file = join(folder, 'report.md');
    writeFileSync(
      file,
      'old\n<!-- Written by hand from here on; --report keeps it. -->\nby hand\n',
    );
    const size = ['--n', '300', '--warm-up', '50', '--rounds', '2', '--concurrency', '10'];
    const { code, stdout, stderr } = await bench(...size, '--json', '--report', file);
    expect(stderr).toContain('round 2');
    expect(code).toBe(0);

    const { measured } = JSON.parse(stdout) as Outcome;
    expect(measured.map(({ entrant }) => entrant.contender)).toEqual([
      'piecework',
      'bullmq-flow',
      'bullmq-bulk',
      'bee-queue',
      'first-published',
      'bare-xdel',
      'bare-xtrim',
    ]);
    for (const { entrant, runs, waitingBytes } of measured) {
      expect(runs, entrant.title).toHaveLength(2);
      // Payloads have 100 bytes; of so few, the server's own ups and downs hide some.
      expect(waitingBytes, entrant.title).toBeGreaterThan(50);
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

  test('cuts off and marks a run that takes longer than its budget', async () => {
    const size = ['--n', '5000', '--warm-up', '1', '--rounds', '1', '--budget-ms', '1'];
    const { code, stdout } = await bench(...size, '--only', 'bullmq-flow', '--json');
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
