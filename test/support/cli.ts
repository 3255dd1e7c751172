import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Finished, type Heard, listen } from './listen.js';

/*
 * The command line, run as a user would.
 */

const PROGRAM = fileURLToPath(
  new URL('../../packages/piecework/bin/piecework.js', import.meta.url),
);

/** Starts `piecework …`. Without `redis` it is given none, not even by the environment. */
export function startCli(
  args: readonly string[],
  { redis, input, cwd }: { redis?: string; input?: string; cwd?: string } = {},
): Heard {
  const { REDIS_URL: _, ...env } = process.env;
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: redis ? { ...env, REDIS_URL: redis } : env,
    ...(cwd ? { cwd } : {}),
  });
  child.stdin.end(input ?? '');
  return listen(child);
}

/** Runs `piecework …` to its end. */
export function cli(
  args: readonly string[],
  options: Parameters<typeof startCli>[1] = {},
): Promise<Finished> {
  return startCli(args, options).finished;
}
