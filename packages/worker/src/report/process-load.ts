import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import type { RegisteredWorker } from '@piecework/protocol';

/** How often the event loop is checked, in ms. */
const CHECK_MS = 100;
/** A measurement is used for so long, in ms: workers report several times a second. */
const LEAST_MS = 1_000;

type Load = Pick<RegisteredWorker, 'eventLoopDelayMs' | 'rssBytes'>;

/** Measures the process, while any worker in it runs. */
class Measurement {
  readonly #delays: IntervalHistogram = monitorEventLoopDelay({ resolution: CHECK_MS });
  #since = performance.now();
  #load: Load = { rssBytes: process.memoryUsage.rss() };

  constructor() {
    this.#delays.enable();
  }

  close(): void {
    this.#delays.disable();
  }

  get now(): Load {
    const now = performance.now();
    if (now - this.#since < LEAST_MS) return this.#load;
    this.#since = now;
    const rssBytes = process.memoryUsage.rss();
    // It contains the time until the check was due. Without a check since then, the event loop is still late.
    const lateMs = this.#delays.percentile(99) / 1e6 - CHECK_MS;
    const eventLoopDelayMs =
      this.#delays.count === 0 ? this.#load.eventLoopDelayMs : Math.max(0, Math.round(lateMs));
    this.#load = eventLoopDelayMs === undefined ? { rssBytes } : { eventLoopDelayMs, rssBytes };
    // Clears a table of some hundred kilobytes.
    if (this.#delays.count > 0) this.#delays.reset();
    return this.#load;
  }
}

/** One for all workers of the process, as they share its event loop and its memory. */
let measurement: Measurement | undefined;
let workers = 0;

/** Memory of this process, and the delay of its event loop lately. new → started → closed */
export class ProcessLoad {
  #state: 'new' | 'started' | 'closed' = 'new';

  start(): void {
    if (this.#state !== 'new') return;
    this.#state = 'started';
    workers += 1;
    measurement ??= new Measurement();
  }

  /** Measures nothing more for this worker. */
  close(): void {
    const wasCounted = this.#state === 'started';
    this.#state = 'closed';
    if (!wasCounted) return;
    workers -= 1;
    if (workers > 0) return;
    measurement?.close();
    measurement = undefined;
  }

  get now(): Load {
    return measurement?.now ?? { rssBytes: process.memoryUsage.rss() };
  }
}
