/** A metric as Prometheus knows it. docs/metrics.md is written from these. */
export interface Definition {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** One sentence, on the page that Prometheus reads. */
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds of the buckets of a histogram, in the unit of its name. */
  readonly buckets?: readonly number[];
  /** For docs/metrics.md alone. */
  readonly note?: string;
}

/** What a label is called where its own names are too many. */
export const OTHER = 'other';
