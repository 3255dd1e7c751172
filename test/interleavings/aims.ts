import type { Decision, Option, Scheduler } from './schedule.js';
import { type Fault, titleOf } from './trip.js';

/*
 * Schedules for what chance would hardly find: some steps by name, in an order, with what befalls them.
 */

/** Holds whatever comes late. */
export const LATE = '(late)';

export interface Aim {
  /** How the title of the step begins. */
  readonly step: string;
  /** The how-manieth of these, since the aim before. @default 1 */
  readonly nth?: number;
  readonly fault?: Fault;
  /** Titles that begin so wait until then; LATE: all that come late. */
  readonly hold?: readonly string[];
}

/** Goes for the aims one after the other, and as usual otherwise. */
export function aimedScheduler(aims: readonly Aim[]): Scheduler {
  let left = [...aims];
  let seen = 0;
  return {
    open: () => left.length > 0,
    decide(options): Decision {
      const [aim] = left;
      if (!aim) return { pick: 0 };
      const title = (option: Option) => (option === 'time' ? option : titleOf(option));
      const { step, nth = 1, hold = [] } = aim;
      const held = (option: Option) =>
        option !== 'time' &&
        // Who is in nobody's way is not held up, as all others wait for him.
        (option.tags.length > 0 || option.kind === 'handler') &&
        hold.some((one) => (one === LATE ? option.patient : title(option).startsWith(one)));
      const free = (option: Option) => !held(option);
      const at = options.findIndex((option) => title(option).startsWith(step) && free(option));
      const pick = at >= 0 ? at : options.findIndex(free);
      if (pick !== at) return { pick };
      seen += 1;
      if (seen < nth) return { pick };
      left = left.slice(1);
      seen = 0;
      return { pick, fault: aim.fault };
    },
  };
}
