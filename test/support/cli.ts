import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/*
 * The command line, run as a user would.
 */

const PROGRAM = fileURLToPath(
  new URL('../../packages/piecework/bin/piecework.js', import.meta.url),
);

export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Starts `piecework …`. Without `redis` it is given none, not even by the environment. */
export function startCli(
  args: readonly string[],
  { redis, input, cwd }: { redis?: string; input?: string; cwd?: string } = {},
): { child: ChildProcess; finished: Promise<Finished> } {
  const { REDIS_URL: _, ...env } = process.env;
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: redis ? { ...env, REDIS_URL: redis } : env,
    ...(cwd ? { cwd } : {}),
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  child.stdin.end(input ?? '');
  const finished = once(child, 'close').then(([code]) => ({
    code: code as number | null,
    stdout,
    stderr,
  }));
  return { child, finished };
}

/** Runs `piecework …` to its end. */
export function cli(
  args: readonly string[],
  options: Parameters<typeof startCli>[1] = {},
): Promise<Finished> {
  return startCli(args, options).finished;
}
