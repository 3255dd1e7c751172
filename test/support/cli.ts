import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Finished, type Heard, listen } from './listen.js';
import { endWithTest } from './processes.js';
import { until } from './until.js';

/*
 * The command line, run as a user would.
 */

const PROGRAM = fileURLToPath(new URL('../../packages/cli/bin/piecework.js', import.meta.url));

const COMMAND_LINES = fileURLToPath(new URL('./programs/command-lines.mjs', import.meta.url));

/** For `until`: how long a process may take to start and begin its work on a busy machine. */
export const STARTS = { timeoutMs: 45_000 };

/** Without `redis`, the environment has no REDIS_URL. */
function environment(redis?: string): NodeJS.ProcessEnv {
  const { REDIS_URL: _, ...env } = process.env;
  return redis ? { ...env, REDIS_URL: redis } : env;
}

interface StartOptions {
  readonly redis?: string;
  /** Null: its standard input stays open. */
  readonly input?: string | null;
  readonly cwd?: string;
  /** Or a file descriptor that its standard output goes to. */
  readonly stdout?: number | 'pipe';
}

/** Starts `piecework …`, without a Redis unless `redis` is given. It ends with the test, at the latest. */
export function startCli(
  args: readonly string[],
  { redis, input, cwd, stdout = 'pipe' }: StartOptions = {},
): Heard {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    stdio: ['pipe', stdout, 'pipe'],
    env: environment(redis),
    ...(cwd ? { cwd } : {}),
  });
  endWithTest(child);
  if (input !== null) child.stdin?.end(input ?? '');
  return listen(child);
}

/** Presses Ctrl-C twice. Within half a second the second would be none, and a third would cut the end short. */
export async function endAtOnce(press: () => void, said: () => string): Promise<void> {
  press();
  const isStopping = () => said().includes('Ctrl-C again ends at once');
  await until(isStopping, { what: 'it is stopping', ...STARTS });
  await sleep(600);
  press();
}

/** Runs `piecework …` to its end. */
export function cli(
  args: readonly string[],
  options: Parameters<typeof startCli>[1] = {},
): Promise<Finished> {
  return startCli(args, options).finished;
}

/**
 * Runs command lines to their ends, each in a process that has run others before where one is idle: so only the first
 * loads the program. A command that leaves a connection, a timer or a process behind keeps the process from ending, and
 * `close` waits for that end.
 */
export class CommandLines {
  readonly #processes: CommandLineProcess[] = [];

  async run(args: readonly string[], redis?: string): Promise<Finished> {
    let one = this.#processes.find(({ isIdle }) => isIdle);
    if (!one) {
      one = new CommandLineProcess();
      this.#processes.push(one);
    }
    return await one.run(args, redis);
  }

  async close(): Promise<void> {
    await Promise.all(this.#processes.map((one) => one.close()));
  }
}

/** Whether a command line may share a process: it ends by itself, and reads no standard input. */
export function canShare(args: readonly string[]): boolean {
  const readsStdin = args.some((arg, i) => arg === '-' && args[i - 1] !== '--out');
  return !readsStdin && !['worker', 'exporter', 'dev', 'complete'].includes(args[0] ?? '');
}

/** Written to an output behind what a command has written. */
const MARK = '\n<the end of this command>\n';

class CommandLineProcess {
  readonly #child = fork(COMMAND_LINES, {
    env: environment(),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  readonly #heard = listen(this.#child);
  /** Not its event `close`, which Node does not emit after `disconnect`. */
  readonly #ended = once(this.#child, 'exit');
  isIdle = true;

  async run(args: readonly string[], redis: string | undefined): Promise<Finished> {
    this.isIdle = false;
    const { said } = this.#heard;
    Object.assign(said, { stdout: '', stderr: '' });
    this.#child.send({ args, redis, mark: MARK });
    const died = this.#ended.then(() => {
      throw new Error(`the process of the command lines has ended: ${JSON.stringify(said)}`);
    });
    const [{ code }] = await Promise.race([once(this.#child, 'message'), died]);
    const textOf = async (output: 'stdout' | 'stderr') => {
      while (!said[output].endsWith(MARK)) await once(this.#child[output] as Readable, 'data');
      return said[output].slice(0, -MARK.length);
    };
    const [stdout, stderr] = await Promise.all([textOf('stdout'), textOf('stderr')]);
    this.isIdle = true;
    return { code, stdout, stderr };
  }

  async close(): Promise<void> {
    this.#child.disconnect();
    await this.#ended;
  }
}
