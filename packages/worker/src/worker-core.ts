import {
  backoff,
  type Connection,
  PieceworkError,
  pause,
  type QueueCommands,
} from '@piecework/protocol';
import type { Logger } from 'pino';
import type { Alone } from './alone.js';
import type { BackoffFunction } from './attempt-terms.js';
import type { ErrorLog } from './error-log.js';
import type { Events } from './events.js';
import type { Handlers } from './handler.js';
import type { Renewal } from './renewal.js';
import type { Slots } from './slots.js';
import { WaitingRoom } from './waiting-room.js';

/** What the parts of one worker process share. */
export class WorkerCore {
  /** Boot id: a new one for every start, so that a restarted process inherits nothing. */
  readonly id: string;
  readonly connection: Connection;
  readonly queue: QueueCommands;
  readonly handlers: Handlers;
  readonly slots: Slots;
  readonly alone: Alone;
  readonly renewal: Renewal;
  readonly leaseMs: number;
  readonly quantumMs: number;
  readonly maxResultBytes: number;
  /** Delays of requests that ask for a backoff of the worker. */
  readonly backoff: BackoffFunction | undefined;
  /** Has the agenda looked at within `ms`, as when something will be due then. */
  readonly lookWithin: (ms: number) => void;
  /** Writes the id of this worker with every line. Payloads and results are never logged. */
  readonly logger: Logger;
  readonly events: Events;
  readonly errors: ErrorLog;
  readonly waitingRoom = new WaitingRoom();
  /** How many handlers run now. */
  running = 0;
  /** Set when no more work is taken: tokens that still come are entered for no slot, and go on. */
  closing = false;
  /** Set while the queue is paused: as when closing, until it goes on. */
  paused = false;
  /** Pauses the queue for so many ms, here at once. */
  readonly holdQueue: (ms: number) => Promise<void>;
  /** Set when retrying is over: the connections are about to close. */
  ended = false;
  #op = 0;
  readonly #told = new Set<string>();
  readonly #background = new Set<Promise<unknown>>();

  constructor(
    parts: Pick<
      WorkerCore,
      | 'id'
      | 'connection'
      | 'queue'
      | 'handlers'
      | 'slots'
      | 'alone'
      | 'renewal'
      | 'leaseMs'
      | 'quantumMs'
      | 'maxResultBytes'
      | 'backoff'
      | 'lookWithin'
      | 'logger'
      | 'events'
      | 'errors'
      | 'holdQueue'
    >,
  ) {
    this.id = parts.id;
    this.connection = parts.connection;
    this.queue = parts.queue;
    this.handlers = parts.handlers;
    this.slots = parts.slots;
    this.alone = parts.alone;
    this.renewal = parts.renewal;
    this.leaseMs = parts.leaseMs;
    this.quantumMs = parts.quantumMs;
    this.maxResultBytes = parts.maxResultBytes;
    this.backoff = parts.backoff;
    this.lookWithin = parts.lookWithin;
    this.logger = parts.logger;
    this.events = parts.events;
    this.errors = parts.errors;
    this.holdQueue = parts.holdQueue;
  }

  /** Whether tokens that come are turned into permits. */
  get takesWork(): boolean {
    return !this.closing && !this.paused && !this.alone.active;
  }

  /** Numbers the enters of this process upwards; the scripts refuse one that comes late. */
  nextOp(): number {
    this.#op += 1;
    return this.#op;
  }

  /** Says something about `what` the first time only. */
  once(what: string, say: () => void): void {
    if (this.#told.has(what)) return;
    this.#told.add(what);
    say();
  }

  /** Sends a call again until it is answered. Every script bears that. */
  async insist<T>(requestId: string, call: () => Promise<T>): Promise<T> {
    const waits = backoff(50, 2_000);
    for (;;) {
      try {
        return await call();
      } catch (error) {
        const retryable = error instanceof PieceworkError && error.retryable;
        if (!retryable || this.ended) throw error;
        this.logger.warn({ err: error, requestId }, 'call failed; sending it again');
        await pause(waits.next());
      }
    }
  }

  /** Does what nobody has to wait for; whatever gets lost here, the agenda repairs. */
  later(requestId: string, call: () => Promise<unknown>): void {
    const promise = this.insist(requestId, call)
      .catch((error: unknown) => {
        const level = this.ended ? 'warn' : 'error';
        this.logger[level]({ err: error, requestId }, 'call failed');
        if (!this.ended) this.events.tellError(error, { requestId });
      })
      .finally(() => this.#background.delete(promise));
    this.#background.add(promise);
  }

  /** Whether nothing of `later` is under way. */
  get settled(): boolean {
    return this.#background.size === 0;
  }
}
