import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Finished, type Heard, listen } from './listen.js';

/** Starts a program of `examples/`, as a user would, with `redis` as its REDIS_URL. */
export function startExample(path: string, args: readonly string[], redis: string): Heard {
  const program = fileURLToPath(new URL(`../../examples/${path}`, import.meta.url));
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, REDIS_URL: redis },
  });
  return listen(child);
}

/** Runs it to its end. */
export const example = (path: string, args: readonly string[], redis: string): Promise<Finished> =>
  startExample(path, args, redis).finished;
