/** What of an open request decides how much of it could run. */
export interface Waiting {
  readonly task: string;
  /** Could run now, and does not. */
  readonly ready: number;
  readonly running: number;
  /** null: no limit. */
  readonly limit: number | null;
  /** Whether it is paused, or waits for a time. */
  readonly rests: boolean;
}

/** How much a fleet has to do. */
export interface Work {
  /** How many slots it could occupy at once. */
  readonly workSlots: number;
  /** How many seconds one slot would take for all of it. */
  readonly workSeconds: number;
  /** How many slots do it in the target time; at least 1 unless there is none. */
  readonly neededSlots: number;
}

/** Divisions of decimal fractions end a little above what they should be. */
const ROUNDING = 1e-9;

/**
 * What is waiting and what runs, in slots, in seconds of one slot, and as the number of slots that the fleet needs.
 *
 * That number depends on nothing that the fleet's size changes, so a scaler that follows it does not swing: more workers
 * do not make it smaller, except by the work that they do. It counts what runs, too: otherwise a fleet would be taken
 * away from handlers that run for long.
 *
 * @param handlerSeconds mean time of a handler
 * @param targetSeconds within which all that is known now should be done
 * @param isPaused nothing starts in the whole queue
 */
export function workOf(
  requests: Iterable<Waiting>,
  {
    handlerSeconds,
    targetSeconds,
    isPaused,
  }: {
    readonly handlerSeconds: number;
    readonly targetSeconds: number;
    readonly isPaused: boolean;
  },
): Work {
  let workSlots = 0;
  let subRequests = 0;
  for (const { ready, running, limit, rests } of requests) {
    const waiting = rests || isPaused ? 0 : ready;
    const room = limit === null ? waiting : Math.max(0, limit - running);
    workSlots += running + Math.min(waiting, room);
    subRequests += running + waiting;
  }
  const workSeconds = subRequests * handlerSeconds;
  const inTime = Math.ceil(workSeconds / targetSeconds - ROUNDING);
  return {
    workSlots,
    workSeconds,
    neededSlots: workSlots === 0 ? 0 : Math.min(workSlots, Math.max(1, inTime)),
  };
}
