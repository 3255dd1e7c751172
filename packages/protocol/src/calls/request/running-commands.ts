import { indexOf, type RequestKeys, requestKeys } from '../../contract/keys.js';
import type { Connection } from '../../redis/connection.js';
import { lacksStream, redisError } from '../../redis/redis-error.js';
import { run } from '../../scripts/run-script.js';
import { readFields } from './read-fields.js';

/** A sub-request that a worker has. */
export interface OwnedEntry {
  readonly index: number;
  /** Boot id. */
  readonly worker: string;
  /** For how long it has had it, in ms. */
  readonly forMs: number;
}

/** What is stored about a sub-request while a worker has it. */
export interface OwnedDetails {
  readonly failedAttempts: number;
  /** What its handler last reported. */
  readonly progress: number | undefined;
}

/** Entries of one worker that are read in one call. */
const PAGE = 1_000;

/** Plain reads of the running sub-requests of one request. Hash slot of `{<id>}`. */
export class RunningCommands {
  readonly keys: RequestKeys;
  readonly #connection: Connection;

  constructor(connection: Connection, id: string) {
    this.#connection = connection;
    this.keys = requestKeys(id);
  }

  /** Boot ids of the workers that have sub-requests of it; 'gone': no such request, or it is complete. */
  async workers(): Promise<string[] | 'gone'> {
    const owners = await this.owners();
    return owners === 'gone' ? owners : owners.map(({ worker }) => worker);
  }

  /** The workers that have sub-requests of it, and how many; 'gone': no such request, or it is complete. */
  async owners(): Promise<{ readonly worker: string; readonly pending: number }[] | 'gone'> {
    const reply = await this.#pending('', 0, 0);
    if (reply.verdict === 'gone') return 'gone';
    return Object.entries(reply.workers).map(([worker, pending]) => ({
      worker,
      pending: Number(pending),
    }));
  }

  /**
   * Sub-requests that `worker` has had for at least `longerThanMs`, page by page. The server records when it gave an
   * entry to a worker; renewals of the lease do not change that time.
   */
  async *ownedBy(worker: string, longerThanMs: number): AsyncGenerator<OwnedEntry[]> {
    for (let from = 0; ; ) {
      const reply = await this.#pending(worker, from, longerThanMs);
      if (reply.verdict === 'gone') return;
      const page = reply.entries.map(({ entry, forMs }) => ({
        index: indexOf(entry),
        worker,
        forMs,
      }));
      yield page;
      const last = page.at(-1);
      if (!last || page.length < PAGE) return;
      from = last.index + 1;
    }
  }

  #pending(worker: string, from: number, leastMs: number) {
    const args = { worker, from, count: PAGE, leastMs };
    return run(this.#connection.client, 'pending', this.keys, args);
  }

  /** In the order of `indexes`. */
  async details(indexes: readonly number[]): Promise<OwnedDetails[]> {
    if (indexes.length === 0) return [];
    const { client } = this.#connection;
    const { tries, progress } = this.keys;
    const read = await this.#read(() =>
      Promise.all([
        client.hmget(tries, ...indexes.map(String)),
        client.hmget(progress, ...indexes.map(String)),
      ]),
    );
    const [failed = [], reported = []] = read === 'gone' ? [] : read;
    return indexes.map((_, i) => {
      const report = reported[i] ?? undefined;
      return {
        failedAttempts: Number(failed[i] ?? 0),
        progress: report === undefined ? undefined : Number(report),
      };
    });
  }

  /** How many each of these workers may run at once. */
  async permits(workers: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (workers.length === 0) return new Map();
    const names = workers.map((worker) => `permits:${worker}`);
    const read = await readFields(this.#connection.client, this.keys, names);
    return new Map(workers.map((worker) => [worker, Number(read[`permits:${worker}`])]));
  }

  async #read<T>(read: () => Promise<T>): Promise<T | 'gone'> {
    try {
      return await read();
    } catch (error) {
      if (lacksStream(error)) return 'gone';
      throw redisError(error, 'read what runs');
    }
  }
}
