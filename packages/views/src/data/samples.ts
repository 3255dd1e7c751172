import type { ChartView, Point } from '../shape/views.js';

/** Most points of a chart. */
const MOST = 600;

/** A chart as its source has it. */
export type Chart = Omit<ChartView, 'begins' | 'whole'>;

/** What was seen while somebody looked: the last ten minutes, a point each second. */
export class Samples {
  readonly #points: Point[] = [];

  add(point: Point): void {
    const last = this.#points.at(-1);
    if (last && point.at - last.at < 500) return;
    this.#points.push(point);
    if (this.#points.length > MOST) this.#points.shift();
  }

  get points(): readonly Point[] {
    return this.#points;
  }

  clear(): void {
    this.#points.length = 0;
  }
}
