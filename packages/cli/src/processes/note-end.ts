import {
  Connection,
  type CrashCause,
  QueueCommands,
  RunningCommands,
  WorkerCommands,
} from '@piecework/protocol';
import pTimeout from 'p-timeout';
import type { EndedWorker } from './worker-end.js';

/** At most this many open requests are searched; in others, the worker's lease has to end. */
const MOST_SEARCHED = 10_000;
/** How long the whole note may take, in ms. */
const PATIENCE_MS = 5_000;

/** How many of the sub-requests of the worker are named. */
const NAMED = 10;

/**
 * Notes why a worker has ended, in each request that it worked on, and has these requests tended, so that nobody waits
 * for its lease; then removes it from the registry. Redis knows the requests: a worker that dies cannot report them.
 * Never throws: if Redis cannot be reached, the leases end by themselves, and the cause stays unknown.
 *
 * @returns the sub-requests that it ran, as 'request:index', at most NAMED
 * @param dead whether its handlers ended with it; programs that it had started may still run
 */
export async function noteEnd(
  redis: string,
  { worker, queues }: EndedWorker,
  cause: CrashCause,
  dead: boolean,
): Promise<string[]> {
  const connection = Connection.open(redis);
  const ran: string[] = [];
  const note = async (queue: QueueCommands, id: string, generation: number) => {
    const request = new WorkerCommands(connection, id);
    const noted = await request.cause(generation, worker, cause, dead);
    if (noted !== 'ok') return;
    if (ran.length < NAMED) {
      for await (const owned of new RunningCommands(connection, id).ownedBy(worker, 0)) {
        ran.push(...owned.slice(0, NAMED).map(({ index }) => `${id}:${index}`));
        break;
      }
    }
    if (dead) await queue.scheduleTend(id, generation, 0);
  };
  const noteAll = async (name: string) => {
    const queue = new QueueCommands(connection, name);
    let searched = 0;
    for await (const page of queue.openRequests()) {
      await Promise.all(page.map(({ id, generation }) => note(queue, id, generation)));
      searched += page.length;
      if (searched >= MOST_SEARCHED) break;
    }
    await queue.deregister(worker);
  };
  try {
    await pTimeout(Promise.all(queues.map(noteAll)), { milliseconds: PATIENCE_MS });
  } catch {
    // The leases end by themselves.
  } finally {
    await connection.close().catch(() => {});
  }
  return ran.slice(0, NAMED);
}
