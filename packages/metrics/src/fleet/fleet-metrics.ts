import { AggregatorRegistry } from 'prom-client';
import type { Snapshot } from '../definitions/snapshot.js';

/**
 * The metrics of several processes as those of one: the sum of what each said last. Counters of processes that have
 * ended stay in it: otherwise the sum would fall, and Prometheus would take that for a restart of the whole fleet.
 */
export class FleetMetrics {
  readonly #present = new Map<number, Snapshot>();
  #past: Snapshot[] = [];
  /** One page at a time, as the past is added up in between. */
  #last: Promise<unknown> = Promise.resolve();

  /** What a process says now. */
  keep(pid: number, snapshot: Snapshot): void {
    this.#present.set(pid, snapshot);
  }

  /** A process has ended. What it counted after it last said something is lost. */
  ended(pid: number): void {
    const last = this.#present.get(pid);
    if (!last) return;
    this.#present.delete(pid);
    // Types are words, whatever their declaration says.
    this.#past.push(last.filter(({ type }) => String(type) !== 'gauge'));
  }

  get contentType(): string {
    return AggregatorRegistry.aggregate([]).contentType;
  }

  /** The page that Prometheus reads. */
  text(): Promise<string> {
    const page = this.#last.then(() => this.#text());
    this.#last = page.catch(() => {});
    return page;
  }

  async #text(): Promise<string> {
    const folded = this.#past;
    if (folded.length > 1) {
      const sum = await AggregatorRegistry.aggregate(folded).getMetricsAsJSON();
      this.#past = [sum, ...this.#past.filter((one) => !folded.includes(one))];
    }
    return AggregatorRegistry.aggregate([...this.#past, ...this.#present.values()]).metrics();
  }
}
