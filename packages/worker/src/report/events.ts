import type { EventEmitter } from 'node:events';
import { errorOf, isThrown, type KeptError } from '@piecework/protocol';
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

/** Emits the events of a worker. Without a listener it only counts listeners. */
export class Events {
  /** What comes too often for events. */
  readonly measuring = new Measuring();
  readonly #emitter: EventEmitter<WorkerEvents>;
  readonly #logger: Logger;

  constructor(emitter: EventEmitter<WorkerEvents>, logger: Logger) {
    this.#emitter = emitter;
    this.#logger = logger;
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
