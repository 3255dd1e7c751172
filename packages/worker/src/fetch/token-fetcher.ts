import {
  backoff,
  type Connection,
  pause,
  type QueueCommands,
  redisError,
} from '@piecework/protocol';
import type { Redis } from 'ioredis';
import pTimeout from 'p-timeout';
import type { Logger } from 'pino';
import type { Events } from '../report/events.js';
import type { Slots } from '../shared/slots.js';
import type { Unblocking } from '../shared/unblocking.js';
import { isOnItsWay, popSingly } from './migrating-pop.js';
import { whenLate } from './watchdog.js';

/**
 * Waits for tokens: one blocking connection of its own over all priority lists (and the lanes that are
 * known to be used, each before its list; a new one ends the pop under way), as long as there is
 * a free slot. A token is only a hint, so whatever breaks here loses no work: a connection that
 * fails, or does not answer in time, is thrown away and built anew (ioredis' own reconnect would
 * send the pop again, or leave it alive on the server to eat the next token).
 *
 * Where workers of several queues share their slots, each first asks without waiting when it is its turn
 * (see SlotPool); when nobody has anything, all wait at once, each on the connection of its queue. As
 * soon as all slots are taken, whoever still waits is unblocked, or it would take what it cannot run.
 *
 * In a cluster the connection goes to the master of the queue's hash slot, and follows it: that master
 * says so (MOVED, UNBLOCKED), or breaks the connection, or hangs, and then the others say where the slot
 * is now. While the slot is on its way from one to the other, see single-pops.ts.
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
/** How often, and how many ms apart at most, the pop is unblocked before its connection is cut. */
const UNBLOCKS = 40;
const UNBLOCK_MS = 25;
/** How long a stop waits for a server that does not even end the pop. */
const STOP_MS = 3_000;
/** How long a server that does not hold the slot any more may take to say so. */
const MOVED_MS = 1_000;
/** How long its equals wait for a server that was asked for a token. */
const TURN_MS = 1_000;
/** Between two looks at the lists of a slot that is on its way: the first and the longest, in ms. */
const HELD_MS = [25, 500] as const;
/** How long a pop of all lists then waits on the server, should it not be refused any more. */
const HELD_SECONDS = 0.05;

const ON_ITS_WAY = 'the hash slot of the queue is on its way to another server';

/** Without a reason Node makes a DOMException, each time. */
const OVER = 'the pop is over';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** In the first one, what ended in this turn of the event loop is settled (see RequestSession). */
async function twoTurns(): Promise<void> {
  await turn();
  await turn();
}

const OPTIONS = {
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
  enableOfflineQueue: true,
  autoResubscribe: false,
  disconnectTimeout: 50,
};

export class TokenFetcher {
  readonly #connection: Connection;
  readonly #queue: QueueCommands;
  readonly #slots: Slots;
  readonly #logger: Logger;
  readonly #onTokens: (tokens: readonly string[]) => void;
  readonly #events: Events;
  #client: Redis | undefined;
  /** The one that is being made, or was made last. */
  #opened: Redis | undefined;
  #clientId = 0;
  #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  /** What it is connected to. */
  #address = '';
  /** The server that gets the slot, and where it is, while the slot is on its way. */
  #receiver: { readonly address: string; readonly client: Redis } | undefined;
  #heldSince: number | undefined;
  #heldWaits = backoff(...HELD_MS);
  #down = 'not connected yet';
  #over = false;
  #lost = false;
  /** Aborted when the waiting pop under way has ended. */
  #popping: AbortController | undefined;
  /** The one of them that is being ended. */
  #ending: AbortController | undefined;
  /** From where pops are ended. */
  readonly #unblocking: Unblocking;

  constructor(
    connection: Connection,
    queue: QueueCommands,
    slots: Slots,
    logger: Logger,
    onTokens: (tokens: readonly string[]) => void,
    events: Events,
    unblocking: Unblocking,
  ) {
    this.#unblocking = unblocking;
    this.#connection = connection;
    this.#queue = queue;
    queue.lanes.onNew(() => this.#popAnew());
    this.#slots = slots;
    slots.onFull(() => this.#popAnew());
    this.#logger = logger;
    this.#onTokens = onTokens;
    this.#events = events;
  }

  /** Why the blocking connection is down; '' when it is up. */
  get down(): string {
    return this.#down;
  }

  /** What holds the pops up although the connection is up; '' when nothing does. */
  get held(): string {
    if (this.#heldSince === undefined) return '';
    const seconds = Math.round((performance.now() - this.#heldSince) / 1_000);
    return `${ON_ITS_WAY}, for ${seconds} s so far`;
  }

  /** Whether the loop has ended, by a stop or by a fault. */
  get over(): boolean {
    return this.#over;
  }

  start(): void {
    this.#slots.rests = false;
    const unlisten = this.#connection.onLookAtSlots(() => this.#look());
    this.#loop = this.#run().finally(() => {
      unlisten();
      this.#over = true;
      this.#slots.rests = true;
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#slots.wake();
    const ended = new AbortController();
    const loop = this.#loop.then(() => ended.abort());
    const stopped = Promise.all([this.#unblock(ended.signal), loop]);
    // Whatever still waits for a server that hangs comes to its end behind this.
    const fallback = () => this.#unblocking.cut(this.#address);
    await pTimeout(stopped, { milliseconds: STOP_MS, fallback });
    this.#disconnect();
  }

  #disconnect(): void {
    this.#opened?.disconnect();
    this.#receiver?.client.disconnect();
    this.#client = undefined;
    this.#receiver = undefined;
  }

  async #run(): Promise<void> {
    const waits = backoff(100, 1_000);
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        // Of several, also with no slot free: whether it is there is asked before its turn comes.
        if (this.#slots.shared) await this.#connected();
        await this.#slots.whenFree();
        // A pop names a hundred lists. What came with the last one, if it ends at once, is settled first. Of
        // several queues, whose turn it is may be another's by then.
        if (!this.#slots.shared) await twoTurns();
        if (signal.aborted || this.#slots.free === 0) continue;
        const tokens = await this.#next();
        waits.reset();
        if (tokens.length > 0) {
          this.#onTokens(tokens);
          this.#slots.found();
        }
      } catch (error) {
        this.#disconnect();
        this.#unblocking.cut(this.#address);
        // The queues behind are not held up by a server that is not there.
        this.#slots.rests = true;
        const why = (error as Error).message;
        this.#down = why;
        if (signal.aborted) return;
        this.#logger.warn({ why }, 'blocking connection lost; building a new one');
        this.#lost = true;
        this.#events.tellError(error);
        await Promise.all([pause(waits.next(), signal), this.#connection.lookAtSlots()]);
      }
    }
  }

  async #connected(): Promise<Redis> {
    if (!this.#client) {
      const connected = whenLate(TURN_MS, () => this.#slots.loseTurn());
      this.#client = await this.#connect().finally(connected);
    }
    this.#slots.rests = false;
    return this.#client;
  }

  async #next(): Promise<string[]> {
    const client = await this.#connected();
    if (!this.#slots.shared) return this.#popWaiting(client);
    const tokens = await this.#ask(client);
    if (tokens.length > 0) return tokens;
    try {
      return (await this.#slots.restWithAll()) ? await this.#popWaiting(client) : [];
    } finally {
      this.#slots.rests = false;
    }
  }

  async #ask(client: Redis): Promise<string[]> {
    const answered = whenLate(TURN_MS, () => this.#slots.loseTurn());
    try {
      return await this.#pop(client, WATCHDOG_MS, (lists, count) =>
        client.lmpop(lists.length, ...lists, 'RIGHT', 'COUNT', count),
      );
    } finally {
      answered();
    }
  }

  async #popWaiting(client: Redis): Promise<string[]> {
    const seconds = this.#heldSince === undefined ? BLOCK_SECONDS : HELD_SECONDS;
    const ended = new AbortController();
    this.#popping = ended;
    try {
      return await this.#pop(client, BLOCK_SECONDS * 1_000 + WATCHDOG_MS, (lists, count) =>
        client.blmpop(seconds, lists.length, ...lists, 'RIGHT', 'COUNT', count),
      );
    } finally {
      this.#popping = undefined;
      ended.abort(OVER);
    }
  }

  /** A server that hangs does not say that others hold the slot by now. */
  #look(): void {
    const client = this.#client;
    const elsewhere = () => {
      const known = this.#connection.knownAddressOf(this.#queue.keys.open);
      return this.#client === client && known !== undefined && known !== this.#address;
    };
    if (!client || !elsewhere()) return;
    void pause(MOVED_MS, this.#stopping.signal).then(() => {
      if (elsewhere()) client.disconnect();
    });
  }

  async #pop(
    client: Redis,
    withinMs: number,
    send: (lists: readonly string[], count: number) => Promise<unknown>,
  ): Promise<string[]> {
    const count = Math.min(this.#slots.tokens, TAKE_TOKENS);
    // Somebody else's tokens may have come meanwhile.
    if (this.#stopping.signal.aborted || count === 0) return [];
    let answered = () => {};
    const late = new Promise<never>((_, reject) => {
      const tell = () => reject(new Error('the server did not answer the pop in time'));
      answered = whenLate(withinMs, tell);
    });
    const { lists } = this.#queue.lanes;
    try {
      const popped = await Promise.race([send(lists, count), late]);
      this.#release();
      return (popped as [string, string[]] | null)?.[1] ?? [];
    } catch (error) {
      if (!isOnItsWay(error)) throw error;
      this.#hold(error);
      return await Promise.race([this.#popSingly(client, lists, count), late]);
    } finally {
      answered();
    }
  }

  async #popSingly(here: Redis, lists: readonly string[], count: number): Promise<string[]> {
    const at = async (address: string) => {
      if (this.#receiver?.address === address) return this.#receiver.client;
      this.#receiver?.client.disconnect();
      const client = this.#connection.openAt(address, OPTIONS);
      this.#receiver = { address, client };
      await client.connect();
      return client;
    };
    const tokens = await popSingly(here, at, lists, count);
    if (tokens.length > 0) {
      this.#heldWaits.reset();
      return tokens;
    }
    // Its equals do not wait for what is on its way.
    this.#slots.loseTurn();
    await pause(this.#heldWaits.next(), this.#stopping.signal);
    return [];
  }

  #hold(error: unknown): void {
    if (this.#heldSince !== undefined) return;
    this.#heldSince = performance.now();
    this.#logger.warn({ why: (error as Error).message }, ON_ITS_WAY);
    this.#events.tellError(redisError(error, ON_ITS_WAY));
  }

  /** A pop of all lists was answered: the slot is in one place. */
  #release(): void {
    if (this.#heldSince === undefined) return;
    const stalledMs = Math.round(performance.now() - this.#heldSince);
    this.#heldSince = undefined;
    this.#heldWaits.reset();
    this.#receiver?.client.disconnect();
    this.#receiver = undefined;
    this.#logger.info({ stalledMs }, 'the hash slot of the queue has arrived');
    if (!this.#lost) this.#events.tell('reconnected', { connection: 'intake' });
  }

  async #connect(): Promise<Redis> {
    const key = this.#queue.keys.open;
    const { client, address } = await this.#connection.openFor(key, OPTIONS);
    this.#opened = client;
    try {
      await client.connect();
      this.#clientId = Number(await client.client('ID'));
    } catch (error) {
      client.disconnect();
      throw error;
    }
    this.#address = address;
    this.#down = '';
    // Whoever had it said so: it is not on its way any more, as far as is known.
    this.#release();
    if (this.#lost) this.#events.tell('reconnected', { connection: 'intake' });
    this.#lost = false;
    return client;
  }

  /** The next pop names the lanes that this one does not, or comes when a slot is free. */
  #popAnew(): void {
    const popping = this.#popping;
    // While the slot is on its way, none waits at the server for long.
    if (!popping || popping === this.#ending || this.#heldSince !== undefined) return;
    this.#ending = popping;
    // Until it is back, a token that comes is popped by nobody.
    this.#slots.comesBack();
    const back = whenLate(TURN_MS, () => this.#slots.loseTurn());
    void this.#unblock(popping.signal).finally(back);
  }

  /**
   * Ends the pop from a second connection until `ended`: the first time it may still be on its way
   * to the server, where nothing would be blocked yet.
   */
  async #unblock(ended: AbortSignal): Promise<void> {
    const blocked = this.#client;
    if (!blocked) return;
    const control = this.#unblocking.to(this.#address, blocked);
    try {
      for (let i = 0; i < UNBLOCKS && !ended.aborted; i += 1) {
        await control.client('UNBLOCK', this.#clientId);
        await pause(Math.min(2 ** i, UNBLOCK_MS), ended);
      }
    } catch {
      // Then the pop is cut off instead; a token that it takes along is found lost.
    } finally {
      this.#unblocking.done(control);
    }
    if (!ended.aborted) blocked.disconnect();
  }
}
