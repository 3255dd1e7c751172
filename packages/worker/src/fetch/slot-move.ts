import { backoff, type Connection, redisError } from '@piecework/protocol';
import type { Redis, RedisOptions } from 'ioredis';
import type { Logger } from 'pino';
import type { Events } from '../report/events.js';
import { popSingly } from './migrating-pop.js';

/** Between two reads of the lists of a slot that is moving: the first and the longest, in ms. */
const WAIT_MS = [25, 500] as const;

const MOVING = 'the hash slot of the queue is on its way to another server';

/** The hash slot of a queue while it moves from one server of a cluster to another: see migrating-pop.ts. */
export class SlotMove {
  readonly #connection: Connection;
  readonly #options: RedisOptions;
  readonly #logger: Logger;
  readonly #events: Events;
  readonly #waits = backoff(...WAIT_MS);
  /** The server that gets the slot. */
  #receiver: { readonly address: string; readonly client: Redis } | undefined;
  /** As performance.now(); undefined: the slot does not move. */
  #since: number | undefined;

  /** `options`: of the connection to the server that gets the slot. */
  constructor(connection: Connection, options: RedisOptions, logger: Logger, events: Events) {
    this.#connection = connection;
    this.#options = options;
    this.#logger = logger;
    this.#events = events;
  }

  /** Whether the slot moves, as far as is known. */
  get isUnderWay(): boolean {
    return this.#since !== undefined;
  }

  /** A sentence for `health`; '' when the slot does not move. */
  get said(): string {
    if (this.#since === undefined) return '';
    const seconds = Math.round((performance.now() - this.#since) / 1_000);
    return `${MOVING}, for ${seconds} s so far`;
  }

  /** A pop of all lists was refused because the slot moves. */
  begin(error: unknown): void {
    if (this.#since !== undefined) return;
    this.#since = performance.now();
    this.#logger.warn({ why: (error as Error).message }, MOVING);
    this.#events.emitError(redisError(error, MOVING));
  }

  /** The slot is in one place, as an answered pop or a new connection shows. Returns whether it was moving. */
  arrived(): boolean {
    if (this.#since === undefined) return false;
    const stalledMs = Math.round(performance.now() - this.#since);
    this.#since = undefined;
    this.#waits.reset();
    this.drop();
    this.#logger.info({ stalledMs }, 'the hash slot of the queue has arrived');
    return true;
  }

  /** Pops up to `count` tokens from the two servers that have parts of the slot. */
  async pop(here: Redis, lists: readonly string[], count: number): Promise<string[]> {
    const tokens = await popSingly(here, (address) => this.#clientAt(address), lists, count);
    if (tokens.length > 0) this.#waits.reset();
    return tokens;
  }

  /** How long to wait after a pop that brought nothing, in ms. */
  nextWaitMs(): number {
    return this.#waits.next();
  }

  /** Drops the connection to the server that gets the slot; `pop` makes another. */
  drop(): void {
    this.#receiver?.client.disconnect();
    this.#receiver = undefined;
  }

  async #clientAt(address: string): Promise<Redis> {
    if (this.#receiver?.address === address) return this.#receiver.client;
    this.#receiver?.client.disconnect();
    const client = this.#connection.openAt(address, this.#options);
    this.#receiver = { address, client };
    await client.connect();
    return client;
  }
}
