import { Counter, Gauge, type Histogram, type Registry } from 'prom-client';
import type { Definition } from '../definitions/definition.js';
import type { Distribution } from './distribution.js';

export type Labels = Readonly<Record<string, string>>;
/** What a metric has now, by its labels. */
export type Read<Value> = () => Iterable<readonly [Labels, Value]>;

interface HistogramValue {
  readonly labels: Labels;
  readonly value: number;
  readonly metricName: string;
}

const configured = ({ name, help, labels }: Definition, registry: Registry) => ({
  ...{ name, help, labelNames: [...labels], registers: [registry] },
});

/** A counter whose values are read when somebody scrapes. */
export function counterOf(definition: Definition, registry: Registry, read: Read<number>): void {
  new Counter({
    ...configured(definition, registry),
    collect() {
      this.reset();
      for (const [labels, value] of read()) this.inc(labels, value);
    },
  });
}

/** A gauge, in the same way. */
export function gaugeOf(definition: Definition, registry: Registry, read: Read<number>): void {
  new Gauge({
    ...configured(definition, registry),
    collect() {
      this.reset();
      for (const [labels, value] of read()) this.set(labels, value);
    },
  });
}

/**
 * A histogram, in the same way. Those of prom-client can only be filled value by value. So this is a metric of our own,
 * with what a registry asks of one.
 */
export function histogramOf(
  definition: Definition,
  registry: Registry,
  read: Read<Distribution>,
): void {
  const { name, help, type } = definition;
  const about = { name, help, type, aggregator: 'sum' };
  const values = () => [...read()].flatMap(([labels, one]) => valuesOf(name, labels, one));
  const metric = { ...about, get: async () => ({ ...about, values: values() }), reset: () => {} };
  registry.registerMetric(metric as unknown as Histogram);
}

/** As prom-client writes them: the counts of all smaller buckets are in each. */
function valuesOf(name: string, labels: Labels, distribution: Distribution): HistogramValue[] {
  const { bounds, counts, sum } = distribution;
  let count = 0;
  const buckets = counts.map((n, i) => {
    count += n;
    const le = i < bounds.length ? String(bounds[i]) : '+Inf';
    return { labels: { le, ...labels }, value: count, metricName: `${name}_bucket` };
  });
  return [
    ...buckets,
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: count, metricName: `${name}_count` },
  ];
}
