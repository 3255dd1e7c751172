import parse from 'parse-prometheus-text-format';

/** One series of a page: the value of a counter or a gauge, or the count and the sum of a histogram. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly count: number;
  readonly sum: number;
}

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
}

interface Parsed extends Family {
  readonly metrics?: readonly {
    readonly labels?: Record<string, string>;
    readonly value: string;
  }[];
}

/** A page for Prometheus, read by a parser that is not ours. */
export class PrometheusPage {
  readonly families: readonly Family[];
  readonly #samples = new Map<string, NonNullable<Parsed['metrics']>>();

  /** @throws when it is no such page */
  constructor(text: string) {
    this.families = parse(text) as readonly Family[];
    // The parser mixes the labels of a histogram: as lines without a type each has its own.
    const plain = parse(text.replaceAll(/^# (TYPE|HELP) .*$/gm, '')) as readonly Parsed[];
    for (const { name, metrics = [] } of plain)
      this.#samples.set(name, [...(this.#samples.get(name) ?? []), ...metrics]);
  }

  /** The series of a metric that have these labels. */
  all(name: string, labels: Readonly<Record<string, string>> = {}): Sample[] {
    const counts = this.#of(`${name}_count`, labels);
    if (counts.length === 0)
      return this.#of(name, labels).map((one) => ({ ...one, count: Number.NaN, sum: Number.NaN }));
    const sums = this.#of(`${name}_sum`, labels);
    return counts.map(({ labels: of, value: count }, i) => ({
      ...{ labels: of, value: Number.NaN, count, sum: sums[i]?.value ?? Number.NaN },
    }));
  }

  /** The only one. @throws when there are none or several */
  one(name: string, labels: Readonly<Record<string, string>> = {}): Sample {
    const found = this.all(name, labels);
    if (found.length !== 1) throw new Error(`${found.length} of ${name} ${JSON.stringify(labels)}`);
    return found[0] as Sample;
  }

  #of(name: string, labels: Readonly<Record<string, string>>) {
    return (this.#samples.get(name) ?? [])
      .map((one) => ({ labels: one.labels ?? {}, value: Number(one.value) }))
      .filter((one) => Object.entries(labels).every(([label, is]) => one.labels[label] === is));
  }
}
