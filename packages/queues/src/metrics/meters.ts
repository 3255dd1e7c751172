import { checkOptions, telling } from '@piecework/protocol';
import pTimeout from 'p-timeout';
import { Graphite } from './graphite.js';
import {
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

/** How long a close waits for its last reading, in ms. */
const LAST_MS = 1_000;

const KINDS = ['added', 'pulled', 'completed', 'failed'] as const;

/** Reads a source from time to time, until it is closed. Whatever goes wrong never reaches who is metered. */
export class Meters implements AsyncDisposable {
  readonly #source: MeterSource;
  readonly #sinks: readonly MetricsSink[];
  readonly #onReading: (reading: MetersReading) => void;
  readonly #tell: (error: unknown) => void;
  readonly #onClose: () => void;
  readonly #timer: NodeJS.Timeout;
  #last: { readonly tally: Tally; readonly atMs: number };
  #reading: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  private constructor(
    source: MeterSource,
    { everyMs, onReading }: MetersOptions & { everyMs: number },
    parts: { sinks: readonly MetricsSink[]; tell: (error: unknown) => void; onClose: () => void },
  ) {
    this.#source = source;
    this.#sinks = parts.sinks;
    this.#tell = parts.tell;
    this.#onReading = telling(onReading, this.#tell);
    this.#onClose = parts.onClose;
    this.#last = { tally: source.tally(), atMs: performance.now() };
    this.#timer = setInterval(() => void this.#read(), everyMs);
    this.#timer.unref();
  }

  /** @throws InvalidOptionError, also when `statsd` is asked for and `hot-shots` is not installed */
  static async start(
    source: MeterSource,
    options: MetersOptions,
    onClose: () => void = () => {},
  ): Promise<Meters> {
    const checked = checkOptions<MetersOptions & { everyMs: number }>(metersOptions, options);
    const { graphite, statsd, onError } = checked;
    const tell = telling(onError);
    const prefix = `piecework.ids.${source.name.replace(/[^A-Za-z0-9_-]/g, '_')}`;
    const sinks: MetricsSink[] = [];
    // First the one that may not be installed: the other opens a socket.
    if (statsd) sinks.push(await openStatsd({ prefix, ...statsd }, tell));
    if (graphite) sinks.push(new Graphite({ prefix, ...graphite }, tell));
    return new Meters(source, checked, { sinks, tell, onClose });
  }

  /** Takes a last reading, sends what can be sent within a moment, and ends. */
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

  /** One reading at a time: a slow Redis makes them fewer. */
  async #read(): Promise<void> {
    if (this.#reading) return this.#reading;
    this.#reading = this.#take().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #take(): Promise<void> {
    const gauges = await this.#source.gauges().catch((error: unknown) => {
      this.#tell(error);
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
    ) as Record<keyof Tally, MeteredRate>;
    this.#last = { tally, atMs };
    const shown = gauges && { pending: gauges.pending, running: gauges.running };
    const reading: MetersReading = { at: Date.now(), rates, gauges: shown };
    for (const sink of this.#sinks) sink.send(reading);
    this.#onReading(reading);
  }
}
