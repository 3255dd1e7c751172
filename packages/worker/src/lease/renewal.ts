import { Worker as Thread } from 'node:worker_threads';
import { type Client, cloneableSettings } from '@piecework/protocol';
import type { Logger } from 'pino';
import { RenewalTable } from './renewal-table.js';
import type { RenewalNews, RenewalOrder } from './renewal-thread.js';

/** What a second thread needs for itself, in MB; it keeps nothing but the rows. */
const LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 };
/** Beats are at most so far apart, in ms. */
const BEAT_MS = 250;

export interface RenewalOptions {
  readonly client: Client;
  /** Boot id of the worker. */
  readonly worker: string;
  readonly leaseMs: number;
  /** 0: no thread. */
  readonly maxBlockMs: number;
  /** How many requests may be held at once. */
  readonly rows: number;
  readonly logger: Logger;
}

/** Whether permits of one request are held, and what the thread did for them. */
export interface Holding {
  /** Called often; does something only when it changes. */
  set(held: boolean): void;
  /** When the thread asked for the last renewal it was granted, as performance.now(); -Infinity: never. */
  askedAt(): number;
  /** What was started now is within its time for `ms`; nobody renews for it beyond that but this loop. */
  runsFor(ms: number): void;
}

/**
 * Renews leases while a handler holds up the event loop: a thread with a connection of its own does
 * it as long as this loop was heard of within `maxBlockMs`. It starts with the first permits that
 * are held and ends with `stop`. Without it (settings that cannot be given to a thread, a thread
 * that died) all goes on, but a loop that is held up for a lease loses it; `down` says why.
 */
export class Renewal {
  readonly #options: RenewalOptions;
  readonly #table: RenewalTable;
  readonly #free: number[] = [];
  #used = 0;
  #thread: Thread | undefined;
  #beats: NodeJS.Timeout | undefined;
  #begun = false;
  #stopped = false;
  #down = '';

  constructor(options: RenewalOptions) {
    this.#options = options;
    this.#table = RenewalTable.of(options.maxBlockMs > 0 ? options.rows : 0);
  }

  /** Why there is no thread that could renew; '' when there is, or none is wanted. */
  get down(): string {
    return this.#down;
  }

  holding(id: string, generation: number): Holding {
    let row: number | undefined;
    let since = 0n;
    return {
      set: (held) => {
        if (held === (row !== undefined)) return;
        if (row !== undefined) {
          this.#release(row);
          row = undefined;
          return;
        }
        row = this.#claim();
        if (row === undefined) return;
        since = process.hrtime.bigint();
        this.#table.hold(row, id, generation);
      },
      runsFor: (ms) => {
        if (row === undefined) return;
        this.#table.bound(row, process.hrtime.bigint() + BigInt(ms) * 1_000_000n);
      },
      askedAt: () => {
        const asked = row === undefined ? 0n : this.#table.askedAt(row);
        if (asked < since || asked === 0n) return Number.NEGATIVE_INFINITY;
        return performance.now() - Number(process.hrtime.bigint() - asked) / 1e6;
      },
    };
  }

  /** Ends the thread and its connection, also when Redis does not answer. */
  async stop(): Promise<void> {
    this.#stopped = true;
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
    const { client, worker, leaseMs, maxBlockMs, logger } = this.#options;
    if (this.#begun || this.#stopped || maxBlockMs === 0) return;
    this.#begun = true;
    const { memory } = this.#table;
    this.#table.beat();
    try {
      const settings = cloneableSettings(client);
      const order: RenewalOrder = { settings, memory, worker, leaseMs, maxBlockMs };
      this.#thread = new Thread(new URL('./renewal-thread.js', import.meta.url), {
        workerData: order,
        resourceLimits: LIMITS,
        name: 'piecework-renewal',
      });
    } catch (error) {
      this.#fell(`the settings of the connection cannot be given to one: ${messageOf(error)}`);
      return;
    }
    this.#thread.on('message', ({ down }: RenewalNews) => {
      if (down !== '' && this.#down === '') logger.warn({ why: down }, 'renewal thread cut off');
      this.#down = down;
    });
    this.#thread.on('error', (error) => this.#fell(messageOf(error)));
    this.#thread.on('exit', () => this.#fell('it ended'));
    this.#thread.unref();
    this.#beats = setInterval(() => this.#table.beat(), Math.min(BEAT_MS, leaseMs / 12));
    this.#beats.unref();
  }

  #fell(why: string): void {
    clearInterval(this.#beats);
    if (this.#stopped || this.#down.startsWith('no thread')) return;
    this.#down = `no thread: ${why}`;
    this.#options.logger.warn(
      { why },
      'no renewal thread: a handler that holds up the event loop for a lease loses it',
    );
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
