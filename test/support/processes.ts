import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished, TestRunner } from 'vitest';
import type { Flow } from './flow.js';
import { until } from './until.js';

/*
 * Real processes for tests: a program of test/support/programs that gets one JSON argument and says
 * JSON lines. Whatever a test forgets is killed when it is over.
 */

export interface Program {
  readonly child: ChildProcess;
  /** The next line that the program says. @throws Error with its last words when it ends instead */
  said<T>(options?: { timeoutMs: number }): Promise<T>;
  kill(signal: NodeJS.Signals): void;
  /** Resolves with the exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

/** Where a program of test/support/programs is. */
export const programAt = (name: string): string =>
  fileURLToPath(new URL(`./programs/${name}.mjs`, import.meta.url));

/** @param path where the program is, when it was bundled */
export function startProgram(
  flow: Flow,
  name: string,
  argument: unknown,
  path = programAt(name),
): Program {
  const child = spawn(process.execPath, [path, JSON.stringify(argument)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  let words = '';
  let over = false;
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  child.stderr.on('data', (chunk: Buffer) => {
    words = (words + chunk.toString()).slice(-2_000);
  });
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.on('exit', (code, signal) => resolve(signal ?? code));
    // Later than its exit: what it said last has been read.
    child.on('close', () => {
      over = true;
    });
  });
  flow.after(async () => {
    child.kill('SIGCONT');
    child.kill('SIGKILL');
    await ended;
  });
  return {
    child,
    ended,
    kill: (signal) => void child.kill(signal),
    said: async <T>(options = {}) => {
      const what = `${name}.mjs says something`;
      // It may have to start first, beside many others.
      await until(() => lines.length > 0 || over, { what, timeoutMs: 45_000, ...options });
      const line = lines.shift();
      if (line === undefined) throw new Error(`${name}.mjs ended: ${words}`);
      return JSON.parse(line) as T;
    },
  };
}

/** Whether a process of this id is there. */
export const runs = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

interface Descendant {
  readonly pid: number;
  readonly parent: number;
  /** Its command line. */
  readonly args: string;
}

/** The processes that a process has started, and theirs, as long as their parents run. */
export function descendants(pid: number | undefined): Descendant[] {
  const all = execFileSync('ps', ['-Ao', 'pid=,ppid=,args='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [])
    .map(([, own, parent, args = '']) => ({ pid: Number(own), parent: Number(parent), args }));
  const below = (parent: number | undefined): Descendant[] =>
    all.filter((one) => one.parent === parent).flatMap((one) => [one, ...below(one.pid)]);
  return below(pid);
}

/**
 * When the test that started a process is over, whatever became of it, the process is killed with all that it started,
 * unless it has ended. One that a hook started is ended by a hook.
 */
export function endWithTest(child: ChildProcess): void {
  if (!TestRunner.getCurrentTest()) return;
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    const all = descendants(child.pid).map(({ pid }) => pid);
    child.kill('SIGKILL');
    for (const pid of all.filter(runs)) process.kill(pid, 'SIGKILL');
    await ended;
  });
}
