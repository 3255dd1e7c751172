import type { EventEmitter } from 'node:events';
import { errorOf, isThrown, type KeptError, PieceworkError } from '@piecework/protocol';
import type { Logger } from 'pino';
import { Measuring } from './meter.js';

/** A sub-request that got its final outcome from a report of this worker. */
export type SettledEvent = {
  readonly requestId: string;
  readonly index: number;
  /** Number of the attempt that decided. */
  readonly attempt: number;
} & (
  | { readonly status: 'succeeded' }
  /** In a request that is being cancelled it counts as cancelled. */
  | { readonly status: 'failed'; readonly error: KeptError }
);

/**
 * The events of a worker, with the arguments of each listener. Listeners are called soon after, in the order of the
 * events, never in the middle of the worker's own work. A listener that throws, or whose promise rejects, is
 * logged; nothing else happens.
 */
export interface WorkerEvents {
  /** Something went wrong; the worker continues by itself. It is logged as well, with or without a listener. */
  error: [error: Error, about: { readonly requestId?: string }];
  /** The server has answered the outcome. A report that came twice, or too late, may be among these. */
  settled: [settled: SettledEvent];
  /** This worker tended a request and took sub-requests back from workers that are gone. */
  reclaimed: [reclaimed: { readonly requestId: string; readonly count: number }];
  /** The lease of this worker on a request has ended; the handlers of these were asked to stop. */
  leaseLost: [
    lost: { readonly requestId: string; readonly why: string; readonly indexes: readonly number[] },
  ];
  /** A connection that had been lost is back: that of the calls, or the one that waits for work. */
  reconnected: [back: { readonly connection: 'calls' | 'intake' }];
  /** This worker has no work any more: none runs, and no outcome waits to be reported. */
  drained: [];
}

/** How long a worker counts as one that lacks a right after a call was refused, in ms: what fails is tried again sooner. */
const REFUSED_MS = 60_000;

/** Emits the events of a worker. Without a listener it only counts listeners. */
export class Events {
  /** What comes too often for events. */
  readonly measuring = new Measuring();
  readonly #emitter: EventEmitter<WorkerEvents>;
  readonly #logger: Logger;
  /** The last call that the Redis user had no right to, and when it was refused. */
  #refused = { why: '', at: -Infinity };

  constructor(emitter: EventEmitter<WorkerEvents>, logger: Logger) {
    this.#emitter = emitter;
    this.#logger = logger;
  }

  /** Which right the Redis user lacks, in words, as a call of the last minute was told; '' when none was. */
  get refused(): string {
    return performance.now() - this.#refused.at < REFUSED_MS ? this.#refused.why : '';
  }

  heard(name: keyof WorkerEvents): boolean {
    return this.#emitter.listenerCount(name) > 0;
  }

  emit<Name extends keyof WorkerEvents>(name: Name, ...what: WorkerEvents[Name]): void {
    if (!this.heard(name)) return;
    queueMicrotask(() => {
      // Raw, so that listeners of `once` remove themselves.
      for (const listener of this.#emitter.rawListeners(name)) this.#call(name, listener, what);
    });
  }

  /** Emits 'error' for anything that was thrown. */
  emitError(thrown: unknown, about: { readonly requestId?: string } = {}): void {
    if (isThrown(thrown, PieceworkError) && thrown.code === 'NO_RIGHT')
      this.#refused = { why: thrown.message, at: performance.now() };
    this.emit('error', isThrown(thrown, Error) ? thrown : errorOf(thrown), about);
  }

  #call(name: string, listener: (...what: never[]) => unknown, what: readonly unknown[]): void {
    const failed = (error: unknown) => {
      // cure: a value that a listener threw is logged as an error
      const err = errorOf(error);
      this.#logger.warn({ err, event: name }, 'a listener failed');
    };
    try {
      const answer = Reflect.apply(listener, this.#emitter, what) as unknown;
      if (answer !== undefined) Promise.resolve(answer).catch(failed);
    } catch (error) {
      failed(error);
    }
  }
}
