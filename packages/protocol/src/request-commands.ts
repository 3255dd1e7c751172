import { type AllIn, createAllIn, type FirstToken, type WholeRequest } from './at-once.js';
import type { CrashCause } from './codec.js';
import type { Connection } from './connection.js';
import { TIMES } from './defaults.js';
import { indexOf, type RequestKeys, requestKeys } from './keys.js';
import { type Place, placeOf } from './lanes.js';
import { isGone, redisError } from './redis-error.js';
import { runBehind } from './run-behind.js';
import { type Client, runScript } from './run-script.js';
import type { ScriptName } from './scripts.generated.js';

export type RequestOutcome = 'succeeded' | 'failed' | 'cancelled';
/**
 * Why a request ended before its work was done. 'producer-lost': nobody sealed it, and its producers gave
 * no sign of life for `producerLeaseMs`.
 */
export type EndReason = 'deadline' | 'failures' | 'cancel' | 'producer-lost';
export type Gone = { readonly verdict: 'gone' };
export type Complete = {
  readonly verdict: 'complete';
  readonly outcome: RequestOutcome;
  /** For `finish`: server time at which what it keeps is to be unlinked, if that is much. */
  readonly spentAt?: number;
};

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

export interface Settled extends Place {
  readonly verdict: 'ok';
  readonly permits: number;
  readonly mint: number;
  readonly epoch: number;
  /** Parked sub-requests that are ready now. */
  readonly dueNow: number;
  /** Server time at which the next delayed one is ready, or 0. */
  readonly nextDue: number;
  /** Whether the request is being cancelled. */
  readonly cancelling: boolean;
  /** Whether less was read than there is, because the payloads are long. */
  readonly cut: boolean;
}

export interface Entered extends Place {
  readonly verdict: 'ok';
  readonly permits: number;
  readonly mint: number;
  readonly epoch: number;
  readonly dueNow: number;
  readonly task: string;
  readonly attempts: number;
  /** When the lease is over, in ms of the server's clock; 0: no permits. */
  readonly ends: number;
  /** Which hold this is, for `settle`. */
  readonly since: string;
  /** What nobody has read yet; -1: a repeat, whose first reply may have brought entries. */
  readonly ready: number;
  /** What was read for the permits granted, if it was all that was ready. */
  readonly entries: readonly Entry[];
  /** How attempts are made, for `decodePolicy`. */
  readonly policy: string;
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

export type Appended =
  | ({ verdict: 'ok'; total: number; mint: number; epoch: number } & Place)
  | { verdict: 'gap'; sent: number }
  | { verdict: 'full'; unsettled: number }
  | { verdict: 'sealed' | 'cancelling' | 'complete' | 'gone' };

export type Created =
  /** `look`: server time at which it has to be looked at; 0: none. */
  | { verdict: 'created'; look: number }
  /** `above`: the next intent is to give a greater generation. */
  | { verdict: 'void'; above: number }
  /** The connection over which the intent was heard is gone. */
  | { verdict: 'broke' }
  | {
      verdict: 'exists';
      status: string;
      generation: number;
      digest: string;
      /** The producer that sealed it, or '', and how many items that one appended. */
      sealedBy: string;
      sent: number;
      /** How many sub-requests it has, whoever appended them. */
      total: number;
    };

export type Sealed =
  | { verdict: 'sealed'; total: number }
  | { verdict: 'gap'; sent: number }
  | Complete
  | { verdict: 'cancelling' | 'gone' };

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

export interface Inspected {
  readonly now: number;
  readonly ready: number;
  readonly inFlight: number;
  readonly delayed: number;
  readonly state: Readonly<Record<string, string>>;
  readonly progress: Readonly<Record<string, string>>;
}

/** One outcome of the results stream. `attempts` is set for failed ones. */
export interface ResultRecord {
  readonly index: number;
  readonly failed: boolean;
  readonly value: string;
}

/** The scripts and reads of the request side, for one request. Hash slot of `{<id>}`. */
export class RequestCommands {
  readonly keys: RequestKeys;
  readonly #connection: Connection;

  constructor(connection: Connection, id: string) {
    this.#connection = connection;
    this.keys = requestKeys(id);
  }

  get #allKeys() {
    const { request, work, due, tries, progress, failed, results } = this.keys;
    return [request, work, due, tries, progress, failed, results];
  }

  #run(name: ScriptName, keys: readonly string[], args: readonly (string | number)[]) {
    return runScript(this.#connection.client, name, keys, args);
  }

  /**
   * Brings the request into being. `fields`: field, value, … of its options · `epoch`: the intent was answered over
   * the connection of this number, see run-behind.ts.
   */
  async create(
    generation: number,
    owner: string,
    leaseMs: number,
    fields: readonly (string | number)[],
    epoch = this.#connection.epoch,
  ): Promise<Created> {
    const { request, work } = this.keys;
    const args = [generation, owner, TIMES.createWindowMs, leaseMs, ...fields];
    const call = { name: 'create', keys: [request, work], args } as const;
    const reply = (await runBehind(this.#connection, epoch, call)) as string[] | undefined;
    if (!reply) return { verdict: 'broke' };
    const [verdict, status = '', known, digest = '', sealedBy = '', sent, total] = reply;
    if (verdict === 'created') return { verdict, look: Number(status) };
    if (verdict !== 'exists') return { verdict: 'void', above: Number(status) };
    return {
      verdict,
      status,
      generation: Number(known),
      digest,
      sealedBy,
      sent: Number(sent),
      total: Number(total),
    };
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
    const { request, work, due } = this.keys;
    const reply = await this.#run(
      'append',
      [request, work, due],
      [generation, producer, first, ...payloads],
    );
    const [verdict, a, b, c, d] = reply as [string, number, number, number, string];
    if (verdict === 'ok') return { verdict, total: a, mint: b, epoch: c, ...placeOf(d) };
    if (verdict === 'gap') return { verdict, sent: a };
    if (verdict === 'full') return { verdict, unsettled: a };
    return { verdict: verdict as 'sealed' | 'cancelling' | 'complete' | 'gone' };
  }

  /** Renews the producer lease; answers whether the request is still open. */
  async keepOpen(
    generation: number,
  ): Promise<{ verdict: string; total: number; unsettled: number }> {
    const [verdict, total = 0, unsettled = 0] = await this.#run(
      'keep-open',
      [this.keys.request],
      [generation],
    );
    return { verdict: verdict as string, total: Number(total), unsettled: Number(unsettled) };
  }

  /**
   * Ends the adding. `sent`: how many items this producer appended, all told · `client`: over which
   * connection, as a WAIT counts what its own connection wrote.
   */
  async seal(
    generation: number,
    producer: string,
    sent: number,
    client: Client = this.#connection.client,
  ): Promise<Sealed> {
    const args = [generation, producer, sent, this.keys.channel];
    const reply = await runScript(client, 'seal', this.#allKeys, args);
    const [verdict, detail] = reply as [string, number | string];
    if (verdict === 'sealed') return { verdict, total: Number(detail) };
    if (verdict === 'gap') return { verdict, sent: Number(detail) };
    if (verdict === 'complete') return completeOf(reply);
    return { verdict: verdict as 'cancelling' | 'gone' };
  }

  /**
   * Turns tokens (their epochs) into permits. `tasks`: ' name name ' or '*' · `most`: how many
   * sub-requests it may read at once, if they are all that is ready · `answered`: number of this worker's
   * last call for this request that was answered.
   */
  async enter(
    generation: number,
    worker: string,
    op: number,
    want: number,
    leaseMs: number,
    tasks: string,
    epochs: readonly string[],
    most = 0,
    answered = 0,
  ): Promise<Entered | { verdict: 'unserved'; task: string; priority: number } | Complete | Gone> {
    const { request, work, due } = this.keys;
    const args = [generation, worker, op, want, leaseMs, tasks, most, answered, ...epochs];
    const reply = await this.#run('enter', [request, work, due], args);
    if (reply[0] === 'ok') {
      const [
        ,
        permits,
        mint,
        epoch,
        priority,
        dueNow,
        task,
        attempts,
        ends,
        since,
        ready,
        policy,
        ...flat
      ] = reply as [
        ...['ok', number, number, number, string, number, string, number, number],
        ...[string | number, number, string, ...string[]],
      ];
      return {
        ...{ verdict: 'ok', permits, mint, epoch, ...placeOf(priority), dueNow },
        ...{ task, attempts, ends, since: String(since), ready, policy },
        entries: freshEntries(flat),
      };
    }
    if (reply[0] === 'unserved') {
      return { verdict: 'unserved', task: reply[1] as string, ...placeOf(reply[2] as string) };
    }
    return ended(reply);
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
    const { request, work, due, tries } = this.keys;
    const [verdict, limit, left, ...flat] = await this.#run(
      'take',
      [request, work, due, tries],
      [generation, worker, op ?? '', max, answered],
    );
    if (verdict !== 'ok') return verdict as 'lost' | 'gone';
    const entries: Entry[] = [];
    for (let i = 0; i < flat.length; i += 6) {
      const entry = flat[i] as string;
      const crashes = Number(flat[i + 3]);
      entries.push({
        entry,
        index: indexOf(entry),
        payload: flat[i + 1] as string,
        tries: Number(flat[i + 2]),
        crashes,
        suspect: crashes >= Math.max(1, Number(limit) - 1),
        checkpoint: flat[i + 4] as string,
        company: Number(flat[i + 5]),
      });
    }
    return { entries, left: left as number };
  }

  /**
   * Before suspects run, when nothing else runs in this process. Run them only if 'ok'.
   * `company`: how many run there, those of other requests included · `ends`: when the lease is over, in ms
   * of the server's clock
   */
  async runAlone(
    generation: number,
    worker: string,
    company: number,
    entries: readonly string[],
  ): Promise<{ readonly verdict: 'ok' | 'lost' | 'gone'; readonly ends: number }> {
    const { request, work, tries } = this.keys;
    const args = [generation, worker, company, ...entries];
    const [verdict, ends] = await this.#run('run-alone', [request, work, tries], args);
    return { verdict: verdict as 'ok' | 'lost' | 'gone', ends: Number(ends ?? 0) };
  }

  /**
   * Settles what ended and reads up to `read` new sub-requests (0: none), as far as permits are left
   * without a handler. `unsure`: it was carried out before, and what that read is with the worker, unknown.
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
    const args: (string | number)[] = [
      generation,
      worker,
      op ?? '',
      leaseMs,
      keep,
      running,
      this.keys.channel,
    ];
    pushOutcomes(args, outcomes, String(generation).length + 1, { since, read, answered });
    const reply = await this.#run('settle', this.#allKeys, args);
    const brought = reply[8];
    return { settled: settledOf(reply), entries: settledEntries(brought), unsure: brought === -1 };
  }

  /**
   * Extends the lease; `reports`: index, number, … of handlers that reported progress, and
   * 'index:checkpoint', JSON, … of those that came to a checkpoint.
   */
  async renew(
    generation: number,
    worker: string,
    leaseMs: number,
    reports: readonly (number | string)[],
  ): Promise<{ verdict: 'ok' | 'cancelling'; permits: number } | { verdict: 'lost' | 'gone' }> {
    const { request, work, tries, progress } = this.keys;
    const reply = await this.#run(
      'renew',
      [request, work, tries, progress],
      [generation, worker, leaseMs, ...reports],
    );
    return { verdict: reply[0] as 'ok', permits: Number(reply[1] ?? 0) };
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
    const args = [generation, worker, JSON.stringify(cause), dead ? 1 : 0];
    const [verdict] = await this.#run('cause', [this.keys.request], args);
    return verdict as 'ok' | 'lost' | 'gone';
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
    const times = [auditMs, TIMES.tombstoneMs, resumedAt, tickedAt, TIMES.awayMs, gapAt, gapMs];
    const args = [generation, passed, channel, ...times];
    const reply = await this.#run('tend', this.#allKeys, args);
    if (reply[0] !== 'ok') return { ...ended(reply), ...crashedIn(reply[3]) };
    const [, mint, epoch, priority, before, next, parked, task, reclaimed, crashed] = reply as [
      'ok',
      number,
      number,
      string,
      string,
      number,
      number,
      string,
      number,
      string,
    ];
    return {
      verdict: 'ok',
      mint,
      epoch,
      ...placeOf(priority),
      before,
      next,
      parked: parked ? `+${task}` : '',
      reclaimed,
      ...crashedIn(crashed),
    };
  }

  /** Unlinks what this life kept, if its retention is over; answers whether there is nothing of it to wait for. */
  async unlinkSpent(generation: number): Promise<boolean> {
    const { request, failed, results } = this.keys;
    const [verdict] = await this.#run('unlink-spent', [request, failed, results], [generation]);
    return verdict !== 'kept';
  }

  /** Cancels: idle work at once, running work keeps its outcome if it succeeds. */
  async cancel(
    generation: number,
  ): Promise<{ verdict: 'cancelling'; left: number } | Complete | Gone> {
    const reply = await this.#run('cancel', this.#allKeys, [generation, this.keys.channel]);
    if (reply[0] === 'cancelling') return { verdict: 'cancelling', left: Number(reply[1]) };
    return ended(reply);
  }

  /** Removes everything of one life but a tombstone. @param of default: the life that is there now */
  async drop(
    of?: number,
  ): Promise<{ verdict: 'dropped'; generation: number; queue: string } | Gone> {
    const life = of ?? (await this.state())?.generation ?? 0;
    const args = [life, this.keys.channel, TIMES.tombstoneMs];
    const reply = await this.#run('drop', this.#allKeys, args);
    if (reply[0] === 'gone') return { verdict: 'gone' };
    return { verdict: 'dropped', generation: Number(reply[1]), queue: reply[2] as string };
  }

  /** A picture of the request, or null. `fields`: of its state; a fleet leaves many there. @default all */
  async inspect(fields: readonly string[] = []): Promise<Inspected | null> {
    const { request, work, due, progress } = this.keys;
    const reply = await this.#run('inspect', [request, work, due, progress], fields);
    if (reply[0] === 'gone') return null;
    const [, now, ready, inFlight, delayed, state, reported] = reply as [
      'ok',
      number,
      number,
      number,
      number,
      string[],
      string[],
    ];
    return { now, ready, inFlight, delayed, state: record(state), progress: record(reported) };
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
    const { request, results } = this.keys;
    const [, ...rows] = await this.#run('read-results', [request, results], [from, to, count]);
    return (rows as [string, string[]][]).map(([position, flat]) => ({
      position,
      records: recordsOf(flat),
    }));
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

/** Successes first, with all their results in one text. `cut`: where the index begins in an entry. */
function pushOutcomes(
  args: (string | number)[],
  outcomes: readonly Outcome[],
  cut: number,
  { since, read, answered }: { since: string; read: number; answered: number },
): void {
  const at = args.push(0, since, -1, '', read, answered) - 6;
  let successes = 0;
  let newest = -1;
  let values = '';
  for (const outcome of outcomes) {
    const index = outcome.entry.slice(cut);
    newest = Math.max(newest, Number(index));
    if (outcome.kind !== 's') continue;
    successes += 1;
    args.push(outcome.entry);
    values += `${SEPARATOR}${index} ${outcome.value}`;
  }
  args[at] = successes;
  args[at + 2] = newest;
  args[at + 3] = values;
  if (successes === outcomes.length) return;
  for (const outcome of outcomes) {
    if (outcome.kind === 'f')
      args.push(outcome.entry.slice(cut), 'f', outcome.value, outcome.delayMs);
    else if (outcome.kind === 'b') args.push(outcome.entry.slice(cut), 'b', '', 0);
  }
}

function crashedIn(words: unknown): { crashed?: Crashed } {
  const [count = 0, ...indexes] = String(words ?? '')
    .split(' ')
    .map(Number);
  return count > 0 ? { crashed: { count, indexes } } : {};
}

function ended(reply: readonly unknown[]): Complete | Gone {
  return reply[0] === 'complete' ? completeOf(reply) : { verdict: 'gone' };
}

const completeOf = ([, outcome, spentAt]: readonly unknown[]): Complete => ({
  verdict: 'complete',
  outcome: outcome as RequestOutcome,
  ...(spentAt ? { spentAt: Number(spentAt) } : {}),
});

function settledOf(reply: readonly unknown[]): Settled | Complete | Gone {
  if (reply[0] !== 'ok') return ended(reply);
  const [, permits, mint, epoch, priority, dueNow, nextDue, cancelling, , cut] = reply as [
    'ok',
    number,
    number,
    number,
    string,
    number,
    number,
    number,
    unknown,
    number,
  ];
  const numbers = { permits, mint, epoch, ...placeOf(priority), dueNow, nextDue };
  return { verdict: 'ok', ...numbers, cancelling: cancelling === 1, cut: cut === 1 };
}

function record(flat: readonly string[]): Record<string, string> {
  const fields: Record<string, string> = Object.create(null);
  for (let i = 0; i < flat.length; i += 2) fields[flat[i] as string] = flat[i + 1] as string;
  return fields;
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

type StreamRows = [string, string[]][];

/** XREADGROUP's reply, in the shape of either protocol version. */
function entriesOf(reply: unknown): Entry[] {
  if (!reply) return [];
  const streams = Array.isArray(reply) ? reply : Object.entries(reply as object);
  const first = streams[0] as [string, StreamRows] | string | undefined;
  const rows = (typeof first === 'string' ? streams[1] : first?.[1]) as StreamRows | undefined;
  return (rows ?? []).map(([entry, fields]) => fresh(entry, fields[1] as string));
}

/** Entry, payload, … as `settle` brings them: in one text, or apart where a payload holds the separator. */
function settledEntries(brought: unknown): Entry[] {
  if (Array.isArray(brought)) return freshEntries(brought);
  return typeof brought === 'string' && brought ? freshEntries(brought.split(SEPARATOR)) : [];
}

/** Entry, payload, … as `enter` brings them. */
function freshEntries(flat: readonly string[]): Entry[] {
  const entries: Entry[] = [];
  for (let i = 0; i < flat.length; i += 2)
    entries.push(fresh(flat[i] as string, flat[i + 1] as string));
  return entries;
}

/** What nobody has held before. */
const fresh = (entry: string, payload: string): Entry => ({
  entry,
  index: indexOf(entry),
  payload,
  tries: 0,
  crashes: 0,
  suspect: false,
});
