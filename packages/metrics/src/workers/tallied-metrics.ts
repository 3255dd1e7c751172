import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
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

/** A histogram, in the same way. Prom-client has no other means to fill one than to observe each value. */
export function histogramOf(
  definition: Definition,
  registry: Registry,
  read: Read<Distribution>,
): void {
  const buckets = [...(definition.buckets ?? [])];
  const histogram = new Histogram({ ...configured(definition, registry), buckets });
  const { name } = definition;
  const get = histogram.get.bind(histogram);
  histogram.get = async () => {
    const values = [...read()].flatMap(([labels, one]) => valuesOf(name, labels, one));
    return { ...(await get()), values };
  };
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
