import {
  backoff,
  type Connection,
  type Expedited,
  PieceworkError,
  pause,
  pausedForMs,
} from '@piecework/protocol';
import pTimeout from 'p-timeout';
import type { Logger } from 'pino';
import type { Alone } from './alone.js';
import type { BackoffFunction } from './attempt-terms.js';
import type { Events } from './events.js';
import { Flood } from './flood.js';
import { Growth } from './growth.js';
import type { Handlers } from './handler.js';
import { Leftovers } from './leftovers.js';
import { Memory } from './memory.js';
import { Remembered } from './remembered.js';
import type { Renewal } from './renewal.js';
import type { Shard } from './shard.js';
import { Stalls } from './stalls.js';
import { Unblocking } from './unblocking.js';
import { Usual } from './usual.js';
import { WaitingRoom } from './waiting-room.js';

/** How long a shard may take to say whether anybody waits there, in ms; then nobody does. */
const ASK_MS = 500;

/** What the parts of one worker process share. */
export class WorkerCore {
  /** Boot id: a new one for every start, so that a restarted process inherits nothing. */
  readonly id: string;
  readonly connection: Connection;
  /** The queues that it takes work from: one, or the shards of one. */
  readonly shards: Shard[] = [];
  readonly handlers: Handlers;
  readonly alone: Alone;
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
  readonly unblocking = new Unblocking(() => this.shards.some(({ slots }) => slots.shared));
  /** How many handlers run now. */
  running = 0;
  /** When a call about a request was answered last, as performance.now(). */
  answeredAt = 0;
  /** Set when no more work is taken: tokens that still come are entered for no slot, and go on. */
  closing = false;
  /** Set when retrying is over: the connections are about to close. */
  ended = false;
  #op = 0;
  /** Shards that have not answered in time. */
  readonly #silent = new Set<Shard>();
  readonly #told = new Set<string>();
  readonly #background = new Set<Promise<unknown>>();

  constructor(
    parts: Pick<
      WorkerCore,
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
    const fleet = () => Math.max(1, ...this.shards.map(({ pulse }) => pulse.fleet));
    this.memory = new Memory(parts.connection, fleet, parts.logger);
  }

  /** Whether tokens that come are turned into permits, unless their queue is paused. */
  get takesWork(): boolean {
    return !this.closing && !this.alone.active;
  }

  /** Pauses the queue for so many ms, here at once. */
  readonly holdQueue = async (ms: number): Promise<void> => {
    const hold = async (shard: Shard) =>
      shard.learn(pausedForMs(await this.insist(shard.name, () => shard.control.pause(ms))));
    await Promise.all(this.shards.map(hold));
  };

  /**
   * Whether anybody else of the same or a higher priority waits, in whichever shard. Only the own one is
   * waited for until it answers: what runs is not held up by a server that it has nothing to do with.
   */
  async contended(
    own: Shard,
    id: string,
    priority: number,
    expedited?: Expedited,
  ): Promise<boolean> {
    const ask = ({ queue }: Shard) => queue.contended(id, priority, expedited);
    const others = this.shards.filter(
      (shard) =>
        shard !== own && !shard.paused && shard.intake.down === '' && !this.#silent.has(shard),
    );
    const asked = others.map((shard) => this.#askSoon(shard, ask));
    const answers = await Promise.all([this.insist(id, () => ask(own)), ...asked]);
    return answers.includes(true);
  }

  /** One that is late is not asked again before it has answered. */
  async #askSoon(shard: Shard, ask: (shard: Shard) => Promise<boolean>): Promise<boolean> {
    const answer = ask(shard)
      .catch(() => false)
      .finally(() => this.#silent.delete(shard));
    const fallback = () => {
      this.#silent.add(shard);
      return false;
    };
    return pTimeout(answer, { milliseconds: ASK_MS, fallback });
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
