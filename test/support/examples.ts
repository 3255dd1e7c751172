import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Finished } from './cli.js';

/** Starts a program of `examples/`, as a user would, with `redis` as its REDIS_URL. */
export function startExample(
  path: string,
  args: readonly string[],
  redis: string,
): { child: ChildProcess; finished: Promise<Finished>; said: () => string } {
  const program = fileURLToPath(new URL(`../../examples/${path}`, import.meta.url));
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, REDIS_URL: redis },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const finished = once(child, 'close').then(([code]) => ({
    code: code as number | null,
    stdout,
    stderr,
  }));
  return { child, finished, said: () => stdout };
}

/** Runs it to its end. */
export const example = (path: string, args: readonly string[], redis: string): Promise<Finished> =>
  startExample(path, args, redis).finished;
