import type { Decision, Option, Scheduler } from './schedule.js';
import { type Fault, faultsFor } from './trip.js';

/** A row of numbers from 0 to 1 that a seed determines (mulberry32). */
export function randomRow(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** How many steps the scheduler interferes in, and how often something goes wrong at most. */
const HORIZON = 120;
const MOST_FAULTS = 4;

/**
 * Decides by chance. A seed first decides how wild it is to be: how often somebody is passed over, and
 * how often something goes wrong; so that calm histories with one rare fault come as well as storms.
 */
export function randomScheduler(seed: number): Scheduler {
  const next = randomRow(seed);
  const passesOver = [0.1, 0.3, 0.7][Math.floor(next() * 3)] as number;
  const fails = [0, 0.02, 0.06, 0.15][Math.floor(next() * 4)] as number;
  const passesTime = next() < 0.3 ? 0.1 : 0;
  let faults = 0;
  const among = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T;
  return {
    open: (step) => step < HORIZON,
    decide(options, step): Decision {
      if (step >= HORIZON) return { pick: 0 };
      const trips = options.length - 1;
      if (next() < passesTime) return { pick: trips };
      const pick = next() < passesOver ? Math.floor(next() * trips) : 0;
      return { pick, fault: chance(options[pick] as Option) };
    },
  };

  function chance(option: Option): Fault | undefined {
    if (option === 'time' || faults >= MOST_FAULTS || next() >= fails) return undefined;
    const fitting = faultsFor(option);
    if (fitting.length === 0) return undefined;
    faults += 1;
    return among(fitting);
  }
}
