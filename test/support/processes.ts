import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
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

export function startProgram(flow: Flow, name: string, argument: unknown): Program {
  const path = fileURLToPath(new URL(`./programs/${name}.mjs`, import.meta.url));
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
