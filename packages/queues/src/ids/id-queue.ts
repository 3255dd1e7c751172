import { randomInt } from 'node:crypto';
import {
  AbortError,
  ClosedError,
  Connection,
  checkOption,
  checkOptions,
  type IdKey,
  IdQueueCommands,
  InvalidOptionError,
  type KeptIdFailure,
  type NoIdQueue,
  option,
  Patience,
  type PulledId,
} from '@piecework/protocol';
import { nanoid } from 'nanoid';
import type { Meters } from '../metrics/meters.js';
import type { MetersOptions, Tally } from '../metrics/meters-options.js';
import { IdAdds } from './id-adds.js';
import { NoQueueError, QueueDiffersError } from './id-queue-errors.js';
import {
  checkIds,
  DEFAULT_REST,
  DEFAULT_TIMEOUT_MS,
  type IdQueueOptions,
  idQueueOptions,
  parseKey,
  pullOptions,
} from './id-queue-options.js';
import { type IdReference, type ItemReference, referenceOf } from './id-reference.js';
import { IdleBackoff } from './idle-backoff.js';

export interface IdQueueCounts {
  readonly pending: number;
  /** A consumer works on it, or its time has run out and no consumer has resumed it. */
  readonly running: number;
  /** Done or failed. */
  readonly completed: number;
  readonly failures: number;
}

/** The queue keeps this many of the latest failures. */
const FAILURES_KEPT = 100;
/** Longer failure messages are cut. */
const MESSAGE_CHARACTERS = 8_192;
/** A call may reach the server this much later than its last repetition, in ms. */
const LATE_MS = 600_000;
/** Each pull draws the number from which its item's attempts count, below this. */
const DRAWN_BELOW = 2 ** 24;

type CheckedOptions = Required<Omit<IdQueueOptions, 'timeoutMs' | 'unique'>> &
  Pick<IdQueueOptions, 'timeoutMs' | 'unique'>;

/**
 * A queue of ids, shared by any number of processes. Producers add ids; consumers pull them and report each as done or
 * failed. Many callers may use one object at once. An id that is never completed stays for ever.
 *
 * Every call throws NoQueueError once somebody has dropped the queue, ClosedError after `close`, and
 * ServerError, ConnectionError or IndeterminateError when Redis was unavailable for `unavailableMs`.
 */
export class IdQueue implements AsyncDisposable {
  readonly name: string;
  /** How long a consumer may work on an item, in ms. */
  readonly timeoutMs: number;
  /** Whether an id that is added again while it is pending or running stays one item. */
  readonly unique: boolean;
  readonly #connection: Connection;
  readonly #ownsConnection: boolean;
  readonly #commands: IdQueueCommands;
  readonly #incarnation: string;
  readonly #adds: IdAdds;
  readonly #rest: IdleBackoff;
  readonly #unavailableMs: number;
  readonly #closing = new AbortController();
  readonly #meters = new Set<Meters>();
  readonly #tally = { added: 0, pulled: 0, completed: 0, failed: 0 };
  #closed: Promise<void> | undefined;

  private constructor(
    commands: IdQueueCommands,
    joined: { incarnation: string; timeoutMs: number; unique: boolean },
    connection: Connection,
    { redis, rest, unavailableMs }: CheckedOptions,
  ) {
    this.name = commands.keys.name;
    this.timeoutMs = joined.timeoutMs;
    this.unique = joined.unique;
    this.#incarnation = joined.incarnation;
    this.#commands = commands;
    this.#connection = connection;
    this.#ownsConnection = connection !== redis;
    this.#rest = new IdleBackoff({ ...DEFAULT_REST, ...rest }, this.#closing.signal);
    this.#unavailableMs = unavailableMs;
    this.#adds = new IdAdds({
      commands,
      incarnation: joined.incarnation,
      sender: nanoid(12),
      keepMs: 2 * unavailableMs + LATE_MS,
      call: (call) => this.#call(call),
    });
  }

  /**
   * Joins the id queue of this name, or creates it. `name` is 1 to 128 of A-Z a-z 0-9 _ . : -
   * @throws InvalidOptionError before anything is written · QueueDiffersError when the queue exists with another
   *   `timeoutMs` or `unique` than given · ServerError, ConnectionError, IndeterminateError
   */
  static async join(name: string, options: IdQueueOptions): Promise<IdQueue> {
    checkOption('name', name, option.name());
    const checked = checkOptions<CheckedOptions>(idQueueOptions, options);
    const { redis, timeoutMs, unique, unavailableMs } = checked;
    const connection = Connection.of(redis);
    try {
      const patience = new Patience(connection, name, { forMs: unavailableMs });
      await patience.reach();
      const commands = new IdQueueCommands(connection, name);
      const incarnation = nanoid(12);
      const joined = await patience.call(() =>
        commands.join(incarnation, { timeoutMs, unique }, DEFAULT_TIMEOUT_MS),
      );
      if (joined.verdict === 'differs')
        throw new QueueDiffersError(name, { timeoutMs, unique }, { ...joined });
      return new IdQueue(commands, joined, connection, checked);
    } catch (error) {
      if (connection !== redis) await connection.close();
      throw error;
    }
  }

  /**
   * Adds ids, in their order, behind those that are pending. Returns how many are pending afterwards. An id is any
   * text of 1 to 1024 bytes in UTF-8. More than 500 ids, or about 250 KB, are sent in several calls.
   *
   * The adds of one object run one after the other. Each id is added once, however often a call was sent. After an
   * error that is `retryable`, add the same ids again as the next add of this object, within ten minutes: ids that
   * were added already are not added twice.
   * @throws InvalidOptionError before anything is written
   */
  async add(ids: string | readonly string[]): Promise<number> {
    this.#throwIfClosed();
    const list = typeof ids === 'string' ? [ids] : ids;
    if (!Array.isArray(list)) throw new InvalidOptionError('ids', ids, 'an id, or an array of ids');
    checkIds(list, (i) => (typeof ids === 'string' ? 'id' : `ids[${i}]`));
    const { pending, added } = this.#known(await this.#adds.add([...list]));
    this.#tally.added += added;
    return pending;
  }

  /**
   * Asks for the next item: the first pending one, or else one that timed out. An item that is overdue by another whole
   * timeout is offered before pending ones, once per timeout. After `rest.after` answers `processing` in a row, each
   * pull waits `rest.ms` first. If the answer is lost, the item times out and is offered again. If, by this process's
   * clock, the answer took longer than `timeoutMs`, it is `timed-out`.
   * @throws AbortError when `signal` aborts
   */
  async pull(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<IdReference> {
    const { signal } = checkOptions<{ signal?: AbortSignal }>(pullOptions, options);
    await this.#rest.ifDue(signal);
    this.#throwIfClosed();
    if (signal?.aborted) throw new AbortError('pull', signal.reason);
    const drawn = randomInt(1, DRAWN_BELOW);
    let sentMs = 0;
    const call = () => {
      sentMs = performance.now();
      return this.#commands.pull(this.#incarnation, drawn);
    };
    const pulled = await this.#call(call, signal).catch((error) => {
      throw signal?.aborted ? new AbortError('pull', error) : error;
    });
    const late = pulled.verdict === 'ready' && performance.now() - sentMs >= this.timeoutMs;
    const reference = this.#reference(late ? { ...pulled, verdict: 'timedout' } : pulled);
    this.#rest.note(reference.state);
    return reference;
  }

  /**
   * Takes over an item that timed out. Exactly one caller gets `ready`, with a new key, a new stamp and the whole
   * `timeoutMs`. All others get `none`, also if the item is done or its time has not run out.
   * @throws InvalidOptionError
   */
  async resume(key: string): Promise<IdReference> {
    const parts = parseKey(key);
    this.#throwIfClosed();
    return this.#reference(await this.#call(() => this.#commands.resume(this.#incarnation, parts)));
  }

  /**
   * Reports the item as done. Returns whether this report counted: one success counts, also that of an earlier
   * attempt. It is also false if this call was sent twice, counted the first time, and only that reply was lost.
   * @throws InvalidOptionError
   */
  async done(key: string): Promise<boolean> {
    return this.#settle(parseKey(key), undefined);
  }

  /**
   * Reports the item as failed, for good. Returns whether this report counted: only that of the present attempt does,
   * once (see `done`).
   * @param message stored with the failure; cut beyond 8192 characters
   * @throws InvalidOptionError
   */
  async fail(key: string, message: string): Promise<boolean> {
    const parts = parseKey(key);
    if (typeof message !== 'string') throw new InvalidOptionError('message', message, 'text');
    const cut = message.length > MESSAGE_CHARACTERS;
    const kept = cut ? `${message.slice(0, MESSAGE_CHARACTERS - 1)}…` : message;
    return this.#settle(parts, kept);
  }

  async counts(): Promise<IdQueueCounts> {
    const { pending, running, completed, failures } = await this.#inspect(0, 0);
    return { pending, running, completed, failures };
  }

  /** The latest failure, or undefined if there is none. */
  lastFailure(): Promise<KeptIdFailure | undefined> {
    return this.failure(1);
  }

  /**
   * The n-th latest failure, 1 to 100, or undefined if there are fewer.
   * @throws InvalidOptionError
   */
  async failure(n: number): Promise<KeptIdFailure | undefined> {
    checkOption('n', n, option.integer(1, FAILURES_KEPT));
    return (await this.#inspect(n - 1, 1)).failed[0];
  }

  /** Up to 100 failures, the latest first. */
  async failures(): Promise<readonly KeptIdFailure[]> {
    return (await this.#inspect(0, FAILURES_KEPT)).failed;
  }

  /**
   * Pulls item after item; each is `ready`. Items that timed out are resumed. Ends when the queue is empty and no other
   * consumer works on an item.
   * @throws AbortError when `signal` aborts
   */
  async *references(
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<ItemReference<'ready'>> {
    for (;;) {
      const pulled = await this.pull(options);
      if (pulled.state === 'none') return;
      const reference = pulled.state === 'timed-out' ? await this.resume(pulled.key) : pulled;
      if (reference.state === 'ready') yield reference;
    }
  }

  /**
   * Reports how much this object adds, pulls, completes and fails per second, and how many items of the queue are
   * pending and running, until the meters or this object are closed.
   * @throws InvalidOptionError
   */
  async meters(options: MetersOptions = {}): Promise<Meters> {
    this.#throwIfClosed();
    const source = {
      name: this.name,
      tally: (): Tally => ({ ...this.#tally }),
      // Without repetitions: the next reading comes anyway.
      gauges: async () => this.#known(await this.#commands.inspect(this.#incarnation)),
    };
    // Most programs need no meters: the code is loaded when they are asked for.
    const { Meters } = await import('../metrics/meters.js');
    const meters = await Meters.start(source, options, () => this.#meters.delete(meters));
    if (this.#closed) {
      await meters.close();
      throw this.#closedError();
    }
    this.#meters.add(meters);
    return meters;
  }

  /**
   * Removes the queue and everything in it. Later calls of this object, and of all others that have joined the queue,
   * throw NoQueueError. Does nothing if the queue was dropped before.
   */
  async drop(): Promise<void> {
    this.#throwIfClosed();
    await this.#call(() => this.#commands.drop(this.#incarnation));
  }

  /** Ends waiting pulls and the meters, and closes the connection unless it was passed in. The queue stays as it is. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    // First: the last reading asks Redis.
    await Promise.all([...this.#meters].map((meters) => meters.close()));
    this.#closing.abort();
    if (this.#ownsConnection) await this.#connection.closeSoon();
  }

  async #settle(key: IdKey, failure: string | undefined): Promise<boolean> {
    this.#throwIfClosed();
    const settled = await this.#call(() => this.#commands.settle(this.#incarnation, key, failure));
    const counted = this.#known(settled).verdict === 'counted';
    if (counted) this.#tally.completed += 1;
    if (counted && failure !== undefined) this.#tally.failed += 1;
    return counted;
  }

  async #inspect(first: number, count: number) {
    this.#throwIfClosed();
    return this.#known(
      await this.#call(() => this.#commands.inspect(this.#incarnation, first, count)),
    );
  }

  #reference(pulled: PulledId | NoIdQueue): IdReference {
    const reference = referenceOf(this.#known(pulled));
    if (reference.state === 'ready') this.#tally.pulled += 1;
    return reference;
  }

  #known<T extends { readonly verdict: string }>(reply: T | NoIdQueue): Exclude<T, NoIdQueue> {
    if (reply.verdict === 'gone') throw new NoQueueError(this.name);
    return reply as Exclude<T, NoIdQueue>;
  }

  #call<T>(call: () => Promise<T>, asked?: AbortSignal): Promise<T> {
    const forMs = this.#unavailableMs;
    const signals = [this.#closing.signal, asked];
    return new Patience(this.#connection, this.name, { forMs, signals }).call(call);
  }

  #throwIfClosed(): void {
    if (this.#closing.signal.aborted) throw this.#closedError();
  }

  #closedError(): ClosedError {
    return new ClosedError(`the id queue ${this.name}`);
  }
}
