import { backoff, type Connection, PieceworkError, pause } from '@piecework/protocol';
import type { Logger } from 'pino';
import type { Handlers } from '../handler/handler.js';
import type { BackoffFunction, RunsOf } from '../handler/retry-policy.js';
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

/** What the parts of one worker share. */
export class WorkerContext {
  /** Boot id: a new one for each worker, so that a restarted process inherits nothing. */
  readonly id: string;
  readonly connection: Connection;
  readonly handlers: Handlers;
  readonly isolation: Isolation;
  readonly renewal: Renewal;
  readonly leaseMs: number;
  /** By how much the waits of this worker are longer while it is idle. */
  readonly idleFactor: number;
  readonly quantumMs: number;
  /** Longest time that an outcome waits to be settled together with others, in ms. */
  readonly settleDelayMs: number;
  readonly maxResultBytes: number;
  /** Whether handlers get payloads as JsonText. */
  readonly jsonText: boolean;
  /** Delays for requests whose backoff is 'custom'. */
  readonly backoff: BackoffFunction | undefined;
  /** Traces handler runs, if the worker has telemetry. */
  readonly runsOf: RunsOf | undefined;
  /** Adds the id of this worker to every line. Payloads and results are never logged. */
  readonly logger: Logger;
  /** Of `ctx.log`. */
  readonly handlerLogger: Logger;
  /** For lines that may come in floods. */
  readonly flood: Flood;
  /** After how long a handler is logged as slow, in ms; undefined: depends on what is usual for its request. */
  readonly slowMs: number | undefined;
  readonly leftovers: Leftovers;
  readonly events: Events;
  readonly waitingRoom = new WaitingRoom();
  readonly stalls: Stalls;
  readonly memory: Memory;
  /** What is known of the requests that this worker had last. */
  readonly known = new Remembered(() => ({ usual: new Usual(), growth: new Growth() }));
  /** How long handlers of all requests ran lately. */
  readonly lately = new Usual();
  readonly unblocking: Unblocking;
  /** How many handlers run now. */
  running = 0;
  /** When a call about a request was answered last, as performance.now(). */
  answeredAt = 0;
  /** Set when no more work is taken: requests of tokens that still come are entered for no slot, and put out again. */
  closing = false;
  /** Set when calls are no longer sent again: the connections are about to close. */
  ended = false;
  #op = 0;
  readonly #said = new Set<string>();
  readonly #background = new Set<Promise<unknown>>();

  constructor(
    parts: Pick<
      WorkerContext,
      | 'id'
      | 'connection'
      | 'handlers'
      | 'isolation'
      | 'renewal'
      | 'leaseMs'
      | 'idleFactor'
      | 'quantumMs'
      | 'settleDelayMs'
      | 'maxResultBytes'
      | 'jsonText'
      | 'backoff'
      | 'runsOf'
      | 'slowMs'
      | 'logger'
      | 'handlerLogger'
      | 'events'
    >,
    queues: {
      /** Whether their slots are shared by several queues. */
      readonly shared: () => boolean;
      /** How many workers the largest of them has. */
      readonly fleet: () => number;
    },
  ) {
    this.id = parts.id;
    this.connection = parts.connection;
    this.handlers = parts.handlers;
    this.isolation = parts.isolation;
    this.renewal = parts.renewal;
    this.leaseMs = parts.leaseMs;
    this.idleFactor = parts.idleFactor;
    this.quantumMs = parts.quantumMs;
    this.settleDelayMs = parts.settleDelayMs;
    this.maxResultBytes = parts.maxResultBytes;
    this.jsonText = parts.jsonText;
    this.backoff = parts.backoff;
    this.runsOf = parts.runsOf;
    this.slowMs = parts.slowMs;
    this.leftovers = new Leftovers(parts.slowMs);
    this.logger = parts.logger;
    this.handlerLogger = parts.handlerLogger;
    this.flood = new Flood(parts.logger);
    this.events = parts.events;
    this.stalls = new Stalls(parts.logger, parts.events);
    this.unblocking = new Unblocking(queues.shared);
    this.memory = new Memory(parts.connection, queues.fleet, parts.logger);
  }

  /** Whether tokens are turned into permits, unless their queue is paused. */
  get takesWork(): boolean {
    return !this.closing && !this.isolation.active;
  }

  /** Whether sub-requests may be read before a handler can start them. */
  get mayReadAhead(): boolean {
    // A consumer that pulls asks for each, and waits for the answer to each.
    return this.settleDelayMs > 0 && !this.handlers.pulled;
  }

  /** Numbers the enters, takes and settles of this process upwards; the scripts refuse one that comes late. */
  nextOp(): number {
    this.#op += 1;
    return this.#op;
  }

  /** Calls `say` the first time only that it is called with `what`. */
  once(what: string, say: () => void): void {
    if (this.#said.has(what)) return;
    this.#said.add(what);
    say();
  }

  /**
   * Sends a call again until it is answered, or the worker is closed. Every script may be repeated; a success counts
   * even after the lease has ended; and meanwhile a session notices the end of its lease by its own clock.
   */
  async insist<T>(requestId: string, call: () => Promise<T>): Promise<T> {
    let waits: ReturnType<typeof backoff> | undefined;
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
          this.logger.debug({ err: error, requestId }, 'call failed; sending it again');
          waits ??= backoff(50, 2_000);
          await pause(waits.next());
        }
      }
    } finally {
      this.stalls.end(insisted);
    }
  }

  /** Sends a call that nothing waits for; the agenda repairs what gets lost here. */
  later(requestId: string, call: () => Promise<unknown>): void {
    const promise = this.insist(requestId, call)
      .catch((error: unknown) => this.failed(requestId, error, 'call failed'))
      .finally(() => this.#background.delete(promise));
    this.#background.add(promise);
  }

  /** Reports an error; one that the close of the worker caused is only logged. */
  failed(requestId: string, error: unknown, what: string): void {
    const level = this.ended ? 'warn' : 'error';
    this.logger[level]({ err: error, requestId }, what);
    if (!this.ended) this.events.emitError(error, { requestId });
  }

  /** Whether no call of `later` is under way. */
  get settled(): boolean {
    return this.#background.size === 0;
  }
}
