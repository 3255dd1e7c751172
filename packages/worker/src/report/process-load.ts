import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import type { RegisteredWorker } from '@piecework/protocol';

/** How often the event loop is checked, in ms. */
const CHECK_MS = 100;
/** A measurement lasts at least so long, in ms: a worker with shards reports to each of them. */
const LEAST_MS = 1_000;

/** Memory of this process, and the delay of its event loop since the last report. new → started → closed */
export class ProcessLoad {
  #delays: IntervalHistogram | undefined;
  #since = 0;
  #delayMs: number | undefined;

  start(): void {
    if (this.#delays) return;
    this.#delays = monitorEventLoopDelay({ resolution: CHECK_MS });
    this.#delays.enable();
    this.#since = performance.now();
  }

  /** Measures nothing more. */
  close(): void {
    this.#delays?.disable();
  }

  get now(): Pick<RegisteredWorker, 'eventLoopDelayMs' | 'rssBytes'> {
    this.#measure();
    const rssBytes = process.memoryUsage.rss();
    return {
      ...(this.#delayMs === undefined ? {} : { eventLoopDelayMs: this.#delayMs }),
      rssBytes,
    };
  }

  #measure(): void {
    const delays = this.#delays;
    if (!delays || delays.count === 0 || performance.now() - this.#since < LEAST_MS) return;
    // It contains the time until the check was due.
    this.#delayMs = Math.max(0, Math.round(delays.percentile(99) / 1e6 - CHECK_MS));
    delays.reset();
    this.#since = performance.now();
  }
}
