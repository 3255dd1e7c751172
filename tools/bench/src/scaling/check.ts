import type { Counts } from './call-counter.js';
import type { Costs } from './costs.js';
import type { Called } from './fleet.js';
import type { RealRun, RealSetting } from './real-run.js';
import { type Effort, type Simulated, simulate } from './simulate.js';

/** A real run beside the simulation of the same setting. */
export interface Check {
  readonly real: RealRun;
  readonly simulated: Simulated;
}

/** Loopback, there and back. */
const LOOPBACK_MS = 0.1;
/** The handlers of the real runs wait for Node's timers, which end together at each of them. */
const TIMER_MS = 1;
const SERVERS = [
  { masters: 1, workers: 2 },
  { masters: 3, workers: 3 },
] as const;
/** Sub-requests of one run: some seconds of them. */
const SIZES = [
  { handlerMs: 0, total: 24_000 },
  { handlerMs: 5, total: 9_600 },
  { handlerMs: 50, total: 2_400 },
] as const;
const CALLED: readonly Called[] = ['settle', 'should-yield', 'pop', 'enter', 'push'];

/** One server and three; one request that has all slots, and twelve that share them. */
export function realSettings(scale: number): RealSetting[] {
  const size = (count: number) => Math.max(1, Math.round(count * scale));
  return SIZES.flatMap(({ handlerMs, total }) =>
    [1, 12].flatMap((requests) =>
      SERVERS.map(({ masters, workers }) => ({
        ...{ masters, workers, handlerMs, requests, concurrency: 10, quantumMs: 50 },
        limit: requests === 1 ? workers * 10 : 10,
        size: size(total / requests),
      })),
    ),
  );
}

/** The same setting, and the same requests on the same masters, simulated. */
export function simulateReal(real: RealRun, costs: Costs, effort: Effort): Simulated {
  const { setting, placement, queueMaster } = real;
  const { masters, workers, handlerMs, concurrency, quantumMs, requests, limit } = setting;
  const contended = requests * limit > workers * concurrency;
  const same = { masters, workers, handlerMs, concurrency, quantumMs, requests };
  const here = { placement, queueMaster, roundTripMs: LOOPBACK_MS, timerMs: TIMER_MS, seed: 1 };
  return simulate({ ...same, ...here, contended }, costs, effort);
}

/** `exchange` pushes and pops, and is rare. */
const counted = (counts: Counts, name: Called): number => {
  const of = (...names: string[]) => names.reduce((sum, one) => sum + (counts[one] ?? 0), 0);
  return name === 'pop' ? of('lmpop', 'blmpop', 'exchange') : of(name);
};

/** Calls per sub-request as counted and as simulated. */
export function callsPerOutcome({ real, simulated }: Check) {
  return CALLED.map((name) => ({
    name,
    counted: counted(real.counts, name) / real.settled,
    simulated: simulated.calls[name],
  }));
}

/** CPU time of each master per sub-request, in µs, as measured and as simulated. */
export function microsPerOutcome({ real, simulated }: Check) {
  return real.masterMicros.map((micros, i) => ({
    measured: micros / real.settled,
    simulated: ((simulated.busy[i] ?? 0) / simulated.perSecond) * 1e6,
  }));
}

/** How far the simulation is off, in parts of what was measured. */
export const errorOf = (measured: number, simulated: number): number =>
  (simulated - measured) / measured;
