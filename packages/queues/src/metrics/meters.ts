import { checkOptions, safely } from '@piecework/protocol';
import pTimeout from 'p-timeout';
import { Graphite } from './graphite.js';
import {
  type MeteredKind,
  type MeteredRate,
  type MetersOptions,
  type MetersReading,
  metersOptions,
  type Tally,
} from './meters-options.js';
import type { MetricsSink } from './metrics-sink.js';
import { openStatsd } from './statsd.js';

export interface MeterSource {
  readonly name: string;
  readonly tally: () => Tally;
  readonly gauges: () => Promise<{ readonly pending: number; readonly running: number }>;
}

/** `close` waits this long for the last reading, in ms. */
const LAST_MS = 1_000;

const KINDS = ['added', 'pulled', 'completed', 'failed'] as const;

/** Reads a source at intervals until it is closed. Errors never reach the code that is metered. */
export class Meters implements AsyncDisposable {
  readonly #source: MeterSource;
  readonly #sinks: readonly MetricsSink[];
  readonly #onReading: (reading: MetersReading) => void;
  readonly #onError: (error: unknown) => void;
  readonly #onClose: () => void;
  readonly #timer: NodeJS.Timeout;
  #last: { readonly tally: Tally; readonly atMs: number };
  #reading: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  private constructor(
    source: MeterSource,
    { everyMs, onReading }: MetersOptions & { everyMs: number },
    parts: {
      sinks: readonly MetricsSink[];
      onError: (error: unknown) => void;
      onClose: () => void;
    },
  ) {
    this.#source = source;
    this.#sinks = parts.sinks;
    this.#onError = parts.onError;
    this.#onReading = safely(onReading, this.#onError);
    this.#onClose = parts.onClose;
    this.#last = { tally: source.tally(), atMs: performance.now() };
    this.#timer = setInterval(() => void this.#read(), everyMs);
    this.#timer.unref();
  }

  /** @internal @throws InvalidOptionError, also for `statsd` without the package `hot-shots` */
  static async start(
    source: MeterSource,
    options: MetersOptions,
    onClose: () => void = () => {},
  ): Promise<Meters> {
    const checked = checkOptions<MetersOptions & { everyMs: number }>(metersOptions, options);
    const { graphite, statsd } = checked;
    const onError = safely(checked.onError);
    const prefix = `piecework.ids.${source.name.replace(/[^A-Za-z0-9_-]/g, '_')}`;
    const sinks: MetricsSink[] = [];
    // StatsD first: it throws if its package is missing, and Graphite opens a socket.
    if (statsd) sinks.push(await openStatsd({ prefix, ...statsd }, onError));
    if (graphite) sinks.push(new Graphite({ prefix, ...graphite }, onError));
    return new Meters(source, checked, { sinks, onError, onClose });
  }

  /** Takes a last reading and sends what can be sent within a second. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    clearInterval(this.#timer);
    this.#onClose();
    await pTimeout(this.#read(), { milliseconds: LAST_MS, message: false });
    await Promise.all(this.#sinks.map((sink) => sink.close()));
  }

  /** One reading at a time: with a slow Redis there are fewer. */
  async #read(): Promise<void> {
    if (this.#reading) return this.#reading;
    this.#reading = this.#take().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #take(): Promise<void> {
    const gauges = await this.#source.gauges().catch((error: unknown) => {
      this.#onError(error);
      return undefined;
    });
    const tally = this.#source.tally();
    const atMs = performance.now();
    const seconds = Math.max(1, atMs - this.#last.atMs) / 1_000;
    const rates = Object.fromEntries(
      KINDS.map((kind) => {
        const fresh = tally[kind] - this.#last.tally[kind];
        return [kind, { count: tally[kind], fresh, perSecond: fresh / seconds }];
      }),
    ) as Record<MeteredKind, MeteredRate>;
    this.#last = { tally, atMs };
    const shown = gauges && { pending: gauges.pending, running: gauges.running };
    const reading: MetersReading = { at: Date.now(), rates, gauges: shown };
    for (const sink of this.#sinks) sink.send(reading);
    this.#onReading(reading);
  }
}
