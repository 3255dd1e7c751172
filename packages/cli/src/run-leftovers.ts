import { hostname } from 'node:os';
import {
  type Connection,
  QueueCommands,
  RequestCommands,
  RunningCommands,
  shardNames,
} from '@piecework/protocol';
import { programsEnded } from './programs-ended.js';
import { say } from './progress-bar.js';
import { runs } from './run-lock.js';
import { noteEnd } from './worker-end.js';

/**
 * What the workers of an earlier run still hold when the next one begins. Others wait for the lease of a worker that
 * is silent. That wait ends early where it is certain that the worker has ended, and all that it had started; else it
 * is said how long it may take.
 */

export interface Leftovers {
  readonly redis: string;
  readonly queue: string;
  readonly shards: number;
  readonly id: string;
  /** Whether the last run was of this machine, where process ids mean the same, and has ended. */
  readonly here: boolean;
  /** What it ran. A persistent program does not say for which request it works. */
  readonly work: 'handler' | 'programs' | 'persistent programs';
}

interface Holder {
  readonly worker: string;
  readonly count: number;
  readonly leaseMs: number;
}

/** Frees what ended workers hold, and says what has to be waited for. */
export async function freeLeftovers(connection: Connection, run: Leftovers): Promise<void> {
  const { redis, id, here } = run;
  const running = new RunningCommands(connection, id);
  const holders = await running.workers();
  if (holders === 'gone' || holders.length === 0) return;
  const queues = shardNames(run.queue, run.shards);
  const known = await Promise.all(
    queues.map((name) => new QueueCommands(connection, name).workers()),
  );
  const isOver = (worker: string) => {
    const found = known.flat().find((one) => one.id === worker);
    return here && found?.host === hostname() && !runs(found.pid);
  };
  const over = holders.filter(isOver);
  const freed = over.length > 0 && (await hasEnded(run)) ? over : [];
  for (const worker of freed) await noteEnd(redis, { worker, queues }, {}, true);
  const rest = holders.filter((worker) => !freed.includes(worker));
  const held = await Promise.all(rest.map((worker) => leaseOf(connection, running, id, worker)));
  const waited = held.filter(({ leaseMs, count }) => leaseMs > 0 && count > 0);
  if (waited.length > 0) say(waitLine(waited));
}

async function leaseOf(
  connection: Connection,
  running: RunningCommands,
  id: string,
  worker: string,
): Promise<Holder> {
  const field = `lease:${worker}`;
  const lease = (await new RequestCommands(connection, id).fields(field))[field] ?? '';
  const [seconds, micros] = await connection.client.time();
  let count = 0;
  for await (const page of running.heldBy(worker, 0)) count += page.length;
  const nowMs = Number(seconds) * 1_000 + Number(micros) / 1_000;
  return { worker, count, leaseMs: Number(lease) - nowMs };
}

/** A worker that lives goes on renewing its lease, and what it has ends there. */
function waitLine(held: readonly Holder[]): string {
  const count = held.reduce((sum, one) => sum + one.count, 0);
  const longest = Math.max(...held.map(({ leaseMs }) => leaseMs));
  const until = new Date(Date.now() + longest).toTimeString().slice(0, 8);
  const what = count === 1 ? '1 sub-request is' : `${count} sub-requests are`;
  const seconds = Math.ceil(longest / 1_000);
  return `${what} with workers of the last run; what those do not end, runs again when their lease is over: at ${until}, in ${seconds} s`;
}

/** Whether nothing that the ended workers of a run had started still runs here, as far as it can be known. */
async function hasEnded({ work, id }: Leftovers): Promise<boolean> {
  if (work === 'handler') return true;
  if (work === 'persistent programs') return false;
  return await programsEnded('PIECEWORK_REQUEST_ID', id);
}
