import { type RequestKeys, requestKeys } from '../../contract/keys.js';
import type { Connection } from '../../redis/connection.js';
import { redisError } from '../../redis/redis-error.js';
import { type Reply, run } from '../../scripts/run-script.js';
import type { StreamRow } from '../../scripts/script-values.js';
import { QueueErrors } from '../queue/queue-errors.js';
import { type ResultsEntry, recordsOf } from './outcome-codec.js';
import { readFields } from './read-fields.js';
import type { EndReason, RequestOutcome } from './request-outcome.js';
import { RunningCommands } from './running-commands.js';

/** State of a request as waiters read it. */
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

/** The same, as a read of the state has it. */
export interface PresentState extends RequestState {
  /** The first generation of this use of the id; a redrive begins another one of the same use. */
  readonly first: number;
}

/**
 * Whether a request is the one that has reached the generation `seen`; 0: any is. Otherwise the server went back to an
 * earlier life of the id, or the id was used again.
 */
export const isOfLife = (
  seen: number,
  { generation, first }: Pick<PresentState, 'generation' | 'first'>,
): boolean => seen === 0 || (first <= seen && seen <= generation);

const STATE_FIELDS = [
  ...(['status', 'generation', 'first', 'outcome', 'total', 'succeeded'] as const),
  ...(['failed', 'cancelled', 'endReason'] as const),
];

export type Inspected = Extract<Reply<'inspect'>, { readonly verdict: 'ok' }>;

/** A worker that has sub-requests of a request, and its lease, by the server's clock. */
export interface WorkerLease {
  /** Boot id. */
  readonly worker: string;
  /** How many sub-requests it has read and not settled. */
  readonly pending: number;
  readonly endsAt: number;
  /** How long it lasts from each renewal. */
  readonly leaseMs: number;
}

/** Reads of one request, which change nothing. Every role makes them. Hash slot of `{<id>}`. */
export class RequestReads {
  readonly keys: RequestKeys;
  protected readonly connection: Connection;

  constructor(connection: Connection, id: string) {
    this.connection = connection;
    this.keys = requestKeys(id);
  }

  /** Some fields of the state as they are stored, '' for missing ones. One round trip. */
  fields<Name extends string>(...names: readonly Name[]): Promise<Record<Name, string>> {
    return readFields(this.connection.client, this.keys, names);
  }

  /** The few fields that waiters need; null when there is no such request. One round trip. */
  async state(): Promise<PresentState | null> {
    const v = await this.fields(...STATE_FIELDS);
    if (v.status === '') return null;
    return {
      status: v.status,
      generation: Number(v.generation),
      first: Number(v.first || v.generation),
      outcome: v.outcome as RequestOutcome | '',
      total: Number(v.total),
      succeeded: Number(v.succeeded),
      failed: Number(v.failed),
      cancelled: Number(v.cancelled),
      endReason: v.endReason as EndReason | '',
    };
  }

  /**
   * A snapshot of the request; null when there is none. `fields`: which fields of its state to read, because a large
   * fleet adds many. @default all
   */
  async inspect(fields: readonly string[] = []): Promise<Inspected | null> {
    const reply = await run(this.connection.client, 'inspect', this.keys, { fields });
    return reply.verdict === 'gone' ? null : reply;
  }

  /** The same reads of another request. */
  of(id: string): RequestReads {
    return new RequestReads(this.connection, id);
  }

  /** The last errors of a queue. */
  errorsOf(queue: string): QueueErrors {
    return new QueueErrors(this.connection, queue);
  }

  /** When the first delayed sub-request is due, after `now`; undefined: none is. */
  async nextDue(now: number): Promise<number | undefined> {
    const [, at] = await this.connection.client
      .zrange(this.keys.due, `(${now}`, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
      .catch((error: unknown) => {
        throw redisError(error, 'read what is due');
      });
    return at === undefined ? undefined : Number(at);
  }

  /** The workers that have sub-requests of it, and their leases: two or three round trips. */
  async leases(): Promise<WorkerLease[]> {
    const workers = await new RunningCommands(this.connection, this.keys.id).owners();
    if (workers === 'gone' || workers.length === 0) return [];
    const names = workers.flatMap(({ worker }) => [`lease:${worker}`, `term:${worker}`]);
    const fields = await this.fields(...names);
    return workers.flatMap(({ worker, pending }) => {
      const [endsAt, leaseMs] = [fields[`lease:${worker}`], fields[`term:${worker}`]].map(Number);
      // Without a lease it has just ended it, or its permits were withdrawn.
      return endsAt && leaseMs ? [{ worker, pending, endsAt, leaseMs }] : [];
    });
  }

  /** Whether results are kept; one round trip. */
  async keepsResults(): Promise<boolean> {
    return (await this.fields('results')).results === 'keep';
  }

  /** Entries of the results stream from `from` on (inclusive; '(' before it: exclusive), about a megabyte at most. */
  async results(from: string, count: number, to = '+'): Promise<ResultsEntry[]> {
    const page = await this.resultsPage(0, from, count, to);
    return page === 'gone' ? [] : page.entries;
  }

  /**
   * The same, of the request that has reached the generation `seen`; 'gone': it is not there. `asked`: how many entries
   * were asked for in the end; fewer of long ones than `count`.
   */
  async resultsPage(
    seen: number,
    from: string,
    count: number,
    to: string,
  ): Promise<{ readonly entries: ResultsEntry[]; readonly asked: number } | 'gone'> {
    const args = { generation: seen, from, to, count };
    const reply = await run(this.connection.client, 'read-results', this.keys, args);
    if (reply.verdict === 'gone') return 'gone';
    const isLong = reply.verdict === 'long';
    const rows = isLong ? await this.#longResults(reply.from, reply.to, reply.most) : reply.records;
    const entries = rows.map(([position, flat]) => ({ position, records: recordsOf(flat) }));
    return { entries, asked: isLong ? reply.most : count };
  }

  async #longResults(from: string, to: string, most: number): Promise<readonly StreamRow[]> {
    return this.connection.client
      .xrange(this.keys.results, from, to, 'COUNT', most)
      .catch((error: unknown) => {
        throw redisError(error, 'results');
      });
  }

  /**
   * Errors (JSON) of failed sub-requests; null where there is none (any more). With `generations`, the generation of
   * each, also null where the error is of another generation: the sub-request was redriven, and failed again.
   */
  async failures(
    indexes: readonly number[],
    generations: readonly number[] = [],
  ): Promise<(string | null)[]> {
    const runs = generations.length > 0 ? indexes.map((index) => `${index}:runs`) : [];
    const values = await this.connection.client
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
