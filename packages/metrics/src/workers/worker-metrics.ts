import type { MeasuredWorker, Meter, Metrics } from 'piecework';
import { Registry } from 'prom-client';
import type { Snapshot } from '../definitions/snapshot.js';
import {
  workerDefinitions as defined,
  processDefinitions as ofProcess,
} from '../definitions/worker-definitions.js';
import { counterOf, gaugeOf, histogramOf, type Labels } from './tallied-metrics.js';
import { freshNames, QueueTally, type TaskTally } from './tallies.js';

export interface WorkerMetricsOptions {
  /** The registry of your program, of prom-client; the metrics are added to it. @default one of its own */
  readonly registry?: Registry | undefined;
}

/**
 * What the workers of this process measure, for Prometheus; docs/metrics.md lists it.
 *
 * ```ts
 * const metrics = new WorkerMetrics();
 * const worker = new Worker({ redis, handler, metrics });
 * await using server = await serveHealth(() => worker.health(), { port: 8080, metrics });
 * ```
 *
 * One object may watch any number of workers, of any queues. Its counters go on when a worker is closed.
 */
export class WorkerMetrics implements Metrics {
  readonly registry: Registry;
  readonly #queues = new Map<string, QueueTally>();
  readonly #workers = new Set<MeasuredWorker>();
  readonly #names = freshNames();

  constructor({ registry }: WorkerMetricsOptions = {}) {
    this.registry = registry ?? new Registry();
    this.#register();
    if (!registry) this.#registerProcess();
  }

  /** Called by a worker that has this object as its `metrics`. */
  watch(worker: MeasuredWorker): Meter {
    const { queue } = worker.health();
    const tally = this.#queues.get(queue) ?? new QueueTally(this.#names);
    this.#queues.set(queue, tally);
    this.#workers.add(worker);
    worker.on('leaseLost', () => {
      tally.leasesLost += 1;
    });
    worker.on('reclaimed', ({ count }) => {
      tally.reclaimed += count;
    });
    worker.on('error', () => {
      tally.errors += 1;
    });
    worker.on('reconnected', () => {
      tally.reconnects += 1;
    });
    return tally;
  }

  /** For the header of an answer to Prometheus. */
  get contentType(): string {
    return this.registry.contentType;
  }

  /** The page that Prometheus reads. */
  text(): Promise<string> {
    return this.registry.metrics();
  }

  /** For `FleetMetrics` of another process. */
  snapshot(): Promise<Snapshot> {
    return this.registry.getMetricsAsJSON();
  }

  #register(): void {
    const { registry } = this;
    histogramOf(defined.handlerTime, registry, () => this.#tasks((task) => task.handlers));
    histogramOf(defined.waitingTime, registry, () => this.#tasks((task) => task.waiting));
    histogramOf(defined.requestTime, registry, () =>
      this.#ofTasks((task) => [...task.requests].map(([outcome, one]) => [{ outcome }, one])),
    );
    histogramOf(defined.settleTime, registry, () => this.#each(({ settles }) => settles));
    counterOf(defined.attempts, registry, () =>
      this.#ofTasks(({ ends }) => Object.entries(ends).map(([outcome, n]) => [{ outcome }, n])),
    );
    counterOf(defined.failures, registry, () =>
      this.#ofTasks(({ failures }) => [...failures].map(([error, n]) => [{ error }, n])),
    );
    counterOf(defined.usage, registry, () =>
      this.#ofTasks(({ usage }) => [...usage].map(([name, n]) => [{ name }, n])),
    );
    for (const name of ['leasesLost', 'reclaimed', 'stalls', 'errors', 'reconnects'] as const)
      counterOf(defined[name], registry, () => this.#each((tally) => tally[name]));
    gaugeOf(defined.slots, registry, () => this.#now().map(([of, { slots }]) => [of, slots]));
    gaugeOf(defined.running, registry, () => this.#now().map(([of, { running }]) => [of, running]));
    gaugeOf(defined.workers, registry, () =>
      this.#now().flatMap(([of, { ready, unready }]) => [
        [{ ...of, ready: 'true' }, ready],
        [{ ...of, ready: 'false' }, unready],
      ]),
    );
  }

  #registerProcess(): void {
    counterOf(ofProcess.cpu, this.registry, () => {
      const { user, system } = process.cpuUsage();
      return [[{}, (user + system) / 1e6]];
    });
    gaugeOf(ofProcess.memory, this.registry, () => [[{}, process.memoryUsage.rss()]]);
  }

  *#each<Value>(of: (tally: QueueTally) => Value): Generator<readonly [Labels, Value]> {
    for (const [queue, tally] of this.#queues) yield [{ queue }, of(tally)];
  }

  #tasks<Value>(of: (tally: TaskTally) => Value): Iterable<readonly [Labels, Value]> {
    return this.#ofTasks((task) => [[{}, of(task)]]);
  }

  *#ofTasks<Value>(
    of: (tally: TaskTally) => readonly (readonly [Labels, Value])[],
  ): Generator<readonly [Labels, Value]> {
    for (const [queue, { tasks }] of this.#queues)
      for (const [task, tally] of tasks)
        for (const [labels, value] of of(tally)) yield [{ queue, task, ...labels }, value];
  }

  /** The workers that are not closed, by their queue. */
  #now(): (readonly [Labels, Fleet])[] {
    const found = new Map<string, Fleet>();
    for (const queue of this.#queues.keys())
      found.set(queue, { slots: 0, running: 0, ready: 0, unready: 0 });
    for (const worker of this.#workers) {
      const { state, queue, concurrency, running, ready } = worker.health();
      const fleet = found.get(queue);
      if (state === 'closed' || !fleet) {
        this.#workers.delete(worker);
        continue;
      }
      fleet.slots += concurrency;
      fleet.running += running;
      fleet[ready ? 'ready' : 'unready'] += 1;
    }
    return [...found].map(([queue, fleet]) => [{ queue }, fleet]);
  }
}

interface Fleet {
  slots: number;
  running: number;
  ready: number;
  unready: number;
}
