import { setTimeout as wait } from 'node:timers/promises';
import { isSilentWorker } from '@piecework/protocol/contract';
import type { Admin, QueueCounts, RegisteredWorker } from 'piecework';
import { TimeoutError } from 'piecework';
import { handlerSeconds } from './handler-time.js';
import { type OpenRequest, OpenRequests } from './open-requests.js';

/** Whoever asks sooner receives what was read last, in ms. */
const EVERY_MS = 1_000;
/** A read that takes longer fails: a scrape has ten seconds by default. */
const LONGEST_MS = 5_000;
/** How far back the time of handlers is looked for, in ms. */
const HISTORY_MS = 600_000;

/** What is read of a queue: `pw.admin`, or an `Admin`. */
export type ReadQueue = Pick<Admin, 'counts' | 'workers' | 'history' | 'list'>;

/** The workers of a queue. */
export interface FleetFigures {
  /** Neither draining nor unready. */
  readonly alive: number;
  readonly draining: number;
  /** They report that they take no work. */
  readonly unready: number;
  /** They may have ended. */
  readonly silent: number;
  /** Slots of those that are alive or draining, with those in use of unready ones; and what runs. */
  readonly slots: number;
  readonly running: number;
  readonly stuck: number;
}

/** What is known of a queue at one moment. */
export interface QueueFigures {
  readonly counts: QueueCounts;
  readonly fleet: FleetFigures;
  readonly requests: readonly OpenRequest[];
  /** Age of the oldest figure among these, in ms. */
  readonly ageMs: number;
  /** Mean time of a handler. */
  readonly handlerSeconds: number;
}

/** Reads a queue when somebody asks, at most once a second. What one read costs Redis is bounded (OpenRequests). */
export class QueueReader {
  readonly #queue: ReadQueue;
  readonly #requests: OpenRequests;
  #last: Promise<QueueFigures> | undefined;
  #begunAt = 0;
  #isReading = false;

  constructor(queue: ReadQueue) {
    this.#queue = queue;
    this.#requests = new OpenRequests(() => queue.list({ state: 'open' }));
  }

  /** @throws ConnectionError, ServerError · TimeoutError after five seconds */
  async read(): Promise<QueueFigures> {
    const now = performance.now();
    if (!this.#last || (!this.#isReading && now - this.#begunAt >= EVERY_MS)) {
      this.#begunAt = now;
      this.#isReading = true;
      this.#last = this.#read().finally(() => {
        this.#isReading = false;
      });
      // Whoever waits receives the error.
      this.#last.catch(() => {});
    }
    const patience = new AbortController();
    const late = wait(LONGEST_MS, undefined, { signal: patience.signal, ref: false }).then(() => {
      throw new TimeoutError('the read of the queue', LONGEST_MS);
    });
    late.catch(() => {});
    return await Promise.race([this.#last, late]).finally(() => patience.abort());
  }

  async #read(): Promise<QueueFigures> {
    const [counts, workers, history] = await Promise.all([
      this.#queue.counts(),
      this.#queue.workers(),
      this.#queue.history({ sinceMs: HISTORY_MS }),
    ]);
    if (counts.open === 0) this.#requests.clear();
    else await this.#requests.step();
    return {
      ...{ counts, fleet: fleetOf(workers), requests: [...this.#requests.all] },
      ageMs: this.#requests.ageMs,
      handlerSeconds: handlerSeconds(history, workers),
    };
  }
}

function fleetOf(workers: readonly RegisteredWorker[], now = Date.now()): FleetFigures {
  const seen = workers.filter((worker) => !isSilentWorker(worker, workers.length, now));
  const draining = seen.filter((worker) => worker.draining);
  const unready = seen.filter((worker) => !worker.draining && !worker.ready);
  const sum = (of: (worker: RegisteredWorker) => number) => seen.reduce((n, one) => n + of(one), 0);
  return {
    alive: seen.length - draining.length - unready.length,
    draining: draining.length,
    unready: unready.length,
    silent: workers.length - seen.length,
    slots: sum((one) => (unready.includes(one) ? one.running + one.leftovers : one.concurrency)),
    running: sum(({ running }) => running),
    stuck: sum(({ leftovers }) => leftovers),
  };
}
