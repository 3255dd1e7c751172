import type { Dice } from '../contract/dice.js';
import type { Stroke } from './faults.js';

/** Number of each fault in a minute. */
export type Rates = Readonly<Partial<Record<Stroke, number>>>;

/** Six minutes: 84 workers, 15 zombies, 7 servers, 60 cuts. */
export const CHAOS_RATES: Rates = {
  'kill worker': 14,
  'freeze worker': 2.5,
  'kill producer': 3,
  'kill waiter': 3,
  'cut connections': 10,
  delay: 2,
  'black hole': 2,
  'kill redis': 1.2,
  'forget scripts': 2,
};

/** The server loses its last writes. */
export const LOSS_RATES: Rates = { 'promote replica': 5, 'restore snapshot': 2 };
/** The server's clock is wrong, for a while or for good. */
export const CLOCK_RATES: Rates = { 'wrong clock': 3 };
/** The server is away for about as long as leases last. */
export const OUTAGE_RATES: Rates = { 'freeze redis': 1, 'stop redis': 1 };
/** Processes that use the other queues are killed. */
export const TAKER_RATES: Rates = { 'kill taker': 6 };

/** The faults of a bad day, for a long run. */
export const SOAK_RATES: Rates = {
  'kill worker': 6,
  'freeze worker': 1,
  'cut connections': 4,
};

/** Of a cluster. All but the kills are planned operations: they must not make anything run twice. */
export const CLUSTER_RATES: Rates = {
  'kill worker': 6,
  'fail over': 4,
  'move queue slot': 3,
  'move request slot': 8,
};

/** The same, and masters are killed, which may lose acknowledged writes. */
export const KILLED_MASTERS_RATES: Rates = { ...CLUSTER_RATES, 'kill master': 1.5 };

/** Behind Sentinel: its planned failovers must not lose anything. */
export const SENTINEL_RATES: Rates = { 'kill worker': 6, 'fail over': 3 };
/** Masters behind Sentinel that are killed, which may lose the last acknowledged writes. */
export const SENTINEL_KILL_RATES: Rates = { ...SENTINEL_RATES, 'fail over': 2, 'kill master': 1 };

export interface Appointment {
  readonly atMs: number;
  readonly stroke: Stroke;
}

/** The times of all faults: each kind is spread evenly, at a random moment of its interval. */
export function scheduleOf(rates: Rates, lengthMs: number, dice: Dice): Appointment[] {
  const schedule: Appointment[] = [];
  for (const [stroke, rate] of Object.entries(rates) as [Stroke, number][]) {
    const count = Math.max(1, Math.round((rate * lengthMs) / 60_000));
    for (let i = 0; i < count; i += 1) {
      schedule.push({ stroke, atMs: ((i + dice.next()) / count) * lengthMs });
    }
  }
  return schedule.sort((a, b) => a.atMs - b.atMs);
}

/** Carries the schedule out. Faults may overlap. */
export class Nemesis {
  readonly #schedule: readonly Appointment[];
  readonly #strike: (stroke: Stroke) => Promise<void>;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #underWay = new Set<Promise<void>>();

  constructor(schedule: readonly Appointment[], strike: (stroke: Stroke) => Promise<void>) {
    this.#schedule = schedule;
    this.#strike = strike;
  }

  /** @param onError called when a fault could not be carried out: an error of the attack itself */
  start(onError: (error: unknown) => void): void {
    for (const { atMs, stroke } of this.#schedule) {
      const begin = () => {
        const underWay = this.#strike(stroke)
          .catch(onError)
          .finally(() => this.#underWay.delete(underWay));
        this.#underWay.add(underWay);
      };
      this.#timers.push(setTimeout(begin, atMs));
    }
  }

  /** Starts no further faults; resolves when those that are under way have ended. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }
}
