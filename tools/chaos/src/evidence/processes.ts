import type { Fault, FaultEvent } from '../contract/history.js';

/** What the journals say about one process of the attack. */
export interface Process {
  readonly number: number;
  readonly name: string;
  /** Length of its leases; undefined until it has started. */
  leaseMs: number | undefined;
  /** Its last entry. */
  lastMs: number;
  /** When the kill was announced, and when the process was dead. */
  killMs: number | undefined;
  deadMs: number | undefined;
  /** Times in which a fault had frozen it. */
  readonly frozen: Interval[];
  /** Times in which its event loop was blocked, by its own account; includes `frozen`. */
  readonly stoodStill: Interval[];
}

export interface Interval {
  readonly fromMs: number;
  toMs: number;
}

const KILLS: readonly Fault[] = ['kill worker', 'kill producer', 'kill waiter', 'kill taker'];
const WAYS: readonly Fault[] = ['black hole', 'delay'];
/** The server is stopped, or is replaced by another. */
const AWAY: readonly Fault[] = ['freeze redis', 'promote replica', 'restore snapshot'];

/** The processes, and what was done to them. */
export class Processes {
  readonly faults: Partial<Record<Fault, number>> = {};
  readonly #byName = new Map<string, Process>();
  readonly #byNumber: Process[] = [];
  /** Times without a way to Redis, by the target of the fault. */
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

  /** Times in which only `process` had no way to Redis. */
  cutOff(process: Process): readonly Interval[] {
    return this.#broken.get(process.name) ?? [];
  }

  /** Times in which some process could not reach Redis: faults of a proxy, or of Redis itself. */
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

/** When the process had ended for certain: its death if known, and not before its last entry. */
export function endOf({ deadMs, killMs, lastMs }: Process): number {
  return Math.max(deadMs ?? killMs ?? lastMs, Number.isNaN(lastMs) ? 0 : lastMs);
}
