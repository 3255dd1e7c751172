/**
 * How often values fell into which bucket. The `observe` of prom-client builds and hashes an object of labels, which
 * takes about as long as everything else that a worker does for a short sub-request (docs/decisions/0060).
 */
export class Distribution {
  readonly bounds: readonly number[];
  /** One for each bound, not added up, and one for what is above all. */
  readonly counts: number[];
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    const { bounds, counts } = this;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket += 1;
    counts[bucket] = (counts[bucket] as number) + 1;
    this.sum += value;
  }
}
