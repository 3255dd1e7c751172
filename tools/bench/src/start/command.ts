import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { median } from 'simple-statistics';

const PROGRAM = fileURLToPath(
  new URL('../../../../packages/cli/bin/piecework.js', import.meta.url),
);
const HANDLER = fileURLToPath(new URL('./cpu-handler.js', import.meta.url));

/** Prints at the end of a process what it has used. */
const HOOK = `data:text/javascript,${encodeURIComponent(
  "process.on('exit', () => { const { user, system } = process.cpuUsage(); console.error(user + system); });",
)}`;

/** CPU of Node that does nothing, or of a command that ends by itself, in ms. */
export function cpuOfRun(args?: readonly string[]): number {
  const program = args ? [PROGRAM, ...args] : ['--eval', ''];
  const { status, stderr } = spawnSync(process.execPath, ['--import', HOOK, ...program], {
    encoding: 'utf8',
  });
  if (status === 0) return Number(stderr.trim().split('\n').at(-1)) / 1_000;
  throw new Error(`piecework ${args?.join(' ')} ended with code ${status}: ${stderr}`);
}

/** A process that stays. */
export class Command {
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown>;

  private constructor(args: readonly string[]) {
    this.#child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
    this.#exit = once(this.#child, 'exit');
  }

  /** `piecework worker`, with the handler of this folder. */
  static worker(redis: string, queue: string, ...flags: string[]): Command {
    const where = ['--redis', redis, '--queue', queue, '--handler', HANDLER];
    return new Command([PROGRAM, 'worker', ...where, '--log-level', 'warn', ...flags]);
  }

  /** Node that waits. */
  static node(): Command {
    return new Command(['--eval', 'setInterval(() => {}, 60_000)']);
  }

  /** Median of its resident memory over a time, in MB. */
  async residentMB(overMs: number): Promise<number> {
    const samples: number[] = [];
    const end = performance.now() + overMs;
    do {
      await sleep(overMs / 10);
      samples.push(residentKilobytes(this.#child.pid as number) / 1_024);
    } while (performance.now() < end);
    return median(samples);
  }

  async close(): Promise<void> {
    this.#child.kill('SIGTERM');
    await this.#exit;
  }
}

function residentKilobytes(pid: number): number {
  const file = `/proc/${pid}/status`;
  if (!existsSync(file)) return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)]));
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(file, 'utf8'))?.[1]);
}
