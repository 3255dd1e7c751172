import { max, median, min } from 'simple-statistics';
import type { SpeedReport } from './run-order.js';
import type { Entrant, Measured } from './series.js';

export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
  /** Run by run. */
  readonly each: readonly number[];
}

/** Medians over the runs of one entrant; all but the rate are per finished sub-request. */
export interface Summary {
  readonly entrant: Entrant;
  /** Sub-requests that each run finished, when the budget cut one off. */
  readonly cutOff: number[] | undefined;
  readonly perSecond: Spread;
  readonly redisMicros: Spread;
  readonly clientMicros: Spread;
  readonly sent: Spread;
  readonly commands: Spread;
  readonly wireBytes: Spread;
  readonly waitingBytes: number;
}

export function summarise({ entrant, runs, waitingBytes }: Measured): Summary {
  const each = (figure: (run: SpeedReport) => number) => spread(runs.map(figure));
  const perItem = (figure: (run: SpeedReport) => number) =>
    each((run) => figure(run) / run.finished);
  return {
    entrant,
    cutOff: runs.every(({ inTime }) => inTime) ? undefined : runs.map(({ finished }) => finished),
    perSecond: each((run) => (run.finished / run.elapsedMs) * 1_000),
    redisMicros: perItem((run) => run.redis.cpuMicros),
    clientMicros: perItem((run) => run.clientCpuMicros),
    sent: perItem((run) => run.sent),
    commands: perItem((run) => run.redis.commands),
    wireBytes: perItem((run) => run.redis.wireBytes),
    waitingBytes,
  };
}

function spread(values: number[]): Spread {
  return { median: median(values), least: min(values), most: max(values), each: values };
}

/** A note for each entrant whose runs were cut off by the time budget. */
export function cutOffNotes(summaries: readonly Summary[], budgetMs: number): string[] {
  return summaries
    .filter(({ cutOff }) => cutOff)
    .map(
      ({ entrant, cutOff }) =>
        `* ${entrant.title} did not end within ${budgetMs} ms; its figures are of what it had handled: ${cutOff?.join(', ')}.`,
    );
}
