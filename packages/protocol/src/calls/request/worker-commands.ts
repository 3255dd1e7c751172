import type { CrashCause } from '../../contract/kept-error.js';
import { indexOf } from '../../contract/keys.js';
import { type Placed, placed } from '../../contract/lanes.js';
import type { Argument } from '../../redis/client.js';
import { isGone, redisError } from '../../redis/redis-error.js';
import { type Arguments, type Reply, run } from '../../scripts/run-script.js';
import {
  type CompactEnd,
  compactCalls,
  type Entered,
  type Entering,
  type QueueToClear,
} from './compact-calls.js';
import {
  type Entry,
  entriesOf,
  fresh,
  type Outcome,
  reportOf,
  settledEntries,
} from './outcome-codec.js';
import type { Complete, Gone } from './request-outcome.js';
import { RequestReads } from './request-reads.js';

/** The longest results of a compact request, in bytes (lua/lib/compact-settle.lua). */
const COMPACT_RESULTS = 65_536;

export type { Entered } from './compact-calls.js';

type SettledOk = Extract<Reply<'settle'>, { readonly verdict: 'ok' }>;

export interface Settled
  extends Placed<Omit<SettledOk, 'cancelling' | 'entries' | 'cut' | 'live'>> {
  /** Whether the request is being cancelled. */
  readonly cancelling: boolean;
  /** Whether fewer sub-requests were read than are ready, because their payloads are long. */
  readonly cut: boolean;
  /** Whether somebody follows the results. */
  readonly live: boolean;
}

type Counts = 'most' | 'awaited' | 'answered' | 'ahead' | 'quick';
export type EnterArguments = Omit<Arguments<'enter'>, Counts> &
  Partial<Pick<Arguments<'enter'>, Counts>>;

/**
 * What a worker does to a request: it turns tokens into permits, takes sub-requests and settles them. Hash slot of
 * `{<id>}`.
 */
export class WorkerCommands extends RequestReads {
  /**
   * Turns tokens into permits. `tasks`: ' name name ' or '*' · `most`: how many sub-requests it may read in the same
   * call · `awaited`: how many of the wanted slots are still in use · `answered`: number of this worker's last call for
   * this request that was answered · `ahead`: how many it may read for each new permit beyond that, if the worker has
   * all that the limit allows · `quick`: the same, also if it has not.
   */
  async enter(
    args: EnterArguments,
  ): Promise<Entered | Placed<Extract<Reply<'enter'>, { verdict: 'unserved' }>> | Complete | Gone> {
    const { most = 0, awaited = 0, answered = 0, ahead = 0, quick = 0 } = args;
    const all = { ...args, most, awaited, answered, ahead, quick };
    const compact = compactCalls(this.connection);
    const isFirst = answered === 0 && args.epochs.length === 1;
    if (compact.areUsual && isFirst) {
      const entered = await compact.enter(enteringOf(this.keys.request, all));
      if (entered) return entered;
    }
    const reply = await run(this.connection.client, 'enter', this.keys, all);
    if (reply.verdict === 'unserved') return placed(reply);
    if (reply.verdict !== 'ok') return reply;
    if (isFirst) compact.areUsual = reply.compact === 1;
    return { ...placed(reply), live: reply.live === 1, entries: reply.entries.map(fresh) };
  }

  /**
   * Completes a request that one enter read as a whole (`compact`) with the successes of all its sub-requests, and may
   * remove it from its queue. Returns undefined when nothing was done: then `settle` has to be called.
   */
  settleCompact(
    queue: QueueToClear,
    generation: number,
    worker: string,
    grantNo: string,
    outcomes: readonly Outcome[],
  ): Promise<CompactEnd | undefined> {
    const { successes, values, costs } = reportOf(outcomes, String(generation).length + 1);
    // It would be refused, and sent once more.
    if ((values as string | Buffer).length > COMPACT_RESULTS) return Promise.resolve(undefined);
    const { id, request, results, channel } = this.keys;
    const settling = {
      id,
      generation,
      grantNo: Number(grantNo),
      successes,
      values,
      costs,
      channel,
    };
    const keys = { request, results };
    return compactCalls(this.connection).settle({
      queue,
      worker,
      keys,
      settling,
    });
  }

  /** Reads up to `count` sub-requests that no worker has read, by a plain command. Workers use `enter` and `settle`. */
  async read(worker: string, count: number): Promise<Entry[] | 'gone'> {
    try {
      const group = ['GROUP', 'workers', worker, 'COUNT', count, 'STREAMS', this.keys.work, '>'];
      return entriesOf(await this.connection.client.call('xreadgroup', ...group));
    } catch (error) {
      if (isGone(error)) return 'gone';
      throw redisError(error, 'read');
    }
  }

  /** Entries that this worker owns according to the server, at most `count`; none where the request is gone. */
  async pending(worker: string, count: number): Promise<string[]> {
    const args = { worker, from: 0, count, leastMs: 0 };
    const reply = await run(this.connection.client, 'pending', this.keys, args);
    return reply.verdict === 'gone' ? [] : reply.entries.map(({ entry }) => entry);
  }

  /**
   * Takes up to `max` returned sub-requests that are ready, fewer where they are long. `op`, `answered`: as for
   * `enter`.
   * `left`: how many others are ready; -1: a repeat, so the worker may own entries that it never received.
   */
  async take(
    generation: number,
    worker: string,
    max: number,
    op?: number,
    answered = 0,
  ): Promise<{ entries: Entry[]; left: number } | 'lost' | 'gone'> {
    const args = { generation, worker, op, max, answered };
    const reply = await run(this.connection.client, 'take', this.keys, args);
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
   * To be called before suspects run, when nothing else runs in this process. Run them only if the verdict is 'ok'.
   * `company`: how many suspects run there, those of other requests included · `ends`: when the lease ends, in ms of
   * the server's clock
   */
  runAlone(
    generation: number,
    worker: string,
    company: number,
    entries: readonly string[],
  ): Promise<Reply<'run-alone'>> {
    const args = { generation, worker, company, entries };
    return run(this.connection.client, 'run-alone', this.keys, args);
  }

  /**
   * Settles ended sub-requests and reads up to `read` new ones (0: none), one for each permit that has no handler, and
   * up to `ahead` more, which are to be started as handlers end.
   * `unsure`: this call is a repeat, so the worker may own entries that it never received.
   * `grantNo`: the grant under which all successes were read, '' when unsure · `keep`: permits to keep, absolute ·
   * `running`: handlers still running · `op`: number of this call among the enters, takes and settles of this process,
   * in the order of sending; without it, no call may arrive late · `answered`: number of the last of these calls, for
   * this request, that was answered.
   */
  async settle(
    generation: number,
    worker: string,
    {
      op,
      grantNo = '',
      leaseMs,
      keep,
      running,
      read,
      ahead = 0,
      answered = 0,
    }: {
      op?: number;
      grantNo?: string;
      leaseMs: number;
      keep: number;
      running: number;
      read: number;
      ahead?: number;
      answered?: number;
    },
    outcomes: readonly Outcome[],
  ): Promise<{ settled: Settled | Complete | Gone; entries: Entry[]; unsure: boolean }> {
    const { channel } = this.keys;
    const report = reportOf(outcomes, String(generation).length + 1);
    // By name: V8 takes about 1 µs for each new property behind a spread (docs/decisions/0048-client-cpu.md).
    const reply = await run(this.connection.client, 'settle', this.keys, {
      generation,
      worker,
      op,
      leaseMs,
      keep,
      running,
      channel,
      grantNo,
      read,
      ahead,
      answered,
      successes: report.successes,
      newest: report.newest,
      values: report.values,
      costs: report.costs,
      outcomes: report.outcomes,
    });
    if (reply.verdict !== 'ok') return { settled: reply, entries: [], unsure: false };
    const { cancelling, cut, live, entries } = reply;
    const settled = {
      ...placed(reply),
      cancelling: cancelling === 1,
      cut: cut === 1,
      live: live === 1,
    };
    return { settled, entries: settledEntries(entries), unsure: entries === -1 };
  }

  /**
   * Renews the lease. `reports`: index, number, … of handlers that reported progress, and 'index:checkpoint', JSON, …
   * of those that wrote a checkpoint.
   */
  renew(
    generation: number,
    worker: string,
    leaseMs: number,
    reports: readonly Argument[],
  ): Promise<Reply<'renew'>> {
    const args = { generation, worker, leaseMs, reports };
    return run(this.connection.client, 'renew', this.keys, args);
  }

  /** Notes why a worker will not renew its lease. `dead`: its handlers have ended, and its lease ends now. */
  async cause(
    generation: number,
    worker: string,
    cause: CrashCause,
    dead: boolean,
  ): Promise<'ok' | 'lost' | 'gone'> {
    const args = { generation, worker, cause: JSON.stringify(cause), dead: dead ? 1 : 0 };
    return (await run(this.connection.client, 'cause', this.keys, args)).verdict;
  }
}

function enteringOf(request: string, args: Arguments<'enter'>): Entering {
  const { worker, leaseMs, tasks, most, ahead, quick, generation, op, want, epochs } = args;
  return {
    request,
    common: { worker, leaseMs, tasks, most, ahead, quick },
    entering: { generation, op, want, epoch: Number(epochs[0]) },
  };
}
