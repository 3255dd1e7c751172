import { TIMES } from '../contract/defaults.js';
import type { CrashCause } from '../contract/kept-error.js';
import { indexOf, type RequestKeys, requestKeys } from '../contract/keys.js';
import { type Place, placeOf } from '../contract/lanes.js';
import type { Argument, Client } from '../redis/client.js';
import type { Connection } from '../redis/connection.js';
import { isGone, redisError } from '../redis/redis-error.js';
import { runBehind } from '../scripts/run-behind.js';
import { type Arguments, callOf, type Reply, run } from '../scripts/run-script.js';
import type { StreamRow } from '../scripts/script-values.js';
import { type AllIn, createAllIn, type FirstToken, type WholeRequest } from './one-trip.js';
import type { Complete, EndReason, Gone, RequestOutcome } from './request-outcome.js';

/** A sub-request as a worker receives it. */
export interface Entry {
  readonly entry: string;
  readonly index: number;
  readonly payload: string;
  /** Failed attempts so far. */
  readonly tries: number;
  /** How often its worker ended while it held this sub-request. */
  readonly crashes: number;
  /** Whether its next crash may be its last: it is to run in small company, after `runAlone`. */
  readonly suspect: boolean;
  /** How many ran in its process, itself included, when it last ran as a suspect; 0 or absent: it never did. */
  readonly company?: number;
  /** JSON of the last checkpoint that an earlier attempt left; '' or absent: none. */
  readonly checkpoint?: string;
}

/** What a worker says of one sub-request: succeeded, failed, or back unstarted. */
export type Outcome =
  | { readonly entry: string; readonly kind: 's'; readonly value: string }
  /** `delayMs`: before the next attempt, if any is left; -1: there is to be none. */
  | {
      readonly entry: string;
      readonly kind: 'f';
      readonly value: string;
      readonly delayMs: number;
      /** Length of its payload, which is kept beside it. */
      readonly payload?: number;
    }
  | { readonly entry: string; readonly kind: 'b' };

type Ok<Name extends 'enter' | 'settle' | 'append'> = Extract<
  Reply<Name>,
  { readonly verdict: 'ok' }
>;

/** A reply of which the priority and due time are taken apart. */
type Placed<Of> = Omit<Of, 'priority'> & Place;

export interface Settled extends Placed<Omit<Ok<'settle'>, 'cancelling' | 'entries' | 'cut'>> {
  /** Whether the request is being cancelled. */
  readonly cancelling: boolean;
  /** Whether less was read than there is, because the payloads are long. */
  readonly cut: boolean;
}

export interface Entered extends Placed<Omit<Ok<'enter'>, 'entries'>> {
  /** What was read for the permits granted, if it was all that was ready. */
  readonly entries: readonly Entry[];
}

export interface Tended extends Place {
  readonly verdict: 'ok';
  readonly mint: number;
  readonly epoch: number;
  readonly before: string;
  readonly next: number;
  readonly parked: string;
  /** How many sub-requests it took back from workers without a permit. */
  readonly reclaimed?: number;
  readonly crashed?: Crashed;
}

/** Sub-requests that failed as their workers ended too often: how many, and the first of their indexes. */
export interface Crashed {
  readonly count: number;
  readonly indexes: readonly number[];
}

export type Appended = Placed<Ok<'append'>> | Exclude<Reply<'append'>, { readonly verdict: 'ok' }>;

export type Created =
  | Reply<'create'>
  /** The connection over which the intent was heard is gone. */
  | { readonly verdict: 'broke' };

export type Sealed = Reply<'seal'>;

/** State of a request as waiters read it; `null`: no such key. */
export interface RequestState {
  readonly status: string;
  readonly generation: number;
  readonly outcome: RequestOutcome | '';
  /** Why it ended before its work was done; '' when it did not. */
  readonly endReason: EndReason | '';
  readonly total: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
}

export type Inspected = Extract<Reply<'inspect'>, { readonly verdict: 'ok' }>;

/** One outcome of the results stream. `attempts` is set for failed ones. */
export interface ResultRecord {
  readonly index: number;
  readonly failed: boolean;
  readonly value: string;
}

export type EnterArguments = Omit<Arguments<'enter'>, 'most' | 'answered'> &
  Partial<Pick<Arguments<'enter'>, 'most' | 'answered'>>;

/** The scripts and reads of the request side, for one request. Hash slot of `{<id>}`. */
export class RequestCommands {
  readonly keys: RequestKeys;
  readonly #connection: Connection;

  constructor(connection: Connection, id: string) {
    this.#connection = connection;
    this.keys = requestKeys(id);
  }

  /**
   * Brings the request into being. `fields`: field, value, … of its options · `epoch`: the intent was answered over
   * the connection of this number, see run-behind.ts.
   */
  async create(
    generation: number,
    owner: string,
    leaseMs: number,
    fields: readonly Argument[],
    epoch = this.#connection.epoch,
  ): Promise<Created> {
    const args = { generation, owner, windowMs: TIMES.createWindowMs, leaseMs, fields };
    const reply = await runBehind(this.#connection, epoch, callOf('create', this.keys, args));
    return reply ?? { verdict: 'broke' };
  }

  /** `create`, `append` and `seal`, and perhaps `push`, in one round trip; see at-once.ts. */
  createAllIn(whole: WholeRequest, first?: FirstToken): Promise<AllIn | undefined> {
    return createAllIn(this.#connection, this.keys, whole, first);
  }

  /** Adds encoded items; `first` is this producer's number of the first of them. */
  async append(
    generation: number,
    producer: string,
    first: number,
    payloads: readonly string[],
  ): Promise<Appended> {
    const args = { generation, producer, first, payloads };
    const reply = await run(this.#connection.client, 'append', this.keys, args);
    return reply.verdict === 'ok' ? placed(reply) : reply;
  }

  /** Renews the producer lease; answers whether the request is still open. */
  keepOpen(generation: number): Promise<Reply<'keep-open'>> {
    return run(this.#connection.client, 'keep-open', this.keys, { generation });
  }

  /**
   * Ends the adding. `sent`: how many items this producer appended, all told · `client`: over which
   * connection, as a WAIT counts what its own connection wrote.
   */
  seal(
    generation: number,
    producer: string,
    sent: number,
    client: Client = this.#connection.client,
  ): Promise<Sealed> {
    const { channel } = this.keys;
    return run(client, 'seal', this.keys, { generation, producer, sent, channel });
  }

  /**
   * Turns tokens into permits. `tasks`: ' name name ' or '*' · `most`: how many
   * sub-requests it may read at once, if they are all that is ready · `answered`: number of this worker's
   * last call for this request that was answered.
   */
  async enter({
    most = 0,
    answered = 0,
    ...args
  }: EnterArguments): Promise<
    Entered | Placed<Extract<Reply<'enter'>, { verdict: 'unserved' }>> | Complete | Gone
  > {
    const all = { ...args, most, answered };
    const reply = await run(this.#connection.client, 'enter', this.keys, all);
    if (reply.verdict === 'unserved') return placed(reply);
    if (reply.verdict !== 'ok') return reply;
    return { ...placed(reply), entries: reply.entries.map(fresh) };
  }

  /** Reads by hand up to `count` sub-requests that nobody has read; workers do so by `enter` and `settle`. */
  async read(worker: string, count: number): Promise<Entry[] | 'gone'> {
    try {
      const group = ['GROUP', 'workers', worker, 'COUNT', count, 'STREAMS', this.keys.work, '>'];
      return entriesOf(await this.#connection.client.call('xreadgroup', ...group));
    } catch (error) {
      if (isGone(error)) return 'gone';
      throw redisError(error, 'read');
    }
  }

  /** Entries that the server believes to be with this worker, at most `count`. */
  async pending(worker: string, count: number): Promise<string[]> {
    try {
      const { work } = this.keys;
      const { client } = this.#connection;
      const rows = await client.xpending(work, 'workers', '-', '+', count, worker);
      return (rows as [string][]).map(([entry]) => entry);
    } catch (error) {
      if (isGone(error)) return [];
      throw redisError(error, 'pending');
    }
  }

  /**
   * Takes up to `max` parked sub-requests that are ready, fewer where they are long. `op`, `answered`: as of
   * `enter`. `left`: how many others are ready; -1: it was carried out before, and what that took is with the
   * worker, unknown.
   */
  async take(
    generation: number,
    worker: string,
    max: number,
    op?: number,
    answered = 0,
  ): Promise<{ entries: Entry[]; left: number } | 'lost' | 'gone'> {
    const args = { generation, worker, op, max, answered };
    const reply = await run(this.#connection.client, 'take', this.keys, args);
    if (reply.verdict !== 'ok') return reply.verdict;
    const { maxCrashes, left } = reply;
    const entries = reply.entries.map((entry) => ({
      ...entry,
      index: indexOf(entry.entry),
      suspect: entry.crashes >= Math.max(1, maxCrashes - 1),
    }));
    return { entries, left };
  }

  /**
   * Before suspects run, when nothing else runs in this process. Run them only if 'ok'.
   * `company`: how many run there, those of other requests included · `ends`: when the lease is over, in ms
   * of the server's clock
   */
  runAlone(
    generation: number,
    worker: string,
    company: number,
    entries: readonly string[],
  ): Promise<Reply<'run-alone'>> {
    const args = { generation, worker, company, entries };
    return run(this.#connection.client, 'run-alone', this.keys, args);
  }

  /**
   * Settles what ended and reads up to `read` new sub-requests (0: none), as far as permits are left
   * without a handler. `unsure`: this call is a repeat, so the worker may own entries that it never saw.
   * `since`: the hold under which all successes were read, '' when unsure ·
   * `keep`: permits to hold, absolute · `running`: handlers still running · `op`: number of this call,
   * counted with the enters and takes of this process in the order of sending; without it, none may come
   * late · `answered`: number of the last of them, for this request, that was answered.
   */
  async settle(
    generation: number,
    worker: string,
    {
      op,
      since = '',
      leaseMs,
      keep,
      running,
      read,
      answered = 0,
    }: {
      op?: number;
      since?: string;
      leaseMs: number;
      keep: number;
      running: number;
      read: number;
      answered?: number;
    },
    outcomes: readonly Outcome[],
  ): Promise<{ settled: Settled | Complete | Gone; entries: Entry[]; unsure: boolean }> {
    const { channel } = this.keys;
    const reported = reportOf(outcomes, String(generation).length + 1);
    const reply = await run(this.#connection.client, 'settle', this.keys, {
      ...{ generation, worker, op, leaseMs, keep, running, channel, since, read, answered },
      ...reported,
    });
    if (reply.verdict !== 'ok') return { settled: reply, entries: [], unsure: false };
    const { cancelling, cut, entries, ...rest } = reply;
    const settled = { ...placed(rest), cancelling: cancelling === 1, cut: cut === 1 };
    return { settled, entries: settledEntries(entries), unsure: entries === -1 };
  }

  /**
   * Extends the lease; `reports`: index, number, … of handlers that reported progress, and
   * 'index:checkpoint', JSON, … of those that came to a checkpoint.
   */
  renew(
    generation: number,
    worker: string,
    leaseMs: number,
    reports: readonly Argument[],
  ): Promise<Reply<'renew'>> {
    const args = { generation, worker, leaseMs, reports };
    return run(this.#connection.client, 'renew', this.keys, args);
  }

  /**
   * Notes why a worker will not renew its lease. `dead`: its handlers have ended, and so has the lease.
   */
  async cause(
    generation: number,
    worker: string,
    cause: CrashCause,
    dead: boolean,
  ): Promise<'ok' | 'lost' | 'gone'> {
    const args = { generation, worker, cause: JSON.stringify(cause), dead: dead ? 1 : 0 };
    return (await run(this.#connection.client, 'cause', this.keys, args)).verdict;
  }

  /**
   * What a tick does to this request. `resumedAt`: when Redis was last back, as the tick says.
   * `auditMs`: until the next look while workers may hold it. `tickedAt`: when that tick was, 0: not known.
   * `gap`: the longest between two ticks that still matters.
   */
  async tend(
    generation: number,
    passed: string,
    resumedAt = 0,
    auditMs: number = TIMES.auditMs,
    tickedAt = 0,
    { gapAt, gapMs } = { gapAt: 0, gapMs: 0 },
  ): Promise<Tended | (Complete & { readonly crashed?: Crashed }) | Gone> {
    const { channel } = this.keys;
    const { tombstoneMs, awayMs } = TIMES;
    const reply = await run(this.#connection.client, 'tend', this.keys, {
      ...{ generation, passed, channel, auditMs, tombstoneMs, resumedAt, tickedAt, awayMs },
      ...{ gapAt, gapMs },
    });
    if (reply.verdict === 'gone') return reply;
    const { crashed, ...rest } = reply;
    if (rest.verdict === 'complete')
      return { ...rest, spentAt: rest.spentAt || undefined, ...crashedIn(crashed) };
    const { task, parked, ...tended } = rest;
    return { ...placed(tended), parked: parked ? `+${task}` : '', ...crashedIn(crashed) };
  }

  /** Unlinks what this life kept, if its retention is over; answers whether there is nothing of it to wait for. */
  async unlinkSpent(generation: number): Promise<boolean> {
    const { client } = this.#connection;
    return (await run(client, 'unlink-spent', this.keys, { generation })).verdict !== 'kept';
  }

  /** Cancels: idle work at once, running work keeps its outcome if it succeeds. */
  cancel(generation: number): Promise<Reply<'cancel'>> {
    const { channel } = this.keys;
    return run(this.#connection.client, 'cancel', this.keys, { generation, channel });
  }

  /** Removes everything of one life but a tombstone. @param of default: the life that is there now */
  async drop(of?: number): Promise<Reply<'drop'>> {
    const generation = of ?? (await this.state())?.generation ?? 0;
    const { channel } = this.keys;
    const args = { generation, channel, tombstoneMs: TIMES.tombstoneMs };
    return run(this.#connection.client, 'drop', this.keys, args);
  }

  /** A picture of the request, or null. `fields`: of its state; a fleet leaves many there. @default all */
  async inspect(fields: readonly string[] = []): Promise<Inspected | null> {
    const reply = await run(this.#connection.client, 'inspect', this.keys, { fields });
    return reply.verdict === 'gone' ? null : reply;
  }

  /** Some fields of the state as they are, '' for what is not there. One plain read. */
  async fields(...names: readonly string[]): Promise<Record<string, string>> {
    const values = await this.#connection.client
      .hmget(this.keys.request, ...names)
      .catch((error: unknown) => {
        throw redisError(error, 'fields');
      });
    return Object.fromEntries(names.map((name, i) => [name, values[i] ?? '']));
  }

  /** The few fields that waiters need, or null. One plain read. */
  async state(): Promise<RequestState | null> {
    const v = await this.#connection.client
      .hmget(
        this.keys.request,
        'status',
        'generation',
        'outcome',
        'total',
        'succeeded',
        'failed',
        'cancelled',
        'endReason',
      )
      .catch((error: unknown) => {
        throw redisError(error, 'state');
      });
    if (!v[0]) return null;
    return {
      status: v[0],
      generation: Number(v[1]),
      outcome: (v[2] ?? '') as RequestOutcome | '',
      total: Number(v[3] ?? 0),
      succeeded: Number(v[4] ?? 0),
      failed: Number(v[5] ?? 0),
      cancelled: Number(v[6] ?? 0),
      endReason: (v[7] ?? '') as EndReason | '',
    };
  }

  /** Whether results are kept; one plain read. */
  async keepsResults(): Promise<boolean> {
    const results = await this.#connection.client
      .hget(this.keys.request, 'results')
      .catch((error: unknown) => {
        throw redisError(error, 'results');
      });
    return results === 'keep';
  }

  /** Entries of the results stream from `from` on (inclusive; '(' before it: exclusive), about a megabyte at most. */
  async results(
    from: string,
    count: number,
    to = '+',
  ): Promise<{ position: string; records: ResultRecord[] }[]> {
    const args = { from, to, count };
    const { records } = await run(this.#connection.client, 'read-results', this.keys, args);
    return records.map(([position, flat]) => ({ position, records: recordsOf(flat) }));
  }

  /**
   * Errors (JSON) of failed sub-requests; null where there is none (any more), or, when `generations`
   * names the life of each, where it is of another one: it was redriven, and failed again.
   */
  async failures(
    indexes: readonly number[],
    generations: readonly number[] = [],
  ): Promise<(string | null)[]> {
    const runs = generations.length > 0 ? indexes.map((index) => `${index}:runs`) : [];
    const values = await this.#connection.client
      .hmget(this.keys.failed, ...indexes.map(String), ...runs)
      .catch((error: unknown) => {
        throw redisError(error, 'failures');
      });
    return indexes.map((_, i) => {
      const of = values[indexes.length + i];
      const other = of && Number.parseInt(of, 10) !== generations[i];
      return other ? null : (values[i] ?? null);
    });
  }
}

/** Between what travels as one text: no JSON can hold it as it is. */
const SEPARATOR = '\x1e';

/**
 * Outcomes as `settle` wants them: successes first, with all their results in one text. `cut`: where the index
 * begins in an entry.
 */
function reportOf(
  all: readonly Outcome[],
  cut: number,
): Pick<Arguments<'settle'>, 'successes' | 'newest' | 'values' | 'outcomes'> {
  const outcomes: Argument[] = [];
  let newest = -1;
  let values = '';
  for (const outcome of all) {
    const index = outcome.entry.slice(cut);
    newest = Math.max(newest, Number(index));
    if (outcome.kind !== 's') continue;
    outcomes.push(outcome.entry);
    values += `${SEPARATOR}${index} ${outcome.value}`;
  }
  const successes = outcomes.length;
  if (successes === all.length) return { successes, newest, values, outcomes };
  for (const outcome of all) {
    if (outcome.kind === 'f')
      outcomes.push(outcome.entry.slice(cut), 'f', outcome.value, outcome.delayMs);
    else if (outcome.kind === 'b') outcomes.push(outcome.entry.slice(cut), 'b', '', 0);
  }
  return { successes, newest, values, outcomes };
}

function crashedIn(words = ''): { crashed?: Crashed } {
  const [count = 0, ...indexes] = words.split(' ').map(Number);
  return count > 0 ? { crashed: { count, indexes } } : {};
}

function placed<Of extends { readonly priority: string }>(reply: Of): Placed<Of> {
  return { ...reply, ...placeOf(reply.priority) };
}

function recordsOf(flat: readonly string[]): ResultRecord[] {
  const records: ResultRecord[] = [];
  for (let i = 0; i < flat.length; i += 2) {
    const field = flat[i] as string;
    const value = flat[i + 1] as string;
    if (field === 'ok') pushSuccesses(records, value);
    else records.push({ index: Number(field.slice(1)), failed: true, value });
  }
  return records;
}

function pushSuccesses(records: ResultRecord[], values: string): void {
  let start = 1;
  while (start <= values.length) {
    const space = values.indexOf(' ', start);
    const next = values.indexOf(SEPARATOR, space);
    const end = next < 0 ? values.length : next;
    const index = Number(values.slice(start, space));
    records.push({ index, failed: false, value: values.slice(space + 1, end) });
    start = end + 1;
  }
}

/** XREADGROUP's reply, in the shape of either protocol version. */
function entriesOf(reply: unknown): Entry[] {
  if (!reply) return [];
  const streams = Array.isArray(reply) ? reply : Object.entries(reply as object);
  const first = streams[0] as [string, StreamRow[]] | string | undefined;
  const rows = (typeof first === 'string' ? streams[1] : first?.[1]) as StreamRow[] | undefined;
  return (rows ?? []).map(([entry, [, payload = '']]) => fresh({ entry, payload }));
}

/** Entry, payload, … as `settle` brings them: in one text, or apart where a payload holds the separator. */
function settledEntries(brought: unknown): Entry[] {
  const text = typeof brought === 'string' && brought !== '';
  const flat: readonly string[] = text
    ? brought.split(SEPARATOR)
    : Array.isArray(brought)
      ? brought
      : [];
  const entries: Entry[] = [];
  for (let i = 0; i < flat.length; i += 2)
    entries.push(fresh({ entry: flat[i] as string, payload: flat[i + 1] as string }));
  return entries;
}

/** What nobody has held before. */
const fresh = ({
  entry,
  payload,
}: {
  readonly entry: string;
  readonly payload: string;
}): Entry => ({
  entry,
  index: indexOf(entry),
  payload,
  tries: 0,
  crashes: 0,
  suspect: false,
});
