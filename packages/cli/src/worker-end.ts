import {
  Connection,
  type CrashCause,
  QueueCommands,
  RequestCommands,
  RunningCommands,
} from '@piecework/protocol';
import pTimeout from 'p-timeout';

/** Of a queue with more open requests than this, the others are found when their leases are over. */
const LOOKED_AT = 10_000;
/** How long all of it may take, in ms. */
const PATIENCE_MS = 5_000;

/** How many of the sub-requests that it ran are named. */
const NAMED = 10;

/** A worker of this machine whose process has ended, and the queues (or shards) that it served. */
export interface EndedWorker {
  readonly worker: string;
  readonly queues: readonly string[];
}

/** What the end of a process tells. */
export function causeOf(exitCode: number | null, signal: string | null): CrashCause {
  if (signal === null) return exitCode === null ? {} : { exitCode };
  // The kernel sends the one when the machine is out of memory, Node the other when its heap is full.
  const perhaps = signal === 'SIGKILL' || signal === 'SIGABRT';
  return perhaps ? { signal, outOfMemory: 'perhaps' } : { signal };
}

/**
 * Notes on the requests that a worker held why it ended, and has them looked at, so that nobody waits for
 * its lease; and strikes it out of the registry. Which they are is asked of Redis: a worker that dies at once could not have told its parent.
 * Fails silently, as when Redis is away: then the leases end, and nobody knows why.
 *
 * @returns what it had, as 'request:index': NAMED at most
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
    const request = new RequestCommands(connection, id);
    const noted = await request.cause(generation, worker, cause, dead);
    if (noted !== 'ok') return;
    if (ran.length < NAMED) {
      for await (const held of new RunningCommands(connection, id).heldBy(worker, 0)) {
        ran.push(...held.slice(0, NAMED).map(({ index }) => `${id}:${index}`));
        break;
      }
    }
    if (dead) await queue.note(id, generation, 0);
  };
  const noteAll = async (name: string) => {
    const queue = new QueueCommands(connection, name);
    let looked = 0;
    for await (const page of queue.openRequests()) {
      await Promise.all(page.map(({ id, generation }) => note(queue, id, generation)));
      looked += page.length;
      if (looked >= LOOKED_AT) break;
    }
    await queue.depart(worker);
  };
  try {
    await pTimeout(Promise.all(queues.map(noteAll)), { milliseconds: PATIENCE_MS });
  } catch {
    // See above.
  } finally {
    await connection.close().catch(() => {});
  }
  return ran.slice(0, NAMED);
}
