import type { RequestOutcome } from '@piecework/protocol';

/** How an attempt ended. 'retried': it failed, and another follows. 'returned': it was given back, and does not count. */
export type AttemptEnd = 'succeeded' | 'failed' | 'retried' | 'returned';

/** What is measured of the requests of one task. */
export interface TaskMeter {
  /** A sub-request starts for the first time, so long after its request was created. */
  started(waitedMs: number): void;
  /** The handler of an attempt has ended, or its time is up. `error`: the name of what it threw, where it failed. */
  ended(ranMs: number, end: AttemptEnd, error?: string): void;
  /** The same attempt has used so much, by names of its handler; called only if it has. */
  used(amounts: ReadonlyMap<string, number>): void;
  /** A report of this worker completed a request, so long after it was created. */
  completed(outcome: RequestOutcome, tookMs: number): void;
}

/**
 * Receives what a worker measures. Called within the worker's own work, so that it is cheap, and not by events, each of
 * which would cost an object and a microtask: so a method takes little time, and throws nothing.
 */
export interface Meter {
  /** Asked for once in each session of a request. '': requests without a task. */
  task(name: string): TaskMeter;
  /** The server has answered a report of outcomes; the time contains all repeats of the call. */
  settled(tookMs: number): void;
  /** So many calls have not been answered for five seconds. */
  stalled(calls: number): void;
}

/** Who receives what a worker measures, if anybody does, and the time of the server. Without a meter nothing is read. */
export class Measuring {
  meter: Meter | undefined;
  /** Time of the server when performance.now() was 0. */
  #epoch = performance.timeOrigin;

  /** The server has just answered with its time. */
  learn(serverNow: number): void {
    this.#epoch = serverNow - performance.now();
  }

  /** How long after `since`, in ms of the server's clock, it is `at`, as performance.now(). Never negative. */
  msSince(since: number, at = performance.now()): number {
    return Math.max(0, this.#epoch + at - since);
  }
}
