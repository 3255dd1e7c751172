import {
  ClosedError,
  Connection,
  ConnectionError,
  checkOption,
  idleFactor,
  option,
  Patience,
  safely,
  TimedCommands,
  type TimedKind,
  type TimedOutcome,
  type TimedPut,
  type TimedVerdict,
} from '@piecework/protocol';
import { nanoid } from 'nanoid';
import pTimeout from 'p-timeout';
import { Consumer } from './consumer.js';
import { Numbered } from './numbered.js';
import type { CheckedTimedOptions } from './options.js';
import { Taker } from './taker.js';
import { Wakes } from './wakes.js';

/** `close` waits this long for calls that are under way, in ms. */
const CLOSE_MS = 5_000;

/** Settings of one stream. */
export interface StreamParts {
  readonly demand: number;
  readonly leaseMs: number;
  /** Whether leases are renewed. */
  readonly renews: boolean;
  readonly pollMs: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/**
 * The base of a `Scheduler` and a `RetryQueue`: items in due order that are taken under leases (lua/timed-*.lua). It
 * puts and settles items, opens consumers, and closes all of it.
 */
export class TimedSet {
  readonly commands: TimedCommands;
  readonly wakes: Wakes;
  readonly keepFailures: number;
  readonly #connection: Connection;
  readonly #ownsConnection: boolean;
  readonly #options: CheckedTimedOptions;
  readonly #id = nanoid();
  readonly #puts: Numbered<TimedPut, 'put'>;
  readonly #settles: Numbered<TimedOutcome, TimedVerdict>;
  readonly #consumers = new Set<Consumer>();
  readonly #closing = new AbortController();
  #closed: Promise<void> | undefined;
  #reached = false;

  constructor(kind: TimedKind, options: CheckedTimedOptions, keepFailures = 0) {
    const { redis, name, condition, unavailableMs, idle } = options;
    const onError = safely(options.onError);
    this.#options = { ...options, onError };
    this.keepFailures = keepFailures;
    this.#connection = Connection.of(redis);
    this.#ownsConnection = this.#connection !== redis;
    this.commands = new TimedCommands(this.#connection, kind, name, {
      condition,
      lateMs: unavailableMs,
    });
    const { channel } = this.commands.keys;
    this.wakes = new Wakes(this.#connection, channel, idleFactor(idle), onError);
    const { commands } = this;
    this.#puts = new Numbered({
      what: name,
      send: (number, entries) => this.call(() => commands.put(this.#id, number, entries)),
      sizeOf: ({ key, payload }) => 3 * (key.length + payload.length),
    });
    this.#settles = new Numbered({
      what: name,
      send: (number, entries) =>
        this.call(() => commands.settle(this.#id, number, keepFailures, entries)),
      // cure: a payload that is read to settle its item counts
      sizeOf: ({ key, value, payloadLength = 0 }) =>
        3 * (key.length + String(value).length + payloadLength),
    });
  }

  /**
   * Throws at once if Redis was never reached. If Redis answers, or has answered before, it resolves.
   * @throws ConnectionError
   */
  async reach(): Promise<void> {
    if (this.#reached) return;
    const seen = this.#connection.watchReach();
    try {
      await this.#connection.check();
      this.#reached = true;
    } catch (error) {
      // Closed meanwhile: the call itself says so.
      if (this.#closing.signal.aborted) return;
      if (error instanceof ConnectionError && !seen.reached()) throw error;
    }
  }

  /**
   * Makes a call, and repeats it while Redis is unavailable.
   * @throws IndeterminateError, ConnectionError, ServerError
   */
  async call<T>(call: () => Promise<T>): Promise<T> {
    await this.reach();
    const { name, unavailableMs } = this.#options;
    const signals = [this.#closing.signal];
    const patience = new Patience(this.#connection, name, { forMs: unavailableMs, signals });
    return patience.call(async () => {
      await this.#connection.check();
      return call();
    });
  }

  /** @throws ClosedError · what `call` throws */
  async put(entry: TimedPut): Promise<void> {
    await this.#puts.write(entry);
  }

  readonly settle = (outcome: TimedOutcome): Promise<TimedVerdict> => this.#settles.write(outcome);

  /** Aborts when this is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** @throws ClosedError */
  expectOpen(): void {
    if (this.#closed) throw new ClosedError(this.#options.name);
  }

  /** Opens a consumer. It ends when its signal aborts or this is closed. */
  consumer(parts: StreamParts): Consumer {
    this.expectOpen();
    for (const one of this.#consumers) if (one.isEnded) this.#consumers.delete(one);
    const consumer = new Consumer({
      ...parts,
      taker: new Taker(this.commands),
      wakes: this.wakes,
      settle: this.settle,
      signals: parts.signal ? [parts.signal, this.closing] : [this.closing],
      onError: this.#options.onError,
    });
    this.#consumers.add(consumer);
    return consumer;
  }

  /** As `call`. @throws ClosedError as well */
  async ask<T>(call: () => Promise<T>): Promise<T> {
    this.expectOpen();
    return this.call(call);
  }

  /** The name in Redis of a key of the condition. @throws InvalidOptionError */
  conditionKey(name: string): string {
    checkOption('name', name, option.name());
    return this.commands.keys.condition(name);
  }

  /** Removes everything, also items that are taken. @throws what `ask` throws */
  async drop(): Promise<void> {
    await this.ask(() => this.commands.drop());
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#closing.abort();
    await pTimeout(this.#finishCalls(), { milliseconds: CLOSE_MS, message: false });
    const reason = new ClosedError(this.#options.name);
    for (const consumer of this.#consumers) consumer.abandon(reason);
    await this.wakes.close();
    if (this.#ownsConnection) await this.#connection.closeSoon();
  }

  async #finishCalls(): Promise<void> {
    await Promise.all([...this.#consumers].map((one) => one.close({ keepsRenewing: false })));
    await Promise.all([this.#puts.close(), this.#settles.close()]);
  }
}
