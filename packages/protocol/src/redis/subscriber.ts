import { backoff, pause } from '../common/waiting.js';
import { ConnectionError, type PieceworkError } from '../contract/errors.js';
import type { Connection } from './connection.js';
import { Line } from './line.js';
import { redisError } from './redis-error.js';

/** How long we wait before we check again that a server is no master any more, in ms: our slot map may be older. */
const REPLACED_MS = 1_000;

export interface SubscriberEvents {
  /** Receives each message. */
  readonly onNotice: (channel: string, message: string) => void;
  /** Messages of these channels may have been missed until now: read their state. */
  readonly onMaybeMissed: (channels: readonly string[]) => void;
  readonly onError: (error: PieceworkError) => void;
}

/**
 * Keeps shard channels subscribed: on one connection, in a cluster on one to each master that holds
 * any of them. What is added in one turn of the event loop is subscribed together. The channels of a lost line are
 * subscribed again, with backoff, at the server that has them then.
 *
 * `#wanted` has every wanted channel, with its line once it is subscribed. After each attempt to subscribe a channel,
 * successful or not, `onMaybeMissed` is called. What is published while the channel is subscribed arrives.
 */
export class Subscriber {
  readonly #connection: Connection;
  readonly #events: SubscriberEvents;
  readonly #name: string;
  readonly #wanted = new Map<string, Line | undefined>();
  readonly #lines = new Map<string, Promise<Line>>();
  readonly #leaving = new Map<string, Line>();
  readonly #fresh = new Set<string>();
  readonly #lost = new Set<string>();
  readonly #backoff = backoff(50, 5_000);
  #retry: NodeJS.Timeout | undefined;
  #scheduled = false;
  readonly #closing = new AbortController();
  readonly #stopWatching: () => void;

  /** `name`: what the server shows as the name of its connections. */
  constructor(connection: Connection, events: SubscriberEvents, name = 'piecework-notifier') {
    this.#connection = connection;
    this.#events = events;
    this.#name = name;
    this.#stopWatching = connection.onSlotsRefreshed(() => void this.#leaveOthers());
  }

  add(channel: string): void {
    this.#wanted.set(channel, undefined);
    this.#fresh.add(channel);
    this.#schedule();
  }

  remove(channel: string): void {
    const line = this.#wanted.get(channel);
    this.#wanted.delete(channel);
    this.#fresh.delete(channel);
    this.#lost.delete(channel);
    if (!line) return;
    this.#leaving.set(channel, line);
    this.#schedule();
  }

  /** Whether a channel is subscribed, or about to be, on a line that was not lost. */
  has(channel: string): boolean {
    return this.#wanted.get(channel) !== undefined;
  }

  /** Finds connections that are dead without having been closed. */
  ping(withinMs: number): void {
    for (const line of this.#lines.values()) line.then((it) => it.ping(withinMs)).catch(() => {});
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#stopWatching();
    clearTimeout(this.#retry);
    this.#wanted.clear();
    const lines = await Promise.allSettled(this.#lines.values());
    for (const line of lines) if (line.status === 'fulfilled') line.value.close();
    this.#lines.clear();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      if (!this.#closing.signal.aborted) this.#flush();
    });
  }

  #flush(): void {
    const leaving = grouped(this.#leaving);
    this.#leaving.clear();
    for (const [line, channels] of leaving) line.unsubscribe(channels);

    const fresh = [...this.#fresh];
    this.#fresh.clear();
    if (fresh.length > 0) void this.#place(fresh);
  }

  async #place(channels: readonly string[]): Promise<void> {
    const addressOf = new Map<string, string>();
    const nowhere: string[] = [];
    let why: unknown;
    for (const channel of channels) {
      try {
        // If the slot map is unknown, it is read once for all of them.
        const known = this.#connection.knownAddressOf(channel);
        if (known === undefined && why) nowhere.push(channel);
        else addressOf.set(channel, known ?? (await this.#connection.addressOf(channel)));
      } catch (error) {
        why = error;
        nowhere.push(channel);
      }
    }
    if (this.#closing.signal.aborted) return;
    for (const [address, there] of grouped(addressOf)) void this.#subscribe(address, there);
    if (nowhere.length > 0) this.#failed(nowhere, undefined, why);
  }

  async #subscribe(address: string, channels: readonly string[]): Promise<void> {
    let line: Line | undefined;
    try {
      const found = await this.#lineTo(address);
      // Some may have been removed meanwhile, or removed, added again and subscribed elsewhere.
      const mine = channels.filter((it) => this.#wanted.has(it) && !this.#wanted.get(it));
      if (mine.length === 0) return;
      line = found;
      for (const channel of mine) this.#wanted.set(channel, line);
      await line.subscribe(mine);
      this.#backoff.reset();
      // cure: state re-read by the waiter, once it is subscribed
      this.#events.onMaybeMissed(mine);
    } catch (error) {
      this.#failed(channels, line, error);
    }
  }

  #lineTo(address: string): Promise<Line> {
    const known = this.#lines.get(address);
    if (known) return known;
    const forget = () => {
      if (this.#lines.get(address) === opening) this.#lines.delete(address);
    };
    const onLost = (line: Line, error: unknown) => {
      forget();
      this.#failed([...this.#wanted.keys()], line, error);
    };
    const events = { onNotice: this.#events.onNotice, onLost };
    const opening = Line.open(this.#connection, address, events, this.#closing.signal, this.#name);
    opening.catch(forget);
    this.#lines.set(address, opening);
    return opening;
  }

  /** Subscribes later again those of `channels` that are on `line` (undefined: on none yet). */
  #failed(channels: readonly string[], line: Line | undefined, error: unknown): void {
    if (this.#closing.signal.aborted) return;
    const mine = channels.filter((it) => this.#wanted.has(it) && this.#wanted.get(it) === line);
    if (mine.length === 0) return;
    for (const channel of mine) {
      this.#wanted.set(channel, undefined);
      this.#lost.add(channel);
    }
    this.#events.onError(redisError(error, 'subscribe'));
    // Reading the states also tells a cluster client, by a redirection, that hash slots moved.
    this.#events.onMaybeMissed(mine);
    this.#retry ??= setTimeout(() => void this.#again(), this.#backoff.next());
  }

  /**
   * Closes the lines to servers that are no master any more. Such a server may have left the cluster, or hang while
   * another one publishes in its place.
   */
  async #leaveOthers(): Promise<void> {
    const others = [...this.#lines].filter(([address]) => !this.#connection.isMaster(address));
    if (others.length === 0) return;
    await pause(REPLACED_MS, this.#closing.signal);
    for (const [address, opening] of others) {
      if (this.#connection.isMaster(address)) continue;
      const end = (line: Line) =>
        line.lose(new ConnectionError('its server is no master any more'));
      opening.then(end).catch(() => {});
    }
  }

  /** Subscribes the lost channels again, with a fresh slot map: their server may be gone or have lost the slot. */
  async #again(): Promise<void> {
    await this.#connection.refreshSlots();
    this.#retry = undefined;
    if (this.#closing.signal.aborted) return;
    for (const channel of this.#lost) this.#fresh.add(channel);
    this.#lost.clear();
    this.#flush();
  }
}

function grouped<Key>(keyOf: ReadonlyMap<string, Key>): Map<Key, string[]> {
  const groups = new Map<Key, string[]>();
  for (const [channel, key] of keyOf) {
    const group = groups.get(key);
    if (group) group.push(channel);
    else groups.set(key, [channel]);
  }
  return groups;
}
