import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Flow } from './flow.js';
import { type Program, startProgram } from './processes.js';

/*
 * Worker processes as a supervisor runs them: whoever dies is replaced. What their handlers did is
 * read from their logs.
 */

/** A line of a worker's log. */
export interface Line {
  readonly what: 'start' | 'end';
  readonly request: string;
  readonly index: number;
  readonly crashes: number;
}

export interface RestartedFleet {
  /** The log of each process that was started, in that order. */
  logs(): Promise<Line[][]>;
  /** How many died. */
  readonly deaths: number;
  /** Kills those that live. */
  kill(): void;
  /** Lets them end, and replaces nobody any more. */
  close(): Promise<void>;
}

export async function startRestarted(
  flow: Flow,
  size: number,
  { concurrency, leaseMs, handle }: { concurrency: number; leaseMs: number; handle: object },
): Promise<RestartedFleet> {
  const folder = await mkdtemp(join(tmpdir(), 'piecework-restarted-'));
  flow.after(() => rm(folder, { recursive: true }));
  const files: string[] = [];
  const living = new Set<Program>();
  let stopping = false;
  let deaths = 0;

  const start = async (): Promise<void> => {
    const log = join(folder, `${files.length}`);
    files.push(log);
    const options = { redis: flow.redis, queue: flow.queue, concurrency, leaseMs };
    const program = startProgram(flow, 'worker', { options, handle, log });
    living.add(program);
    void program.ended.then(async () => {
      living.delete(program);
      // When vitest was killed, this process may be left, and nobody would ever end the fleet.
      if (stopping || process.connected === false) return;
      deaths += 1;
      await start();
    });
    const said = await program.said<{ ready: string }>().catch(() => undefined);
    // A killed worker cannot strike itself out; the registry would forget it a minute later.
    if (said) flow.after(() => flow.queueCommands.deregister(said.ready));
  };
  await Promise.all(Array.from({ length: size }, start));

  return {
    get deaths() {
      return deaths;
    },
    logs: () => Promise.all(files.map(readLog)),
    kill: () => {
      for (const { kill } of living) kill('SIGKILL');
    },
    close: async () => {
      stopping = true;
      const last = [...living];
      for (const { kill } of last) kill('SIGTERM');
      await Promise.all(last.map(({ ended }) => ended));
    },
  };
}

async function readLog(file: string): Promise<Line[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => /^(start|end) /.test(line))
    .map((line) => {
      const [what, request, index, , crashes] = line.split(' ') as string[];
      return {
        what: what as 'start',
        request: request as string,
        index: Number(index),
        crashes: Number(crashes),
      };
    });
}

/** How many other handlers ran in a process when this one was started there. */
export function besides(log: readonly Line[], at: number): number {
  const running = new Set<string>();
  for (const { what, request, index } of log.slice(0, at)) {
    if (what === 'start') running.add(`${request} ${index}`);
    else running.delete(`${request} ${index}`);
  }
  return running.size;
}
