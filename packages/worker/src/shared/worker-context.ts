import { backoff, type Connection, PieceworkError, pause } from '@piecework/protocol';
import type { Logger } from 'pino';
import type { Handlers } from '../handler/handler.js';
import type { BackoffFunction } from '../handler/retry-policy.js';
import type { Renewal } from '../lease/renewal.js';
import type { Events } from '../report/events.js';
import { Flood } from '../report/flood.js';
import { Leftovers } from '../report/leftovers.js';
import { Memory } from '../report/memory.js';
import { Stalls } from '../report/stalls.js';
import { Growth } from './growth.js';
import type { Isolation } from './isolation.js';
import { Remembered } from './remembered.js';
import { Unblocking } from './unblocking.js';
import { Usual } from './usual.js';
import { WaitingRoom } from './waiting-room.js';

/** What the parts of one worker process share. */
export class WorkerContext {
  /** Boot id: a new one for every start, so that a restarted process inherits nothing. */
  readonly id: string;
  readonly connection: Connection;
  readonly handlers: Handlers;
  readonly alone: Isolation;
  readonly renewal: Renewal;
  readonly leaseMs: number;
  readonly quantumMs: number;
  readonly maxResultBytes: number;
  /** Delays of requests that ask for a backoff of the worker. */
  readonly backoff: BackoffFunction | undefined;
  /** Writes the id of this worker with every line. Payloads and results are never logged. */
  readonly logger: Logger;
  /** Of the lines that may come in floods. */
  readonly flood: Flood;
  /** From when on a handler is logged as slow, in ms; undefined: by what is usual for its request. */
  readonly slowMs: number | undefined;
  readonly leftovers: Leftovers;
  readonly events: Events;
  readonly waitingRoom = new WaitingRoom();
  readonly stalls: Stalls;
  readonly memory: Memory;
  readonly growths = new Remembered(() => new Growth());
  readonly usuals = new Remembered(() => new Usual());
  readonly unblocking: Unblocking;
  /** How many handlers run now. */
  running = 0;
  /** When a call about a request was answered last, as performance.now(). */
  answeredAt = 0;
  /** Set when no more work is taken: tokens that still come are entered for no slot, and go on. */
  closing = false;
  /** Set when retrying is over: the connections are about to close. */
  ended = false;
  #op = 0;
  readonly #told = new Set<string>();
  readonly #background = new Set<Promise<unknown>>();

  constructor(
    parts: Pick<
      WorkerContext,
      | 'id'
      | 'connection'
      | 'handlers'
      | 'alone'
      | 'renewal'
      | 'leaseMs'
      | 'quantumMs'
      | 'maxResultBytes'
      | 'backoff'
      | 'slowMs'
      | 'logger'
      | 'events'
    >,
    queues: {
      /** Whether their slots are those of several workers. */
      readonly shared: () => boolean;
      /** How many workers there are, of the largest of them. */
      readonly fleet: () => number;
    },
  ) {
    this.id = parts.id;
    this.connection = parts.connection;
    this.handlers = parts.handlers;
    this.alone = parts.alone;
    this.renewal = parts.renewal;
    this.leaseMs = parts.leaseMs;
    this.quantumMs = parts.quantumMs;
    this.maxResultBytes = parts.maxResultBytes;
    this.backoff = parts.backoff;
    this.slowMs = parts.slowMs;
    this.leftovers = new Leftovers(parts.slowMs);
    this.logger = parts.logger;
    this.flood = new Flood(parts.logger);
    this.events = parts.events;
    this.stalls = new Stalls(parts.logger, parts.events);
    this.unblocking = new Unblocking(queues.shared);
    this.memory = new Memory(parts.connection, queues.fleet, parts.logger);
  }

  /** Whether tokens that come are turned into permits, unless their queue is paused. */
  get takesWork(): boolean {
    return !this.closing && !this.alone.active;
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

  /**
   * Sends a call again until it is answered, or the worker is closed: every script bears that, a success
   * counts also after the lease, and who holds a lease finds its end by its own clock meanwhile.
   */
  async insist<T>(requestId: string, call: () => Promise<T>): Promise<T> {
    const waits = backoff(50, 2_000);
    const insisted = this.stalls.begin(requestId);
    try {
      for (;;) {
        try {
          const answer = await call();
          this.answeredAt = performance.now();
          return answer;
        } catch (error) {
          const retryable = error instanceof PieceworkError && error.retryable;
          if (!retryable || this.ended) throw error;
          insisted.why = error;
          this.logger.warn({ err: error, requestId }, 'call failed; sending it again');
          await pause(waits.next());
        }
      }
    } finally {
      this.stalls.end(insisted);
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
