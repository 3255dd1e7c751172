import type { EventEmitter } from 'node:events';
import { errorOf, isThrown, type KeptError } from '@piecework/protocol';
import type { Logger } from 'pino';

/** A sub-request that got its final outcome by a report of this worker. */
export type SettledEvent = {
  readonly requestId: string;
  readonly index: number;
  /** Which attempt it was that decided. */
  readonly attempt: number;
} & (
  | { readonly status: 'succeeded' }
  /** In a request that is being cancelled it counts as cancelled. */
  | { readonly status: 'failed'; readonly error: KeptError }
);

/**
 * What a worker tells of itself; the arguments of each listener. Listeners are called soon after, in the
 * order of the events, never in the middle of the worker's own work. Of one that throws, or whose promise
 * rejects, the log has a line, and nothing else happens.
 */
export interface WorkerEvents {
  /** Something went wrong; the worker goes on by itself. In the log as well, with or without a listener. */
  error: [error: Error, about: { readonly requestId?: string }];
  /** The server has taken the outcome. A report that came twice, or too late, may be told as well. */
  settled: [settled: SettledEvent];
  /** A look of this worker at a request took sub-requests back from workers that are gone. */
  reclaimed: [reclaimed: { readonly requestId: string; readonly count: number }];
  /** The lease of this worker on a request is over; the handlers of these were told to stop. */
  leaseLost: [
    lost: { readonly requestId: string; readonly why: string; readonly indexes: readonly number[] },
  ];
  /** A connection that had been lost is back: that of the calls, or the one that waits for work. */
  reconnected: [back: { readonly connection: 'calls' | 'intake' }];
  /** This worker holds no work any more: none runs, and no outcome waits to be reported. */
  drained: [];
}

/** Tells listeners what happened. Nobody listens: costs one look. */
export class Events {
  readonly #emitter: EventEmitter<WorkerEvents>;
  readonly #logger: Logger;

  constructor(emitter: EventEmitter<WorkerEvents>, logger: Logger) {
    this.#emitter = emitter;
    this.#logger = logger;
  }

  heard(name: keyof WorkerEvents): boolean {
    return this.#emitter.listenerCount(name) > 0;
  }

  tell<Name extends keyof WorkerEvents>(name: Name, ...what: WorkerEvents[Name]): void {
    if (!this.heard(name)) return;
    queueMicrotask(() => {
      // Raw, so that those of `once` take themselves off.
      for (const listener of this.#emitter.rawListeners(name)) this.#call(name, listener, what);
    });
  }

  /** Of anything that was thrown. */
  tellError(thrown: unknown, about: { readonly requestId?: string } = {}): void {
    this.tell('error', isThrown(thrown, Error) ? thrown : errorOf(thrown), about);
  }

  #call(name: string, listener: (...what: never[]) => unknown, what: readonly unknown[]): void {
    const failed = (error: unknown) =>
      this.#logger.warn({ err: errorOf(error), event: name }, 'a listener failed');
    try {
      const answer = Reflect.apply(listener, this.#emitter, what) as unknown;
      if (answer !== undefined) Promise.resolve(answer).catch(failed);
    } catch (error) {
      failed(error);
    }
  }
}
