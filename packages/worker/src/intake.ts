import { backoff, type Connection, pause, type QueueCommands } from '@piecework/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Events } from './events.js';
import type { Slots } from './slots.js';

/**
 * Waits for tokens: one blocking connection of its own over all priority lists (and the lanes that are
 * known to be used, each before its list; a new one ends the pop under way), as long as there is
 * a free slot. A token is only a hint, so whatever breaks here loses no work: a connection that
 * fails, or does not answer in time, is thrown away and built anew (ioredis' own reconnect would
 * send the pop again, or leave it alive on the server to eat the next token).
 *
 * Stop unblocks the server side from a second connection, so that a token popped in that moment is
 * still received and handed on.
 */

/** How long one blocking pop waits on the server. */
const BLOCK_SECONDS = 5;
/** How much longer the client waits before it gives the connection up. */
const WATCHDOG_MS = 5_000;
/** Most tokens of one pop: what one process takes, no other can. */
const TAKE_TOKENS = 500;
/** How often, and how many ms apart, a stop unblocks the pop before it cuts the connection. */
const UNBLOCKS = 40;
const UNBLOCK_MS = 25;

const OPTIONS = {
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
  enableOfflineQueue: true,
  autoResubscribe: false,
  disconnectTimeout: 50,
};

export class Intake {
  readonly #connection: Connection;
  readonly #queue: QueueCommands;
  readonly #slots: Slots;
  readonly #logger: Logger;
  readonly #onTokens: (tokens: readonly string[]) => void;
  readonly #events: Events;
  #client: Redis | undefined;
  #clientId = 0;
  #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #down = 'not connected yet';
  #over = false;
  #lost = false;
  /** Aborted when the pop under way has ended. */
  #popping: AbortController | undefined;

  constructor(
    connection: Connection,
    queue: QueueCommands,
    slots: Slots,
    logger: Logger,
    onTokens: (tokens: readonly string[]) => void,
    events: Events,
  ) {
    this.#connection = connection;
    this.#queue = queue;
    queue.lanes.onNew(() => this.#popAnew());
    this.#slots = slots;
    this.#logger = logger;
    this.#onTokens = onTokens;
    this.#events = events;
  }

  /** Why the blocking connection is down; '' when it is up. */
  get down(): string {
    return this.#down;
  }

  /** Whether the loop has ended, by a stop or by a fault. */
  get over(): boolean {
    return this.#over;
  }

  start(): void {
    this.#loop = this.#run().finally(() => {
      this.#over = true;
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#slots.wake();
    const ended = new AbortController();
    const loop = this.#loop.then(() => ended.abort());
    await this.#unblock(ended.signal);
    await loop;
    this.#client?.disconnect();
  }

  async #run(): Promise<void> {
    const waits = backoff(100, 2_000);
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#slots.whenFree();
      if (signal.aborted || this.#slots.free === 0) continue;
      try {
        const tokens = await this.#pop(Math.min(this.#slots.free, TAKE_TOKENS));
        waits.reset();
        if (tokens.length > 0) this.#onTokens(tokens);
      } catch (error) {
        this.#client?.disconnect();
        this.#client = undefined;
        const why = (error as Error).message;
        this.#down = why;
        if (signal.aborted) return;
        this.#logger.warn({ why }, 'blocking connection lost; building a new one');
        this.#lost = true;
        this.#events.tellError(error);
        await pause(waits.next(), signal);
      }
    }
  }

  async #pop(count: number): Promise<string[]> {
    this.#client ??= await this.#connect();
    if (this.#stopping.signal.aborted) return [];
    let watchdog: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      watchdog = setTimeout(
        () => reject(new Error('the server did not answer the blocking pop in time')),
        BLOCK_SECONDS * 1_000 + WATCHDOG_MS,
      );
    });
    const { lists } = this.#queue.lanes;
    const ended = new AbortController();
    this.#popping = ended;
    try {
      const popped = await Promise.race([
        this.#client.blmpop(BLOCK_SECONDS, lists.length, ...lists, 'RIGHT', 'COUNT', count),
        late,
      ]);
      return (popped as [string, string[]] | null)?.[1] ?? [];
    } finally {
      clearTimeout(watchdog);
      this.#popping = undefined;
      ended.abort();
    }
  }

  async #connect(): Promise<Redis> {
    const { client } = await this.#connection.openFor(this.#queue.keys.open, OPTIONS);
    try {
      await client.connect();
      this.#clientId = Number(await client.client('ID'));
    } catch (error) {
      client.disconnect();
      throw error;
    }
    this.#down = '';
    if (this.#lost) this.#events.tell('reconnected', { connection: 'intake' });
    this.#lost = false;
    return client;
  }

  /** The next pop names the lanes that this one does not. */
  #popAnew(): void {
    if (this.#popping) void this.#unblock(this.#popping.signal);
  }

  /**
   * Ends the pop from a second connection until `ended`: the first time it may still be on its way
   * to the server, where nothing would be blocked yet.
   */
  async #unblock(ended: AbortSignal): Promise<void> {
    const blocked = this.#client;
    if (!blocked) return;
    const control = blocked.duplicate();
    control.on('error', () => {});
    try {
      for (let i = 0; i < UNBLOCKS && !ended.aborted; i += 1) {
        await control.client('UNBLOCK', this.#clientId);
        await pause(UNBLOCK_MS, ended);
      }
    } catch {
      // Then the pop is cut off instead; a token that it takes along is found lost.
    } finally {
      control.disconnect();
    }
    if (!ended.aborted) blocked.disconnect();
  }
}
