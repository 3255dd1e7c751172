import { ConditionError } from '../contract/condition-error.js';
import { TIMES } from '../contract/defaults.js';
import { ServerError } from '../contract/errors.js';
import { type TimedKeys, type TimedKind, timedKeys } from '../contract/timed-keys.js';
import type { Connection } from '../redis/connection.js';
import { redisError } from '../redis/redis-error.js';
import { callOf, run, runCall, type ScriptText } from '../scripts/run-script.js';
import { type Condition, takeWith } from './timed-condition.js';

/** A caller's last reply is remembered this much longer than its call may be retried, in ms. */
const REMEMBER_MS = 300_000;

/** A key that is put, or moved to another time. */
export interface TimedPut {
  readonly key: string;
  /** Token of the caller's own lease of the key; '' if it has none. */
  readonly token: string;
  /** Server time in ms, or '+ms' from when it is put. */
  readonly time: number | `+${number}`;
  /** '' if it has none. */
  readonly payload: string;
}

/** How a key is settled, see lua/timed-settle.lua. */
export interface TimedOutcome {
  readonly key: string;
  readonly token: string;
  readonly verb: 'done' | 'retry' | 'back' | 'discard' | 'keep' | 'remove';
  readonly value: string | number;
  /** Characters of its payload, if the server reads that to settle it. */
  readonly payloadLength?: number;
}

export type TimedVerdict = 'ok' | 'lost';

export interface TakenKey {
  readonly key: string;
  /** When it was due, by the server's clock. */
  readonly at: number;
  /** Of the item; 0, 0 and '' for a key without a payload. */
  readonly created: number;
  readonly numFailures: number;
  readonly payload: string;
}

/** Times are the server's, in ms. */
export interface Taken {
  readonly verdict: 'taken';
  readonly now: number;
  /** When to ask again, unless a message asks for it earlier; -1: never. */
  readonly next: number;
  /** When the lease of these keys ends. */
  readonly ends: number;
  readonly token: string;
  readonly taken: readonly TakenKey[];
}

export interface TimedCounts {
  readonly waiting: number;
  readonly leased: number;
  readonly failures: number;
  /** When the next key is due, server time in ms; undefined: the set is empty. */
  readonly next: number | undefined;
}

export interface TimedFailure {
  readonly key: string;
  readonly payload: string;
  readonly created: number;
  readonly numFailures: number;
  readonly message: string;
  readonly at: number;
}

/** The only caller of the scripts of a timed set. Hash slot of `{<name>}`. */
export class TimedCommands {
  readonly name: string;
  readonly keys: TimedKeys;
  readonly #connection: Connection;
  readonly #conditionKeys: readonly string[];
  readonly #take: (() => ScriptText) | undefined;
  readonly #rememberMs: number;

  /** `lateMs`: for how long after the first attempt a repeated call may still arrive. */
  constructor(
    connection: Connection,
    kind: TimedKind,
    name: string,
    { condition, lateMs = 0 }: { condition?: Condition | undefined; lateMs?: number } = {},
  ) {
    this.name = name;
    this.#connection = connection;
    this.keys = timedKeys(kind, name);
    this.#conditionKeys = (condition?.keys ?? []).map(this.keys.condition);
    this.#take = condition && takeWith(condition);
    this.#rememberMs = lateMs + REMEMBER_MS;
  }

  /**
   * `number` counts the puts of `caller`, one call at a time. Answers one verdict for each entry. A repeated call is
   * recognised even after a step of the clock, because the keys of the first one may have been taken and settled since.
   */
  async put(
    caller: string,
    number: number,
    entries: readonly TimedPut[],
  ): Promise<readonly 'put'[] | 'late'> {
    const { verdict } = await run(
      this.#connection.client,
      'timed-put',
      { ...this.keys, caller: this.keys.caller(caller) },
      {
        number,
        rememberMs: this.#rememberMs + TIMES.longestStepMs,
        channel: this.keys.channel,
        entries,
      },
    );
    return verdict === 'put' ? entries.map(() => 'put') : 'late';
  }

  /**
   * Takes due keys, at most `count`. `number` counts the takes of `taker`, one call at a time.
   * @throws ConditionError
   */
  async take(
    taker: string,
    number: number,
    count: number,
    leaseMs: number,
  ): Promise<Taken | { verdict: 'late'; number: number }> {
    const call = callOf(
      'timed-take',
      { taker: this.keys.caller(taker), conditionKeys: this.#conditionKeys, ...this.keys },
      // A step of the clock that expires the taker's record also ends its lease, so others may take the keys then.
      { name: taker, number, count, leaseMs, rememberMs: this.#rememberMs },
    );
    const reply = await runCall(this.#connection.client, call, this.#take?.()).catch(
      (error: unknown) => {
        throw this.#uncompiled(error) ?? error;
      },
    );
    if (reply.verdict === 'late') return reply;
    if (reply.verdict === 'refused') throw new ConditionError(this.name, reply.message);
    const { keys, ...rest } = reply;
    const taken = keys.map(({ key, at, task }) => ({ key, at, ...parseTask(task) }));
    return { token: `${taker}~${number}`, taken, ...rest };
  }

  #uncompiled(error: unknown): ConditionError | undefined {
    const { message } = error as Error;
    if (!this.#take || !(error instanceof ServerError) || !/compiling script/i.test(message))
      return;
    return new ConditionError(this.name, message, error);
  }

  /** `number` counts the settles of `caller`, one call at a time. */
  async settle(
    caller: string,
    number: number,
    keepFailures: number,
    outcomes: readonly TimedOutcome[],
  ): Promise<readonly TimedVerdict[] | 'late'> {
    const reply = await run(
      this.#connection.client,
      'timed-settle',
      { ...this.keys, caller: this.keys.caller(caller) },
      {
        number,
        rememberMs: this.#rememberMs + TIMES.longestStepMs,
        channel: this.keys.channel,
        keepFailures,
        outcomes,
      },
    );
    return reply.verdict === 'settled' ? (reply.verdicts as TimedVerdict[]) : 'late';
  }

  /** Removes all keys, leased ones too, and the failures. One plain command. */
  async drop(): Promise<void> {
    const { due, tasks, leases, clock, failures } = this.keys;
    await this.#connection.client
      .unlink(due, tasks, leases, clock, failures)
      .catch((error: unknown) => {
        throw redisError(error, 'drop');
      });
  }

  async counts(): Promise<TimedCounts> {
    let leased = 0;
    let cursor = '0';
    for (;;) {
      const page = await run(this.#connection.client, 'timed-counts', this.keys, { cursor });
      const { keys, failures, next } = page;
      leased += page.leased;
      ({ cursor } = page);
      if (cursor !== '0') continue;
      // Pages may count a lease twice while leases come and go.
      leased = Math.min(leased, keys);
      return { waiting: keys - leased, leased, failures, next: next < 0 ? undefined : next };
    }
  }

  /** Discarded items after `cursor` ('': from the start), about a megabyte at most. An empty page is the end. */
  async failures(
    cursor: string,
    count: number,
    order: 'oldest' | 'newest' = 'oldest',
  ): Promise<{ readonly found: readonly TimedFailure[]; readonly cursor: string }> {
    const start = order === 'oldest' ? '-' : '+';
    const args = { from: cursor === '' ? start : `(${cursor}`, count, order };
    const { records } = await run(this.#connection.client, 'timed-failures', this.keys, args);
    const found = records.map(([, fields]) => {
      // Read by position, because a payload may be any text, even a field name.
      const [, key = '', , payload = '', , created = '', , numFailures = '', , message = '', , at] =
        fields;
      return {
        ...{ key, payload, message, created: Number(created) },
        ...{ numFailures: Number(numFailures), at: Number(at) },
      };
    });
    return { found, cursor: records.at(-1)?.[0] ?? cursor };
  }
}

function parseTask(task: string): Pick<TakenKey, 'created' | 'numFailures' | 'payload'> {
  const first = task.indexOf(' ');
  const second = task.indexOf(' ', first + 1);
  if (second < 0) return { created: 0, numFailures: 0, payload: '' };
  return {
    created: Number(task.slice(0, first)),
    numFailures: Number(task.slice(first + 1, second)),
    payload: task.slice(second + 1),
  };
}
