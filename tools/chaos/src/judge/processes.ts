import type { Fault, FaultEvent } from '../history.js';

/** What is known of one process of the attack. */
export interface Process {
  readonly number: number;
  readonly name: string;
  /** Length of its leases; unknown until it says that it waits for work. */
  leaseMs: number | undefined;
  /** Its last entry. */
  lastMs: number;
  /** When it was about to be killed, and when it was dead. */
  killMs: number | undefined;
  deadMs: number | undefined;
  /** Times in which it was made to stand still. */
  readonly frozen: Interval[];
  /** Times in which its event loop stood still, as it says itself: also those. */
  readonly stoodStill: Interval[];
}

export interface Interval {
  readonly fromMs: number;
  toMs: number;
}

const KILLS: readonly Fault[] = ['kill worker', 'kill producer', 'kill waiter', 'kill taker'];
const WAYS: readonly Fault[] = ['black hole', 'delay'];
/** The server stands still, or is another one afterwards. */
const AWAY: readonly Fault[] = ['freeze redis', 'promote replica', 'restore snapshot'];

/** The processes, and what was done to them. */
export class Processes {
  readonly faults: Partial<Record<Fault, number>> = {};
  readonly #byName = new Map<string, Process>();
  readonly #byNumber: Process[] = [];
  /** Times in which the way to Redis was broken, by the target that was hit. */
  readonly #broken = new Map<string, Interval[]>();
  readonly #under = new Map<string, Interval>();

  named(name: string): Process {
    let process = this.#byName.get(name);
    if (!process) {
      process = {
        ...{ number: this.#byNumber.length, name, leaseMs: undefined, lastMs: Number.NaN },
        ...{ killMs: undefined, deadMs: undefined, frozen: [], stoodStill: [] },
      };
      this.#byName.set(name, process);
      this.#byNumber.push(process);
    }
    return process;
  }

  at(number: number): Process {
    return this.#byNumber[number] as Process;
  }

  [Symbol.iterator](): Iterator<Process> {
    return this.#byNumber.values();
  }

  fault(event: FaultEvent, ms: number): void {
    const { fault, target } = event;
    const begins = 'does' in event;
    if (begins) this.faults[fault] = (this.faults[fault] ?? 0) + 1;
    if (KILLS.includes(fault)) {
      const process = this.named(target);
      if (begins) process.killMs ??= ms;
      else process.deadMs ??= ms;
    } else if (fault === 'freeze worker') {
      this.#during(`${fault} ${target}`, begins, ms, this.named(target).frozen);
    } else if (WAYS.includes(fault)) {
      this.#during(`${fault} ${target}`, begins, ms, this.#brokenOf(target));
    } else if (AWAY.includes(fault)) {
      this.#during(fault, begins, ms, this.#brokenOf('redis'));
    } else if (fault === 'kill redis' && begins) {
      this.#during('redis', true, ms, this.#brokenOf('redis'));
    } else if (fault === 'restart redis' && !begins) {
      this.#during('redis', false, ms, this.#brokenOf('redis'));
    }
  }

  /** Times in which the way of `process` alone was closed. */
  cutOff(process: Process): readonly Interval[] {
    return this.#broken.get(process.name) ?? [];
  }

  /** Times in which somebody could not reach Redis: a proxy was hit, or Redis itself. */
  outages(): Interval[] {
    const elsewhere = [...this.#broken].filter(([target]) => !this.#byName.has(target));
    return elsewhere.flatMap(([, intervals]) => intervals);
  }

  #brokenOf(target: string): Interval[] {
    const intervals = this.#broken.get(target) ?? [];
    this.#broken.set(target, intervals);
    return intervals;
  }

  #during(key: string, begins: boolean, ms: number, intervals: Interval[]): void {
    const under = this.#under.get(key);
    if (begins && !under) {
      const interval = { fromMs: ms, toMs: Number.POSITIVE_INFINITY };
      intervals.push(interval);
      this.#under.set(key, interval);
    } else if (!begins && under) {
      under.toMs = ms;
      this.#under.delete(key);
    }
  }
}

/** When nothing of it ran any more: at the latest when it was dead, at the earliest at its last entry. */
export function endOf({ deadMs, killMs, lastMs }: Process): number {
  return Math.max(deadMs ?? killMs ?? lastMs, Number.isNaN(lastMs) ? 0 : lastMs);
}
