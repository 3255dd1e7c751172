import parse from 'parse-prometheus-text-format';

/** One series of a page: the value of a counter or a gauge, or a whole histogram. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly count: number;
  readonly sum: number;
}

interface Parsed {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly metrics?: readonly {
    readonly labels?: Record<string, string>;
    readonly value?: string;
    readonly count?: string;
    readonly sum?: string;
  }[];
}

/** A page for Prometheus, read by a parser that is not ours. */
export class PrometheusPage {
  readonly #families: readonly Parsed[];

  /** @throws when it is no such page */
  constructor(text: string) {
    this.#families = parse(text) as readonly Parsed[];
  }

  get families(): readonly Pick<Parsed, 'name' | 'help' | 'type'>[] {
    return this.#families;
  }

  /** The series of a metric that have these labels. */
  all(name: string, labels: Readonly<Record<string, string>> = {}): Sample[] {
    const family = this.#families.find((one) => one.name === name);
    return (family?.metrics ?? [])
      .map((one) => ({
        labels: one.labels ?? {},
        value: Number(one.value),
        count: Number(one.count),
        sum: Number(one.sum),
      }))
      .filter((one) => Object.entries(labels).every(([label, is]) => one.labels[label] === is));
  }

  /** The only one. @throws when there are none or several */
  one(name: string, labels: Readonly<Record<string, string>> = {}): Sample {
    const found = this.all(name, labels);
    if (found.length !== 1) throw new Error(`${found.length} of ${name} ${JSON.stringify(labels)}`);
    return found[0] as Sample;
  }
}
