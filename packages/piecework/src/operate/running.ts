import {
  type Connection,
  type HeldEntry,
  LONGEST_DELAY_MS,
  type OptionTable,
  option,
  RunningCommands,
} from '@piecework/protocol';

export interface RunningOptions {
  /** How many at most, from 1 to 10,000: those that run longest. @default 100 */
  readonly limit?: number | undefined;
  /** Only what has run for so long, in ms. @default 0 */
  readonly longerThanMs?: number | undefined;
}

export const runningOptions: OptionTable = {
  limit: option.integer(1, 10_000, 100),
  longerThanMs: option.ms(0, LONGEST_DELAY_MS, 0),
};

/** A sub-request that a worker has. */
export interface RunningSubRequest {
  readonly index: number;
  /** Boot id of the worker that has it, `<host>-<pid>-…`. */
  readonly worker: string;
  /** For how long, in ms, by the Redis server's clock. One that waits there to run alone counts too. */
  readonly forMs: number;
  /** Which attempt it is. */
  readonly attempt: number;
  /** What its handler last reported; undefined: nothing. */
  readonly progress: number | undefined;
}

/** Workers that are asked about in one round trip. */
const AT_ONCE = 50;

/**
 * What runs of a request, the longest first. Reads what all workers have, which is no more than they have slots,
 * and keeps no more than is asked for. 'gone': there is no such request, or it is complete.
 */
export async function runningOf(
  connection: Connection,
  id: string,
  { limit, longerThanMs }: Required<RunningOptions>,
): Promise<RunningSubRequest[] | 'gone'> {
  const commands = new RunningCommands(connection, id);
  const workers = await commands.workers();
  if (workers === 'gone') return 'gone';
  let held: HeldEntry[] = [];
  const keep = (page: readonly HeldEntry[]) => {
    held = [...held, ...page]
      .sort((a, b) => b.forMs - a.forMs || a.index - b.index)
      .slice(0, limit);
  };
  for (let i = 0; i < workers.length; i += AT_ONCE) {
    const some = workers.slice(i, i + AT_ONCE).map(async (worker) => {
      for await (const page of commands.heldBy(worker, longerThanMs)) keep(page);
    });
    await Promise.all(some);
  }
  const details = await commands.details(held.map(({ index }) => index));
  return held.map(({ index, worker, forMs }, i) => ({
    ...{ index, worker, forMs },
    attempt: (details[i]?.failedAttempts ?? 0) + 1,
    progress: details[i]?.progress,
  }));
}
