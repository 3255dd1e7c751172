import { Counter, Gauge, Registry } from 'prom-client';
import type { Definition } from '../definitions/definition.js';
import { queueDefinitions as defined } from '../definitions/queue-definitions.js';
import type { OpenRequest } from './open-requests.js';
import { type QueueFigures, QueueReader, type ReadQueue } from './queue-reader.js';
import { workOf } from './work.js';

/** Priorities are 0 to 99. */
const BANDS = 10;
const BAND = 10;

export interface QueueMetricsOptions {
  /** The queues by name: `{ req: pw.admin }`. */
  readonly queues: Readonly<Record<string, ReadQueue>>;
  /** Within how many seconds the work that is there should be done. @default 60 */
  readonly targetSeconds?: number | undefined;
  /** Called when a queue cannot be read. @default nothing is called */
  readonly onError?: ((error: unknown, queue: string) => void) | undefined;
  /** Called when a queue is read for the first time after `onError`. @default nothing is called */
  readonly onRecovery?: ((queue: string) => void) | undefined;
}

/** The answer to a scaler, as JSON. */
export interface Scale {
  readonly queue: string;
  /** How many slots the fleet needs: the number to scale by. */
  readonly neededSlots: number;
  readonly workSlots: number;
  readonly workSeconds: number;
  readonly handlerSeconds: number;
  readonly targetSeconds: number;
  readonly ready: number;
  readonly running: number;
  /** Slots that there are. */
  readonly slots: number;
}

/** What is asked for. */
export interface ScaleQuestion {
  readonly targetSeconds?: number | undefined;
  /** The tasks that the fleet serves. @default all */
  readonly tasks?: readonly string[] | undefined;
}

export const TARGET_SECONDS = 60;

/**
 * What is read of queues, for Prometheus and for scalers; docs/metrics.md lists it. Reads when it is asked.
 *
 * ```ts
 * const metrics = new QueueMetrics({ queues: { req: pw.admin } });
 * app.get('/metrics', async (_, reply) => reply.type(metrics.contentType).send(await metrics.text()));
 * ```
 */
export class QueueMetrics {
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  readonly queues: readonly string[];
  readonly #readers: ReadonlyMap<string, QueueReader>;
  readonly #targetSeconds: number;
  readonly #onError: (error: unknown, queue: string) => void;
  readonly #onRecovery: (queue: string) => void;
  /** Queues that could not be read the last time. */
  readonly #unread = new Set<string>();
  #built: { readonly of: readonly Figures[]; readonly page: Promise<string> } | undefined;

  constructor(options: QueueMetricsOptions) {
    const { queues, targetSeconds = TARGET_SECONDS, onError, onRecovery } = options;
    this.#readers = new Map(
      Object.entries(queues).map(([name, queue]) => [name, new QueueReader(queue)]),
    );
    this.queues = [...this.#readers.keys()];
    this.#targetSeconds = targetSeconds;
    this.#onError = onError ?? (() => {});
    this.#onRecovery = onRecovery ?? (() => {});
  }

  /**
   * The page that Prometheus reads. A queue that cannot be read is `piecework_queue_up 0`. All who ask before the queues
   * are read again receive the same page.
   */
  async text(): Promise<string> {
    const readers = [...this.#readers];
    const of = await Promise.all(
      readers.map(([queue, reader]) => this.#read(queue, reader).catch(() => undefined)),
    );
    if (!this.#built?.of.every((one, i) => one === of[i]))
      this.#built = { of, page: this.#page(of) };
    return this.#built.page;
  }

  #page(of: readonly Figures[]): Promise<string> {
    const registry = new Registry();
    const page = new Page(registry);
    for (const [i, queue] of this.queues.entries()) page.add(queue, of[i], this.#targetSeconds);
    return registry.metrics();
  }

  /** Why queues cannot be read now; empty: all can. */
  async problems(): Promise<string[]> {
    const found = [...this.#readers].map(([queue, reader]) =>
      this.#read(queue, reader).then(
        () => undefined,
        (error: Error) => `${queue}: ${error.message}`,
      ),
    );
    return (await Promise.all(found)).filter((one) => one !== undefined);
  }

  /**
   * How much work waits, for a scaler. Undefined: there is no such queue here.
   * @throws ConnectionError, ServerError, TimeoutError
   */
  async scale(queue: string, question: ScaleQuestion = {}): Promise<Scale | undefined> {
    const reader = this.#readers.get(queue);
    if (!reader) return undefined;
    const { targetSeconds = this.#targetSeconds, tasks } = question;
    const figures = await this.#read(queue, reader);
    const { handlerSeconds, counts, fleet } = figures;
    const requests = figures.requests.filter(({ task }) => tasks?.includes(task) ?? true);
    const isPaused = counts.pausedUntil !== undefined;
    const work = workOf(requests, { handlerSeconds, targetSeconds, isPaused });
    return {
      ...{ queue, neededSlots: work.neededSlots, workSlots: work.workSlots },
      ...{ workSeconds: work.workSeconds, handlerSeconds, targetSeconds },
      ready: sum(requests, ({ ready }) => ready),
      running: sum(requests, ({ running }) => running),
      slots: fleet.slots,
    };
  }

  async #read(queue: string, reader: QueueReader): Promise<QueueFigures> {
    try {
      const figures = await reader.read();
      if (this.#unread.delete(queue)) this.#onRecovery(queue);
      return figures;
    } catch (error) {
      this.#unread.add(queue);
      this.#onError(error, queue);
      throw error;
    }
  }
}

/** undefined: the queue could not be read. */
type Figures = QueueFigures | undefined;

/** The metrics of one scrape. */
class Page {
  readonly #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
    // All of them, also those without a value: a page says what it could have.
    for (const definition of Object.values<Definition>(defined)) {
      const { name, type, help, labels } = definition;
      const configuration = { name, help, labelNames: [...labels], registers: [registry] };
      if (type === 'counter') new Counter(configuration);
      else new Gauge(configuration);
    }
  }

  add(queue: string, figures: Figures, targetSeconds: number): void {
    this.#set(defined.up, { queue }, figures ? 1 : 0);
    if (!figures) return;
    const { counts, fleet, requests, handlerSeconds, ageMs } = figures;
    const isPaused = counts.pausedUntil !== undefined;
    this.#set(defined.open, { queue }, counts.open);
    this.#set(defined.parked, { queue }, counts.parked);
    for (const [outcome, n] of Object.entries(counts.ended))
      this.#set(defined.ended, { queue, outcome }, n);
    const ready = Array<number>(BANDS).fill(0);
    for (const one of requests) {
      const band = Math.floor(one.priority / BAND);
      ready[band] = (ready[band] ?? 0) + readyOf(one);
    }
    for (const [band, n] of ready.entries())
      this.#set(
        defined.ready,
        { queue, priorities: `${band * BAND}-${band * BAND + BAND - 1}` },
        n,
      );
    const running = sum(requests, (one) => one.running);
    const delayed = sum(requests, (one) => one.delayed + one.ready - readyOf(one));
    this.#set(defined.running, { queue }, running);
    this.#set(defined.delayed, { queue }, delayed);
    this.#set(
      defined.backlog,
      { queue },
      running + sum(requests, (one) => one.ready + one.delayed),
    );
    this.#set(defined.oldest, { queue }, oldestSeconds(requests));
    this.#set(defined.paused, { queue }, isPaused ? 1 : 0);
    for (const state of ['alive', 'draining', 'unready', 'silent'] as const)
      this.#set(defined.workers, { queue, state }, fleet[state]);
    this.#set(defined.slots, { queue }, fleet.slots);
    this.#set(defined.stuck, { queue }, fleet.stuck);
    this.#set(defined.handlerTime, { queue }, handlerSeconds);
    const work = workOf(requests, { handlerSeconds, targetSeconds, isPaused });
    this.#set(defined.workSlots, { queue }, work.workSlots);
    this.#set(defined.workSeconds, { queue }, work.workSeconds);
    this.#set(defined.neededSlots, { queue }, work.neededSlots);
    this.#set(defined.readAge, { queue }, ageMs / 1_000);
  }

  #set({ name }: Definition, labels: Readonly<Record<string, string>>, value: number): void {
    const metric = this.#registry.getSingleMetric(name);
    if (metric instanceof Counter) metric.inc(labels, value);
    else if (metric instanceof Gauge) metric.set(labels, value);
  }
}

/** Ready, and in no request that waits for a time or a resume. */
const readyOf = ({ ready, rests }: OpenRequest) => (rests ? 0 : ready);

const sum = (requests: readonly OpenRequest[], of: (request: OpenRequest) => number) =>
  requests.reduce((n, one) => n + of(one), 0);

function oldestSeconds(requests: readonly OpenRequest[]): number {
  const now = performance.now();
  let oldest = 0;
  for (const one of requests)
    if (readyOf(one) > 0 && one.running === 0)
      oldest = Math.max(oldest, one.readAt - one.createdAt + now - one.keptAt);
  return oldest / 1_000;
}
