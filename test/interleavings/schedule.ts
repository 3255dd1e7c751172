import type { Fault, Trip } from './trip.js';

/*
 * A schedule: what the scheduler does other than the usual. The usual is that who came to the gate
 * first goes first, all goes well, and time passes only when nothing else is to do. So the history of
 * an empty schedule is the ordinary one, and a schedule is minimal when nothing of it can be left out.
 */

/** At this step: which of the possible ones goes (0: the usual one), and what becomes of it. */
export interface Deviation {
  readonly step: number;
  readonly pick: number;
  readonly fault?: Fault;
}

export interface Schedule {
  readonly world: string;
  readonly deviations: readonly Deviation[];
}

/** What is possible at a step: a trip that is carried out, or 'time' that passes to the next timer. */
export type Option = Trip | 'time';

export interface Decision {
  readonly pick: number;
  readonly fault?: Fault | undefined;
}

export interface Scheduler {
  decide(options: readonly Option[], step: number): Decision;
  /** Whether it may still decide for the unusual. */
  open(step: number): boolean;
}

/** Does as it is written. */
export function replay({ deviations }: Pick<Schedule, 'deviations'>): Scheduler {
  const at = new Map(deviations.map((one) => [one.step, one]));
  const last = Math.max(-1, ...at.keys());
  return {
    decide: (_, step) => at.get(step) ?? { pick: 0 },
    open: (step) => step <= last,
  };
}
