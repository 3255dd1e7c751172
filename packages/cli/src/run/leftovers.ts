import { hostname } from 'node:os';
import {
  type Connection,
  pause,
  processRuns,
  QueueCommands,
  RequestReads,
  RunningCommands,
  shardNames,
} from '@piecework/protocol';
import { programsEnded } from '../exec/programs-ended.js';
import { noteEnd } from '../processes/note-end.js';
import { say } from '../terminal/print.js';

/**
 * Sub-requests that workers of an earlier run still own when the next run begins. Normally they run again when the
 * lease of such a worker has ended. They are freed at once where it is certain that the worker and all programs that
 * it started have ended; else the run says how long it waits.
 */

/** How long worker processes are waited for that end because their run was killed a moment ago. */
const ENDING_MS = 2_000;
const CHECK_MS = 50;

export interface Leftovers {
  readonly redis: string;
  readonly queue: string;
  readonly shards: number;
  readonly id: string;
  /** Whether the last run was on this machine, so that its process ids can be checked, and has ended. */
  readonly here: boolean;
  /** What it ran. From a persistent program one cannot see for which request it works. */
  readonly work: 'handler' | 'programs' | 'persistent programs';
}

interface Owner {
  readonly worker: string;
  readonly count: number;
  readonly leaseMs: number;
}

/** Frees what ended workers own, and says how long the rest is waited for. */
export async function freeLeftovers(connection: Connection, run: Leftovers): Promise<void> {
  const { redis, id, here } = run;
  const running = new RunningCommands(connection, id);
  const owners = await running.workers();
  if (owners === 'gone' || owners.length === 0) return;
  const queues = shardNames(run.queue, run.shards);
  const known = await Promise.all(
    queues.map((name) => new QueueCommands(connection, name).workers()),
  );
  /** Of those that ran on this machine. */
  const pidOf = (worker: string) => {
    const found = known.flat().find((one) => one.id === worker);
    return here && found?.host === hostname() ? found.pid : undefined;
  };
  const isRunning = (worker: string) => {
    const pid = pidOf(worker);
    return pid !== undefined && processRuns(pid);
  };
  for (let ms = 0; owners.some(isRunning) && ms < ENDING_MS; ms += CHECK_MS) await pause(CHECK_MS);
  const dead = owners.filter((worker) => pidOf(worker) !== undefined && !isRunning(worker));
  const freed = dead.length > 0 && (await hasEnded(run)) ? dead : [];
  // cure: entries of ended workers of the last run are freed
  for (const worker of freed) await noteEnd(redis, { worker, queues }, {}, true);
  const rest = owners.filter((worker) => !freed.includes(worker));
  const owned = await Promise.all(rest.map((worker) => leaseOf(connection, running, id, worker)));
  const waited = owned.filter(({ leaseMs, count }) => leaseMs > 0 && count > 0);
  if (waited.length > 0) say(waitLine(waited));
}

async function leaseOf(
  connection: Connection,
  running: RunningCommands,
  id: string,
  worker: string,
): Promise<Owner> {
  const field = `lease:${worker}`;
  const lease = (await new RequestReads(connection, id).fields(field))[field] ?? '';
  const [seconds, micros] = await connection.client.time();
  let count = 0;
  for await (const page of running.ownedBy(worker, 0)) count += page.length;
  const nowMs = Number(seconds) * 1_000 + Number(micros) / 1_000;
  return { worker, count, leaseMs: Number(lease) - nowMs };
}

/** A worker that still runs renews its lease and finishes what it has. */
function waitLine(owned: readonly Owner[]): string {
  const count = owned.reduce((sum, one) => sum + one.count, 0);
  const longest = Math.max(...owned.map(({ leaseMs }) => leaseMs));
  const until = new Date(Date.now() + longest).toTimeString().slice(0, 8);
  const what = count === 1 ? '1 sub-request is' : `${count} sub-requests are`;
  const seconds = Math.ceil(longest / 1_000);
  return `${what} with workers of the last run; what they do not finish runs again when their lease ends: at ${until}, in ${seconds} s`;
}

/** Whether everything that the dead workers had started has ended too; false where that cannot be known. */
async function hasEnded({ work, id }: Leftovers): Promise<boolean> {
  if (work === 'handler') return true;
  if (work === 'persistent programs') return false;
  return await programsEnded('PIECEWORK_REQUEST_ID', id);
}
