import {
  backoff,
  type Connection,
  ConnectionError,
  nextTurn,
  pause,
  type QueueCommands,
  redisError,
  whenLate,
} from '@piecework/protocol';
import type { Redis } from 'ioredis';
import pTimeout from 'p-timeout';
import type { Logger } from 'pino';
import type { Events } from '../report/events.js';
import type { Slots } from '../shared/slots.js';
import type { Unblocking } from '../shared/unblocking.js';
import { BlockingConnection, DISPOSABLE, longestAnswerMs } from './blocking-connection.js';
import { isMoving } from './migrating-pop.js';
import { SlotMove } from './slot-move.js';

/** How long one blocking pop waits on the server; that of a frugal worker waits longer. */
const BLOCK_SECONDS = 5;
/** The same while the hash slot moves, for a pop of all lists that is not refused any more. */
const BLOCK_WHILE_MOVING_SECONDS = 0.05;
/** How much longer the client waits before it gives the connection up. */
// cure: watchdog of the blocking connection
const WATCHDOG_MS = 5_000;
/** Most tokens of one pop: what one process takes, no other can. */
const TAKE_TOKENS = 500;
/** How long a close waits for a server that does not even end the pop. */
const CLOSE_MS = 3_000;
/** How long its equals wait for a server that was asked for a token. */
const TURN_MS = 1_000;

/** A pop that is answered within this time has hardly waited for a token. */
const AT_ONCE_MS = 20;

/**
 * What a pop brought, and how many free slots these requests are to have at most while handlers are quick. After a pop
 * that waited, or that came to another list than the one before, all: Infinity. Otherwise more tokens like these come,
 * and are to be popped before these requests are entered: until then the slots that they ask for are reserved. So they
 * ask for as many as they are likely to use, or for those that the pop was for.
 */
export type OnTokens = (tokens: readonly string[], most: number) => void;

const LATE = 'wait for work: the server did not answer in time: see that Redis runs and answers';

/** Without a reason Node makes a DOMException each time. */
const ENDED = 'the pop has ended';

/** In the first turn, what ended in this turn of the event loop is settled (see RequestSession). */
async function twoTurns(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

/**
 * Waits for tokens of one queue, as long as a slot is free: on a blocking connection of its own, over all priority
 * lists, and over the lanes that are in use, each before its list (a new lane ends the pop under way). A token is
 * only a hint, so a failure here loses no work: a connection that fails, or does not answer in time, is thrown away
 * and replaced.
 *
 * Where several queues share their slots, each first asks without waiting when it is its turn (see SlotPool). When
 * none has anything, all wait at once, each on its own connection. As soon as all slots are taken, those that still
 * wait are unblocked, or they would take what cannot be run.
 *
 * In a cluster the connection goes to the master that has the hash slot of the queue, and follows the slot: that
 * master answers that it moved (MOVED, UNBLOCKED), or breaks the connection, or hangs, and then the other masters
 * answer where the slot is. For a slot that is moving see slot-move.ts.
 */
export class TokenFetcher {
  readonly #connection: Connection;
  readonly #queue: QueueCommands;
  readonly #slots: Slots;
  readonly #logger: Logger;
  readonly #onTokens: OnTokens;
  readonly #events: Events;
  readonly #blockSeconds: number;
  readonly #blocking: BlockingConnection;
  readonly #move: SlotMove;
  readonly #stopping = new AbortController();
  #loop: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #down = 'not connected yet';
  #ended = false;
  #lost = false;
  /** Why the connection was last lost, as logged; '' since a pop was answered. */
  #said = '';
  /** The list from which tokens were popped last. */
  #list = '';
  /** The waiting pop under way. `ending`: set while it is being ended, and aborted when it has. */
  #popping: { ending?: AbortController } | undefined;

  constructor(
    connection: Connection,
    queue: QueueCommands,
    slots: Slots,
    logger: Logger,
    onTokens: OnTokens,
    events: Events,
    unblocking: Unblocking,
    idleFactor: number,
  ) {
    this.#connection = connection;
    this.#queue = queue;
    this.#slots = slots;
    this.#logger = logger;
    this.#onTokens = onTokens;
    this.#events = events;
    this.#blockSeconds = BLOCK_SECONDS * idleFactor;
    this.#blocking = new BlockingConnection(connection, unblocking, queue.keys.open);
    this.#move = new SlotMove(connection, DISPOSABLE, logger, events);
    queue.lanes.onNew(() => this.#popAnew());
    slots.onFull(() => this.#popAnew());
  }

  /** Why the blocking connection is down; '' when it is up. */
  get down(): string {
    return this.#down;
  }

  /** Why pops bring nothing although the connection is up; '' when they may. */
  get moving(): string {
    return this.#move.said;
  }

  /** Whether the loop has ended, by a close or by a fault. */
  get ended(): boolean {
    return this.#ended;
  }

  start(): void {
    if (this.#loop || this.#stopping.signal.aborted) return;
    this.#slots.rests = false;
    const { signal } = this.#stopping;
    const unlisten = this.#connection.onSlotsRefreshed(() => this.#blocking.leaveIfMoved(signal));
    this.#loop = this.#run(signal).finally(() => {
      unlisten();
      this.#ended = true;
      this.#slots.rests = true;
    });
  }

  /** Ends the pop under way; tokens that it still brings are handed on. Waits for that, but not for a dead server. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#stopping.abort();
    this.#slots.wake();
    const ended = new AbortController();
    const loop = Promise.resolve(this.#loop).then(() => ended.abort());
    const closed = Promise.all([this.#blocking.unblock(ended.signal), loop]);
    // A call to a server that hangs fails with this, and the loop ends.
    const fallback = () => this.#blocking.cutUnblocking();
    await pTimeout(closed, { milliseconds: CLOSE_MS, fallback });
    this.#drop();
  }

  #drop(): void {
    this.#blocking.drop();
    this.#move.drop();
  }

  /** The loop: wait for a free slot, wait for tokens, hand them on. */
  async #run(signal: AbortSignal): Promise<void> {
    const waits = backoff(100, 1_000);
    while (!signal.aborted) {
      try {
        await this.#freeSlot();
        if (signal.aborted || this.#slots.free === 0) continue;
        const { free, tokens: asked } = this.#slots;
        const [askedAt, list] = [performance.now(), this.#list];
        const tokens = await this.#next();
        waits.reset();
        if (tokens.length === 0) continue;
        // From another list may come a large request that goes before all others; its next tokens are not there yet.
        const goesOn = this.#list === list && performance.now() - askedAt < AT_ONCE_MS;
        const most = Math.max(tokens.length < asked ? 0 : free, this.#slots.usedBy(tokens.length));
        this.#onTokens(tokens, goesOn ? most : Number.POSITIVE_INFINITY);
        this.#slots.found();
      } catch (error) {
        this.#fail(redisError(error, 'wait for work'));
        if (signal.aborted) return;
        await Promise.all([pause(waits.next(), signal), this.#connection.refreshSlots()]);
      }
    }
  }

  async #freeSlot(): Promise<void> {
    if (this.#slots.shared) {
      // Before its turn comes, also with no slot free: an unreachable server must not delay the other queues.
      await this.#connected();
      return this.#slots.whenFree();
    }
    await this.#slots.whenFree();
    // A pop names a hundred lists. If what came with the last one ends at once, it is settled before the next pop.
    // Where queues share their slots this is left out: it could be another's turn by then.
    return twoTurns();
  }

  #fail(error: Error): void {
    this.#drop();
    this.#blocking.cutUnblocking();
    // The queues behind this one do not wait for a server that is not there.
    this.#slots.rests = true;
    this.#down = error.message;
    if (this.#stopping.signal.aborted) return;
    // One line for an outage, however often it is tried, also when each connection succeeds and its pop is refused.
    const level = this.#lost || this.#said === error.message ? 'debug' : 'warn';
    this.#said = error.message;
    this.#logger[level]({ why: error.message }, 'blocking connection lost; building a new one');
    this.#lost = true;
    this.#events.emitError(error);
  }

  async #connected(): Promise<Redis> {
    let { client } = this.#blocking;
    if (!client) {
      const connected = whenLate(TURN_MS, () => this.#slots.loseTurn());
      client = await this.#connect().finally(connected);
    }
    this.#slots.rests = false;
    return client;
  }

  async #connect(): Promise<Redis> {
    const client = await this.#blocking.connect();
    this.#down = '';
    // The server that has the slot answered: the slot does not move any more, as far as is known.
    this.#slotArrived();
    if (this.#lost) {
      this.#logger.info('blocking connection is back');
      this.#events.emit('reconnected', { connection: 'intake' });
    }
    this.#lost = false;
    return client;
  }

  async #next(): Promise<string[]> {
    const client = await this.#connected();
    if (!this.#slots.shared) return this.#popWaiting(client);
    const tokens = await this.#popAtOnce(client);
    if (tokens.length > 0) return tokens;
    try {
      return (await this.#slots.restWithAll()) ? await this.#popWaiting(client) : [];
    } finally {
      this.#slots.rests = false;
    }
  }

  async #popAtOnce(client: Redis): Promise<string[]> {
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
    // Within the time limits of the client.
    const longest = Math.min(this.#blockSeconds, longestAnswerMs(client) / 2_000);
    const seconds = this.#move.isUnderWay ? Math.min(BLOCK_WHILE_MOVING_SECONDS, longest) : longest;
    const popping: { ending?: AbortController } = {};
    this.#popping = popping;
    try {
      return await this.#pop(client, longest * 1_000 + WATCHDOG_MS, (lists, count) =>
        client.blmpop(seconds, lists.length, ...lists, 'RIGHT', 'COUNT', count),
      );
    } finally {
      this.#popping = undefined;
      popping.ending?.abort(ENDED);
    }
  }

  async #pop(
    client: Redis,
    withinMs: number,
    send: (lists: readonly string[], count: number) => Promise<unknown>,
  ): Promise<string[]> {
    const count = Math.min(this.#slots.tokens, TAKE_TOKENS);
    // Another queue may have taken the slots meanwhile.
    if (this.#stopping.signal.aborted || count === 0) return [];
    let answered = () => {};
    const late = new Promise<never>((_, reject) => {
      const fail = () => reject(new ConnectionError(LATE));
      answered = whenLate(withinMs, fail);
    });
    const { lists } = this.#queue.lanes;
    try {
      const popped = await Promise.race([send(lists, count), late]);
      this.#slotArrived();
      this.#said = '';
      const [list, tokens] = (popped as [string, string[]] | null) ?? [this.#list, []];
      this.#list = list;
      return tokens;
    } catch (error) {
      if (!isMoving(error)) throw error;
      this.#move.begin(error);
      return await Promise.race([this.#popWhileMoving(client, lists, count), late]);
    } finally {
      answered();
    }
  }

  async #popWhileMoving(here: Redis, lists: readonly string[], count: number): Promise<string[]> {
    const tokens = await this.#move.pop(here, lists, count);
    if (tokens.length > 0) return tokens;
    // Its equals do not wait for a slot that is moving.
    this.#slots.loseTurn();
    await pause(this.#move.nextWaitMs(), this.#stopping.signal);
    return [];
  }

  #slotArrived(): void {
    if (!this.#move.arrived()) return;
    if (!this.#lost) this.#events.emit('reconnected', { connection: 'intake' });
  }

  /** Ends the pop under way: the next one names the lanes that this one does not, or comes when a slot is free. */
  #popAnew(): void {
    const popping = this.#popping;
    // While the slot moves, no pop waits at the server for long.
    if (!popping || popping.ending || this.#move.isUnderWay) return;
    popping.ending = new AbortController();
    // Until it is back, nothing pops a token that comes.
    this.#slots.comesBack();
    const back = whenLate(TURN_MS, () => this.#slots.loseTurn());
    void this.#blocking.unblock(popping.ending.signal).finally(back);
  }
}
