import type { Chart, ChartView } from '@piecework/views';

/** Points of the last minutes may still change: workers report them late. */
const MAY_CHANGE_MS = 120_000;

/** What is new in a chart since it was asked last. Most rounds bring one point, of hundreds. */
export class ChartNews {
  readonly #read: () => Chart;
  #from = '';
  /** What was sent, by time: the points that may still change. */
  #sent = new Map<number, string>();
  #newest = 0;

  constructor(read: () => Chart) {
    this.#read = read;
  }

  /** All points, as JSON. */
  whole(): string {
    return this.#json(this.#read(), true);
  }

  /** As JSON; undefined: nothing is new. */
  next(): string | undefined {
    const chart = this.#read();
    const whole = chart.from !== this.#from;
    const since = whole ? -1 : this.#newest - MAY_CHANGE_MS;
    const sent = new Map<number, string>();
    const points = chart.points.filter((point) => {
      if (point.at <= since) return false;
      const text = JSON.stringify(point);
      sent.set(point.at, text);
      return whole || this.#sent.get(point.at) !== text;
    });
    this.#sent = sent;
    this.#from = chart.from;
    this.#newest = chart.points.at(-1)?.at ?? 0;
    return points.length > 0 || whole ? this.#json({ ...chart, points }, whole) : undefined;
  }

  #json(chart: Chart, whole: boolean): string {
    const begins = this.#read().points[0]?.at ?? 0;
    return JSON.stringify({ ...chart, begins, whole } satisfies ChartView);
  }
}
