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
import { Meters } from '../metrics/meters.js';
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
import { type IdReference, referenceOf, type TaskReference } from './id-reference.js';
import { IdleBackoff } from './idle-backoff.js';

export interface IdQueueCounts {
  readonly pending: number;
  /** In somebody's hands, or timed out there. */
  readonly running: number;
  /** Ended, failures included. */
  readonly completed: number;
  readonly failures: number;
}

/** How many of the latest failures are kept. */
const FAILURES_KEPT = 100;
/** Longer messages of failures are cut. */
const MESSAGE_CHARACTERS = 8_192;
/** How much longer than it can be tried a call may be late, in ms. */
const LATE_MS = 600_000;
/** From what the number of a task's attempts is drawn. */
const DRAWN_BELOW = 2 ** 24;

type CheckedOptions = Required<Omit<IdQueueOptions, 'timeoutMs' | 'unique'>> &
  Pick<IdQueueOptions, 'timeoutMs' | 'unique'>;

/**
 * A queue of ids, shared by any number of processes: ids are added, pulled, and done or failed. One object
 * may be used by many callers at once. Ids that are never completed stay for ever.
 *
 * Every call throws NoQueueError once somebody dropped the queue, ClosedError after `disconnect`, and
 * ServerError, ConnectionError or IndeterminateError when Redis did not serve it for `unavailableMs`.
 */
export class IdQueue implements AsyncDisposable {
  readonly name: string;
  /** How long a task may be in one hand, in ms. */
  readonly timeoutMs: number;
  /** Whether the same id, put twice, is one task while it is pending or running. */
  readonly unique: boolean;
  readonly #connection: Connection;
  readonly #ownsConnection: boolean;
  readonly #commands: IdQueueCommands;
  readonly #life: string;
  readonly #adds: IdAdds;
  readonly #rest: IdleBackoff;
  readonly #unavailableMs: number;
  readonly #closing = new AbortController();
  readonly #meters = new Set<Meters>();
  readonly #tally = { added: 0, pulled: 0, completed: 0, failed: 0 };
  #disconnected: Promise<void> | undefined;

  private constructor(
    commands: IdQueueCommands,
    joined: { life: string; timeoutMs: number; unique: boolean },
    connection: Connection,
    { redis, rest, unavailableMs }: CheckedOptions,
  ) {
    this.name = commands.keys.name;
    this.timeoutMs = joined.timeoutMs;
    this.unique = joined.unique;
    this.#life = joined.life;
    this.#commands = commands;
    this.#connection = connection;
    this.#ownsConnection = !(redis instanceof Connection);
    this.#rest = new IdleBackoff({ ...DEFAULT_REST, ...rest }, this.#closing.signal);
    this.#unavailableMs = unavailableMs;
    this.#adds = new IdAdds({
      commands,
      life: joined.life,
      sender: nanoid(12),
      keepMs: 2 * unavailableMs + LATE_MS,
      call: (call) => this.#call(call),
    });
  }

  /**
   * Joins the queue of ids of this name, or creates it. `name` is 1 to 128 of A-Z a-z 0-9 _ . : -
   * @throws InvalidOptionError before anything is written · QueueDiffersError when it is there with another
   *   `timeoutMs` or `unique` than asked for · ServerError, ConnectionError, IndeterminateError
   */
  static async join(name: string, options: IdQueueOptions): Promise<IdQueue> {
    checkOption('name', name, option.name());
    const checked = checkOptions<CheckedOptions>(idQueueOptions, options);
    const { redis, timeoutMs, unique, unavailableMs } = checked;
    const connection = redis instanceof Connection ? redis : Connection.open(redis);
    try {
      await connection.check();
      const commands = new IdQueueCommands(connection, name);
      const life = nanoid(12);
      const joined = await new Patience(connection, name, { forMs: unavailableMs }).call(() =>
        commands.join(life, { timeoutMs, unique }, DEFAULT_TIMEOUT_MS),
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
   * Adds ids, in their order, behind those that are pending; answers how many are pending then. An id is any
   * text of 1 to 1024 bytes in UTF-8. More than 500, or than about 250 KB, go in several calls of the server.
   *
   * Adds of one object are carried out one after the other, each id once however often a call was sent.
   * After an error that is `retryable`, the same ids added again as the next add of this object, within ten
   * minutes, are the same add: what was in already is not added again.
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
   * Asks for the next task. Pending ones first, in order; else one that timed out; one that is overdue by
   * another whole timeout is offered before pending ones, once per timeout. After `rest.after` answers
   * PROCESSING in a row each pull rests `rest.ms` first. If the answer is lost, the task times out and is
   * offered again. An answer that took as long as the task has time, by the own clock, is TIMEDOUT.
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
      return this.#commands.pull(this.#life, drawn);
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
   * Takes over a task that timed out. Exactly one of all who ask gets READY, with a new key, a new stamp and
   * the whole time; the others NONE, as whoever asks for one that is done or whose time has not run out.
   * @throws InvalidOptionError
   */
  async resume(key: string): Promise<IdReference> {
    const parts = parseKey(key);
    this.#throwIfClosed();
    return this.#reference(await this.#call(() => this.#commands.resume(this.#life, parts)));
  }

  /**
   * The task is done. Answers whether that counted: a success counts once, from whoever had the task at any
   * time. False as well when an earlier sending of this very call counted and its reply was lost.
   * @throws InvalidOptionError
   */
  async done(key: string): Promise<boolean> {
    return this.#settle(parseKey(key), undefined);
  }

  /**
   * The task failed, for good. Answers whether that counted: from who has it now alone, once (see `done`).
   * @param message kept with the failure; beyond 8192 characters it is cut
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

  /** The latest failure; undefined: there is none. */
  lastFailure(): Promise<KeptIdFailure | undefined> {
    return this.failure(1);
  }

  /**
   * The n-th latest failure, 1 to 100; undefined: there are not so many.
   * @throws InvalidOptionError
   */
  async failure(n: number): Promise<KeptIdFailure | undefined> {
    checkOption('n', n, option.integer(1, FAILURES_KEPT));
    return (await this.#inspect(n - 1, 1)).failed[0];
  }

  /** The latest 100 failures, the latest first. */
  async failures(): Promise<readonly KeptIdFailure[]> {
    return (await this.#inspect(0, FAILURES_KEPT)).failed;
  }

  /**
   * Tasks as they come, each READY: what timed out is resumed. Ends when nothing is left, also in others'
   * hands.
   * @throws AbortError when `signal` aborts
   */
  async *references(
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<TaskReference<'READY'>> {
    for (;;) {
      const pulled = await this.pull(options);
      if (pulled.state === 'NONE') return;
      const reference = pulled.state === 'TIMEDOUT' ? await this.resume(pulled.key) : pulled;
      if (reference.state === 'READY') yield reference;
    }
  }

  /**
   * Reports what this object adds, pulls, completes and fails per second, and how much of the queue is
   * pending and running, until it is closed or this object disconnects.
   * @throws InvalidOptionError
   */
  async meters(options: MetersOptions = {}): Promise<Meters> {
    this.#throwIfClosed();
    const source = {
      name: this.name,
      tally: (): Tally => ({ ...this.#tally }),
      // Tried once: the next reading comes anyway.
      gauges: async () => this.#known(await this.#commands.inspect(this.#life)),
    };
    const meters = await Meters.start(source, options, () => this.#meters.delete(meters));
    if (this.#disconnected) {
      await meters.close();
      throw this.#closedError();
    }
    this.#meters.add(meters);
    return meters;
  }

  /**
   * Removes the queue with all that it holds. Later calls, of this object and of all others that joined it,
   * throw NoQueueError. Nothing happens when somebody did so before.
   */
  async drop(): Promise<void> {
    this.#throwIfClosed();
    await this.#call(() => this.#commands.drop(this.#life));
  }

  /** Ends what rests, and closes the connection if it is ours. The queue stays as it is. */
  disconnect(): Promise<void> {
    this.#disconnected ??= this.#disconnect();
    return this.#disconnected;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.disconnect();
  }

  async #disconnect(): Promise<void> {
    // Their last reading asks Redis.
    await Promise.all([...this.#meters].map((meters) => meters.close()));
    this.#closing.abort();
    if (this.#ownsConnection) await this.#connection.closeSoon();
  }

  async #settle(key: IdKey, failure: string | undefined): Promise<boolean> {
    this.#throwIfClosed();
    const settled = await this.#call(() => this.#commands.settle(this.#life, key, failure));
    const counted = this.#known(settled).verdict === 'counted';
    if (counted) this.#tally.completed += 1;
    if (counted && failure !== undefined) this.#tally.failed += 1;
    return counted;
  }

  async #inspect(first: number, count: number) {
    this.#throwIfClosed();
    return this.#known(await this.#call(() => this.#commands.inspect(this.#life, first, count)));
  }

  #reference(pulled: PulledId | NoIdQueue): IdReference {
    const reference = referenceOf(this.#known(pulled));
    if (reference.state === 'READY') this.#tally.pulled += 1;
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
    return new ClosedError(`the queue of ids ${this.name}`);
  }
}
