import { Worker as Thread } from 'node:worker_threads';
import {
  beatMs,
  type CloneableSettings,
  type Connection,
  cloneableSettings,
} from '@piecework/protocol';
import type { Logger } from 'pino';
import type { RenewalNews, RenewalOrder } from './renewal-program.js';
import { RenewalTable } from './renewal-table.js';
import { RENEWAL_THREAD } from './renewal-thread.js';

/** Memory of the renewal thread, in MB; it keeps nothing but the rows. */
const LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 };
/** Of a shorter lease the thread needs all the time that there is, on a busy machine. */
const LONG_LEASE_MS = 10_000;
/** Longest time between two beats of the main loop, in ms. */
const BEAT_MS = 250;

export interface RenewalOptions {
  readonly connection: Connection;
  /** Boot id of the worker. */
  readonly worker: string;
  readonly leaseMs: number;
  /** 0: no thread. */
  readonly maxBlockMs: number;
  /** With how many requests the worker may have permits at once. */
  readonly rows: number;
  readonly logger: Logger;
}

/** The row of one session in the table that the renewal thread reads. */
export interface RenewalRow {
  /** Whether the session has permits, which the thread may have to renew. Does something only when it changes. */
  set(hasPermits: boolean): void;
  /** When the thread sent the last renewal that was granted, as performance.now(); -Infinity: never. */
  askedAt(): number;
  /** An attempt was started that may take `ms`: beyond that only the main loop renews for it. */
  runsFor(ms: number): void;
}

/**
 * Renews leases while a handler blocks the event loop. A thread with a connection of its own does so until the loop
 * has been silent for `maxBlockMs`. The thread starts with the first permits of the worker and ends with `close`.
 * Without a thread (its settings cannot be copied, or it died) the worker continues, but a loop that is blocked for
 * the length of a lease loses it; `down` gives the reason.
 */
export class Renewal {
  readonly #options: RenewalOptions;
  readonly #table: RenewalTable;
  readonly #free: number[] = [];
  #used = 0;
  #thread: Thread | undefined;
  #beats: NodeJS.Timeout | undefined;
  #begun = false;
  #closed = false;
  #down = '';

  constructor(options: RenewalOptions) {
    this.#options = options;
    this.#table = RenewalTable.of(options.maxBlockMs > 0 ? options.rows : 0);
  }

  /** Why no thread can renew; '' when one can, or none is wanted. */
  get down(): string {
    return this.#down;
  }

  rowOf(id: string, generation: number): RenewalRow {
    let row: number | undefined;
    let claimedAt = 0n;
    return {
      set: (hasPermits) => {
        if (hasPermits === (row !== undefined)) return;
        if (row !== undefined) {
          this.#release(row);
          row = undefined;
          return;
        }
        row = this.#claim();
        if (row === undefined) return;
        claimedAt = process.hrtime.bigint();
        this.#table.occupy(row, id, generation);
      },
      runsFor: (ms) => {
        if (row === undefined) return;
        this.#table.bound(row, process.hrtime.bigint() + BigInt(ms) * 1_000_000n);
      },
      askedAt: () => {
        const asked = row === undefined ? 0n : this.#table.askedAt(row);
        if (asked < claimedAt || asked === 0n) return Number.NEGATIVE_INFINITY;
        return performance.now() - Number(process.hrtime.bigint() - asked) / 1e6;
      },
    };
  }

  /** Ends the thread and its connection, also when Redis does not answer. No thread is started after that. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#beats);
    await this.#thread?.terminate();
  }

  #claim(): number | undefined {
    this.#begin();
    const row = this.#free.pop();
    if (row !== undefined || this.#used === this.#table.rows) return row;
    this.#used += 1;
    return this.#used - 1;
  }

  #release(row: number): void {
    this.#table.release(row);
    this.#free.push(row);
  }

  #begin(): void {
    const { connection, worker, leaseMs, maxBlockMs, logger } = this.#options;
    if (this.#begun || this.#closed || maxBlockMs === 0) return;
    this.#begun = true;
    const { memory } = this.#table;
    this.#table.beat();
    let settings: CloneableSettings;
    try {
      settings = cloneableSettings(connection.client);
    } catch (error) {
      this.#failed(`the settings of the connection cannot be given to one: ${messageOf(error)}`);
      return;
    }
    try {
      const loadAfterMs = leaseMs < LONG_LEASE_MS ? 0 : beatMs(leaseMs);
      const credential = connection.credentials?.latest;
      const order: RenewalOrder = {
        ...{ settings, credential, memory, worker, leaseMs, maxBlockMs, loadAfterMs },
      };
      this.#thread = new Thread(RENEWAL_THREAD, {
        eval: true,
        workerData: order,
        resourceLimits: LIMITS,
        name: 'piecework-renewal',
      });
    } catch (error) {
      this.#failed(`it cannot be started: ${messageOf(error)}`);
      return;
    }
    const thread = this.#thread;
    const stop = connection.credentials?.onAnswer((known) => thread.postMessage(known));
    if (stop) thread.once('exit', stop);
    thread.on('message', ({ down }: RenewalNews) => {
      if (down === undefined) {
        // It connects, and cannot call a function of this thread. If that fails, it tries again.
        connection.credentials?.get().catch(() => {});
        return;
      }
      if (down !== '' && this.#down === '') logger.warn({ why: down }, 'renewal thread cut off');
      this.#down = down;
    });
    this.#thread.on('error', (error) => this.#failed(messageOf(error)));
    this.#thread.on('exit', () => this.#failed('it ended'));
    this.#thread.unref();
    this.#beats = setInterval(() => this.#table.beat(), Math.min(BEAT_MS, beatMs(leaseMs)));
    this.#beats.unref();
  }

  #failed(why: string): void {
    clearInterval(this.#beats);
    if (this.#closed || this.#down.startsWith('no thread')) return;
    this.#down = `no thread: ${why}`;
    this.#options.logger.warn(
      { why },
      'no renewal thread: a handler that blocks the event loop for the length of a lease loses it',
    );
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
