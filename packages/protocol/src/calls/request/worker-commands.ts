import type { CrashCause } from '../../contract/kept-error.js';
import { indexOf } from '../../contract/keys.js';
import { type Placed, placed } from '../../contract/lanes.js';
import type { Argument } from '../../redis/client.js';
import { lacksStream, redisError } from '../../redis/redis-error.js';
import { type Reply, run } from '../../scripts/run-script.js';
import { type Entry, entriesIn, entriesOf, type Outcome, reportOf } from './outcome-codec.js';
import { type EnterReply, requestCalls, type SettleReply } from './request-calls.js';
import type { Complete, Gone } from './request-outcome.js';
import { RequestReads } from './request-reads.js';

type EnteredOk = Extract<EnterReply, { readonly verdict: 'ok' }>;
type SettledOk = Extract<SettleReply, { readonly verdict: 'ok' }>;

/** What `enter` answers when it grants permits. */
export interface Entered extends Placed<Omit<EnteredOk, 'entries' | 'live'>> {
  /** Whether somebody follows the results. */
  readonly live: boolean;
  /** The first sub-requests for the granted permits. */
  readonly entries: readonly Entry[];
}

export interface Settled
  extends Placed<Omit<SettledOk, 'cancelling' | 'entries' | 'cut' | 'live'>> {
  /** Whether the request is being cancelled. */
  readonly cancelling: boolean;
  /** Whether fewer sub-requests were read than are ready, because their payloads are long. */
  readonly cut: boolean;
  /** Whether somebody follows the results. */
  readonly live: boolean;
}

/** What `enter` is asked for; `epochs`: of the tokens. */
export interface EnterArguments {
  readonly generation: number;
  readonly worker: string;
  readonly op: number;
  readonly want: number;
  readonly leaseMs: number;
  readonly tasks: string;
  readonly epochs: readonly string[];
  readonly most?: number;
  readonly awaited?: number;
  readonly answered?: number;
  readonly ahead?: number;
  readonly quick?: number;
}

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
  ): Promise<Entered | Placed<Extract<EnterReply, { verdict: 'unserved' }>> | Complete | Gone> {
    const { generation, worker, op, want, leaseMs, tasks, epochs } = args;
    const { most = 0, awaited = 0, answered = 0, ahead = 0, quick = 0 } = args;
    const reply = await requestCalls(this.connection.client).enter({
      keys: this.keys,
      common: { worker, leaseMs, tasks, most, ahead, quick },
      entering: { generation, op, want, awaited, answered, epochs: epochs.join(' ') },
    });
    if (reply.verdict === 'unserved') return placed(reply);
    if (reply.verdict !== 'ok') return reply;
    return { ...placed(reply), live: reply.live === 1, entries: entriesIn(reply.entries) };
  }

  /** Reads up to `count` sub-requests that no worker has read, by a plain command. Workers use `enter` and `settle`. */
  async read(worker: string, count: number): Promise<Entry[] | 'gone'> {
    try {
      const group = ['GROUP', 'workers', worker, 'COUNT', count, 'STREAMS', this.keys.work, '>'];
      return entriesOf(await this.connection.client.call('xreadgroup', ...group));
    } catch (error) {
      if (lacksStream(error)) return 'gone';
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
    const reply = await requestCalls(this.connection.client).settle({
      keys: this.keys,
      common: { worker, leaseMs },
      // By name: V8 takes about 1 µs for each new property behind a spread (docs/decisions/0048-client-cpu.md).
      settling: {
        generation,
        op,
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
      },
    });
    if (reply.verdict !== 'ok') return { settled: reply, entries: [], unsure: false };
    const { cancelling, cut, live, entries } = reply;
    const settled = {
      ...placed(reply),
      cancelling: cancelling === 1,
      cut: cut === 1,
      live: live === 1,
    };
    return { settled, entries: entriesIn(entries), unsure: entries === -1 };
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
