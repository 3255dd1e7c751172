import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Finished, type Heard, listen } from './listen.js';

/*
 * The command line, run as a user would.
 */

const PROGRAM = fileURLToPath(new URL('../../packages/cli/bin/piecework.js', import.meta.url));

const COMMAND_LINES = fileURLToPath(new URL('./programs/command-lines.mjs', import.meta.url));

/** How long a process may take to start and get to work, beside many others: for `until`. */
export const STARTS = { timeoutMs: 45_000 };

/** Without `redis` it is given none, not even by the environment. */
function environment(redis?: string): NodeJS.ProcessEnv {
  const { REDIS_URL: _, ...env } = process.env;
  return redis ? { ...env, REDIS_URL: redis } : env;
}

/** Starts `piecework …`. Without `redis` it is given none. `input` null: its standard input stays open. */
export function startCli(
  args: readonly string[],
  { redis, input, cwd }: { redis?: string; input?: string | null; cwd?: string } = {},
): Heard {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: environment(redis),
    ...(cwd ? { cwd } : {}),
  });
  if (input !== null) child.stdin.end(input ?? '');
  return listen(child);
}

/** Runs `piecework …` to its end. */
export function cli(
  args: readonly string[],
  options: Parameters<typeof startCli>[1] = {},
): Promise<Finished> {
  return startCli(args, options).finished;
}

/** Runs many command lines in one process, one after the other: those that end before they open anything. */
export class CommandLines {
  readonly #child: ReturnType<typeof fork>;

  constructor(redis?: string) {
    this.#child = fork(COMMAND_LINES, { env: environment(redis) });
  }

  async run(args: readonly string[]): Promise<Finished> {
    this.#child.send(args);
    const [finished] = await once(this.#child, 'message');
    return finished as Finished;
  }

  async close(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.disconnect();
    await ended;
  }
}
