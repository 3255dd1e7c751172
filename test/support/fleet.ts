import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agenda } from '@piecework/protocol';
import type { WorkerOptions } from '@piecework/worker';
import type { Flow } from './flow.js';
import { type Program, programAt, startProgram } from './processes.js';
import { until } from './until.js';

/*
 * Worker processes for the crash tests: worker.mjs with a log of what its handler did.
 */

export const LEASE_MS = 1_000;

export interface Started extends Program {
  readonly id: string;
  /** Indexes that it started, in that order. */
  started(): Promise<number[]>;
  /** How often its handler noted this: 'start', 'end', 'aborted'. */
  noted(what: string): Promise<number>;
  /** When the first of its handlers began, in ms of the wall clock. */
  began(): Promise<number>;
  /** Lets the handlers go on that wait to be `told`. */
  tell(): Promise<void>;
}

export async function startWorker(
  flow: Flow,
  handle: object,
  options: Partial<WorkerOptions> = {},
  fate?: object,
  path = programAt('worker'),
): Promise<Started> {
  const folder = await mkdtemp(join(tmpdir(), 'piecework-crash-'));
  flow.after(() => rm(folder, { recursive: true }));
  const [log, go] = [join(folder, 'log'), join(folder, 'go')];
  const { redis, queue } = flow;
  const argument = {
    options: { redis, queue, concurrency: 5, leaseMs: LEASE_MS, ...options },
    handle: { ...handle, go },
    log,
    fate,
  };
  const program = startProgram(flow, 'worker', argument, path);
  const { ready } = await program.said<{ ready: string }>();
  const lines = async (what: string) =>
    (await readFile(log, 'utf8')).split('\n').filter((line) => line.startsWith(`${what} `));
  // A killed worker cannot strike itself out; the registry would forget it a minute later.
  flow.after(() => flow.queueCommands.deregister(ready));
  return {
    ...program,
    id: ready,
    started: async () => (await lines('start')).map((line) => Number(line.split(' ')[2])),
    noted: async (what) => (await lines(what)).length,
    began: async () => {
      const [first = ''] = await lines('start');
      const agoNs = process.hrtime.bigint() - BigInt(first.split(' ')[3] as string);
      return Date.now() - Number(agoNs) / 1e6;
    },
    tell: () => writeFile(go, ''),
  };
}

/** Whether a worker holds permits of a request under a lease that has not ended. */
export async function holds(flow: Flow, id: string, worker: string): Promise<boolean> {
  const seen = await flow.request(id).inspect();
  return !!seen && seen.now < Number(seen.state[`lease:${worker}`]);
}

/** Ticks as if this request were due. */
export async function tickNow(flow: Flow, id: string): Promise<void> {
  const { generation } = (await flow.request(id).state()) as { generation: number };
  await flow.queueCommands.scheduleTend(id, generation, 0);
  await new Agenda(flow.connection, flow.queueCommands).tick();
}

/**
 * Waits until the leases of these workers have ended, and ticks until they have no permits. One tick may not do: after
 * the machine stood still, it takes the stall for an outage of Redis and gives each lease its full term again.
 */
export async function leaseOver(flow: Flow, id: string, ...workers: string[]): Promise<void> {
  const over = async () => {
    const held = await Promise.all(workers.map((worker) => holds(flow, id, worker)));
    if (held.includes(true)) return false;
    await tickNow(flow, id);
    const state = (await flow.request(id).inspect())?.state ?? {};
    return !workers.some((worker) => `permits:${worker}` in state);
  };
  await until(over, { what: 'their leases are over', timeoutMs: 40_000 });
}
