import { type Connection, type OwnedEntry, RunningCommands } from '@piecework/protocol';
import type { RunningOptions } from './options.js';

/** A sub-request that a worker runs, or has read ahead. */
export interface RunningSubRequest {
  readonly index: number;
  /** Boot id of the worker, `<host>-<pid>-…`. */
  readonly worker: string;
  /** Since when the worker has it, in ms, by the Redis server's clock; includes the time that it waited there. */
  readonly forMs: number;
  /** Number of the attempt; 1 is the first. */
  readonly attempt: number;
  /**
   * Whether it waits at its worker: the worker has got as many before it as it may run at once. Of a worker that just
   * gave slots to another request, this may be late by some milliseconds.
   */
  readonly readAhead: boolean;
  /** The number that its handler last passed to `context.progress`; undefined: none. */
  readonly progress: number | undefined;
}

/** Workers whose entries are read in one round trip. */
const AT_ONCE = 50;

/**
 * The running sub-requests of a request, the longest first. Reads the entries that its workers own, and
 * keeps no more than `limit`. 'gone': there is no such request, or it is complete.
 */
export async function runningOf(
  connection: Connection,
  id: string,
  { limit, longerThanMs }: Required<RunningOptions>,
): Promise<RunningSubRequest[] | 'gone'> {
  const commands = new RunningCommands(connection, id);
  const workers = await commands.workers();
  if (workers === 'gone') return 'gone';
  let held: OwnedEntry[] = [];
  const keep = (page: readonly OwnedEntry[]) => {
    held = [...held, ...page]
      .sort((a, b) => b.forMs - a.forMs || a.index - b.index)
      .slice(0, limit);
  };
  for (let i = 0; i < workers.length; i += AT_ONCE) {
    const some = workers.slice(i, i + AT_ONCE).map(async (worker) => {
      for await (const page of commands.ownedBy(worker, longerThanMs)) keep(page);
    });
    await Promise.all(some);
  }
  const owners = [...new Set(held.map(({ worker }) => worker))];
  const [details, permits] = await Promise.all([
    commands.details(held.map(({ index }) => index)),
    commands.permits(owners),
  ]);
  const seen = new Map<string, number>();
  return held.map(({ index, worker, forMs }, i) => ({
    ...{ index, worker, forMs, readAhead: isAhead(worker) },
    attempt: (details[i]?.failedAttempts ?? 0) + 1,
    progress: details[i]?.progress,
  }));

  /** A worker starts them in the order in which it got them, and `held` begins with the first. */
  function isAhead(worker: string): boolean {
    const before = seen.get(worker) ?? 0;
    seen.set(worker, before + 1);
    return before >= (permits.get(worker) ?? 0);
  }
}
