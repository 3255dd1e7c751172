import { Dice } from '../../tools/chaos/src/contract/dice.js';
import type { Decision, Option, Scheduler } from './schedule.js';
import { CLOCK_FAULTS, CLOCK_STEPS, FAULTS, type Fault, faultsFor } from './trip.js';

/** How many steps the scheduler interferes in, and how often something goes wrong at most. */
const HORIZON = 120;
const MOST_FAULTS = 4;

/** What a targeted history aims at: the beginning of the name of a step. */
const TARGETS = [
  'settle',
  'settle',
  'enter',
  'take',
  'intent',
  'create',
  'append',
  'push',
  'seal',
  'exchange',
  'tick',
  'tend',
  'write-back',
  'finish',
  'pop',
  'ends',
  'run-alone',
  'cancel',
  'drop',
  's',
] as const;

/**
 * Decides by chance. A seed first decides how wild it is to be: how often somebody is passed over, and
 * where something goes wrong: anywhere, more or less often; or again and again at steps of one name, in
 * one way, as most cures are for that and chance seldom finds it.
 */
export function randomScheduler(seed: number): Scheduler {
  const dice = new Dice(seed);
  const among = <T>(list: readonly T[]): T => list[Math.floor(dice.next() * list.length)] as T;
  const passesOver = among([0, 0.1, 0.3, 0.7]);
  const passesTime = dice.next() < 0.3 ? 0.1 : 0;
  const target = dice.next() < 0.6 ? { name: among(TARGETS), fault: among(FAULTS) } : undefined;
  const fails = target ? 0.4 : among([0, 0.02, 0.06, 0.15]);
  let faults = 0;

  const faultAt = (option: Option): Fault | undefined => {
    if (option === 'time' || faults >= MOST_FAULTS || dice.next() >= fails) return undefined;
    const fitting = faultsFor(option);
    const fault = target ? target.fault : among(fitting);
    if (!fitting.includes(fault) || (target && !option.name.startsWith(target.name)))
      return undefined;
    faults += 1;
    return fault;
  };

  return {
    open: (step) => step < HORIZON,
    decide(options, step): Decision {
      if (step >= HORIZON) return { pick: 0 };
      const trips = options.length - 1;
      if (dice.next() < passesTime) return { pick: trips };
      const pick = dice.next() < passesOver ? Math.floor(dice.next() * trips) : 0;
      return { pick, fault: faultAt(options[pick] as Option) };
    },
  };
}

/** In the first so many steps the clock is set. */
const CLOCK_HORIZON = 40;

/** Decides by chance, and sets the server's clock: once, or there and later the other way. */
export function clockScheduler(seed: number): Scheduler {
  const usual = randomScheduler(seed);
  const dice = new Dice(-seed);
  const among = <T>(list: readonly T[]): T => list[Math.floor(dice.next() * list.length)] as T;
  const first = among(CLOCK_FAULTS);
  const others = CLOCK_FAULTS.filter((one) => CLOCK_STEPS[one] > 0 !== CLOCK_STEPS[first] > 0);
  const at = Math.floor(dice.next() * CLOCK_HORIZON);
  const steps = new Map([[at, first]]);
  if (dice.next() < 0.5) steps.set(at + 1 + Math.floor(dice.next() * CLOCK_HORIZON), among(others));
  return {
    open: usual.open,
    decide(options, step) {
      const decided = usual.decide(options, step);
      const fault = steps.get(step);
      // It is set at a step that somebody does, not while time passes.
      return fault ? { pick: decided.pick % (options.length - 1), fault } : decided;
    },
  };
}
