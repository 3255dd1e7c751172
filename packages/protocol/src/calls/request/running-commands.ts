import { indexOf, type RequestKeys, requestKeys } from '../../contract/keys.js';
import type { Connection } from '../../redis/connection.js';
import { isGone, isPacked, redisError } from '../../redis/redis-error.js';
import { run } from '../../scripts/run-script.js';
import { readFields } from './read-fields.js';
import { hasNotEnded } from './request-outcome.js';

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
/** The consumer that owns returned sub-requests. It is no worker. */
const NOBODY = '~';

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
    const { client } = this.#connection;
    const consumers = await this.#readStream(() =>
      client.xinfo('CONSUMERS', this.keys.work, 'workers'),
    );
    if (consumers === 'packed') return await this.#wholeOwner();
    return (consumers as unknown[][])
      .map((flat) => ({
        worker: String(flat[flat.indexOf('name') + 1]),
        pending: Number(flat[flat.indexOf('pending') + 1]),
      }))
      .filter(
        ({ worker, pending }) =>
          /* cure: an entry that no worker owns is not running */ worker !== NOBODY && pending > 0,
      );
  }

  /**
   * Sub-requests that `worker` has had for at least `longerThanMs`, page by page. The server records when it gave an
   * entry to a worker; renewals of the lease do not change that time.
   */
  async *ownedBy(worker: string, longerThanMs: number): AsyncGenerator<OwnedEntry[]> {
    const { client } = this.#connection;
    const { work } = this.keys;
    let from = '-';
    for (;;) {
      const rows = await this.#readStream(() =>
        client.xpending(work, 'workers', 'IDLE', longerThanMs, from, '+', PAGE, worker),
      );
      if (rows === 'packed') {
        yield await this.#wholeOf(worker, longerThanMs);
        return;
      }
      const page = rows as [string, string, number][];
      yield page.map(([entry, , forMs]) => ({ index: indexOf(entry), worker, forMs }));
      if (page.length < PAGE) return;
      from = `(${page.at(-1)?.[0]}`;
    }
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

  /** Who has read all sub-requests while they are packed. */
  async #wholeOwner(): Promise<{ readonly worker: string; readonly pending: number }[] | 'gone'> {
    const { client } = this.#connection;
    const reply = await run(client, 'inspect', this.keys, { fields: [] });
    if (reply.verdict === 'gone') return 'gone';
    const { state, inFlight } = reply;
    if (!hasNotEnded(state['status'])) return 'gone';
    // It may have been settled, or unpacked, since.
    if (inFlight === 0 || inFlight !== Number(state['total'])) return [];
    return Object.keys(state).flatMap((field) => {
      const worker = /^permits:(.*)/.exec(field)?.[1];
      return worker === undefined ? [] : [{ worker, pending: inFlight }];
    });
  }

  /** All sub-requests while they are packed, if this worker has read them that long ago; else none. */
  async #wholeOf(worker: string, longerThanMs: number): Promise<OwnedEntry[]> {
    const { client } = this.#connection;
    const names = ['permits', 'lease', 'term'].map((kind) => `${kind}:${worker}`);
    const fields = ['status', 'total', 'succeeded', 'failed', 'cancelled', ...names];
    const [read, [seconds, micros]] = await Promise.all([
      readFields(client, this.keys, fields),
      client.time(),
    ]);
    const [status, ...values] = fields.map((field) => read[field] ?? '');
    const [total = 0, succeeded = 0, failed = 0, cancelled = 0, permits, endsAt = 0, leaseMs = 0] =
      values.map(Number);
    // It may have been settled since.
    if (!permits || succeeded + failed + cancelled > 0 || !hasNotEnded(status)) return [];
    // A renewal unpacks them, so the lease is still the one that began as they were read.
    const now = Number(seconds) * 1_000 + Number(micros) / 1_000;
    const forMs = Math.max(0, Math.floor(now + leaseMs - endsAt));
    if (forMs < longerThanMs) return [];
    return Array.from({ length: total }, (_, index) => ({ index, worker, forMs }));
  }

  /** 'packed': there is no stream yet, or no request, or it is complete. */
  #readStream<T>(read: () => Promise<T>): Promise<T | 'packed'> {
    return read().catch((error: unknown) => {
      if (isPacked(error) || isGone(error)) return 'packed' as const;
      throw redisError(error, 'read what runs');
    });
  }

  async #read<T>(read: () => Promise<T>): Promise<T | 'gone'> {
    try {
      return await read();
    } catch (error) {
      if (isGone(error)) return 'gone';
      throw redisError(error, 'read what runs');
    }
  }
}
