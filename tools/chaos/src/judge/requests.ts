import { Numbers } from './numbers.js';
import type { Interval } from './processes.js';

export type Counts = Readonly<Record<string, number>>;

/** Told to a waiter. */
export interface Told {
  readonly process: string;
  readonly generation: number;
  readonly status: string;
  readonly counts: Counts;
  readonly ms: number;
  /** When that process began to wait. */
  readonly beganMs: number;
  /** The life before which it was not to be told of any. */
  readonly after: number;
}

/** A limit that is in force from a step on; 0 while the request is paused. */
export interface Change {
  readonly step: number;
  limit: number;
  askedMs: number;
  doneMs: number;
}

/** A worker was told that the server has an outcome, of a run that ended at `endedMs`. */
export interface Settle {
  readonly process: number;
  readonly endedMs: number;
  readonly ms: number;
}

/** A redrive that `process` asked for; without an end: it was never told that it is done. */
export interface Redrive extends Interval {
  readonly process: string;
}

/** Who waited for it, or read it, was told that it is not there. */
export interface NotThere {
  readonly ms: number;
  /** When that process began to wait. */
  readonly beganMs: number;
  /** That it was there, as this process has seen, and is not any more. */
  readonly isLost: boolean;
}

/** The results of one request as one process read them. */
export class Reading {
  readonly process: string;
  readonly generation: number;
  readonly index = new Numbers();
  /** The item that came back; NaN for a failed one, −1 for a success without a number. */
  readonly item = new Numbers();
  over = false;
  /** From the begin of the wait to its end. */
  beganMs = Number.POSITIVE_INFINITY;
  endedMs = Number.NaN;

  constructor(process: string, generation: number) {
    this.process = process;
    this.generation = generation;
  }
}

/** The seal as a producer was told of it, from when that was asked for. */
export interface Seal extends Interval {
  readonly generation: number;
  readonly total: number;
}

/** All that was written down about one request. */
export class Request {
  readonly number: number;
  readonly id: string;
  limit = Number.POSITIVE_INFINITY;
  openedMs = Number.NaN;
  acknowledgedMs = Number.POSITIVE_INFINITY;
  dropMs = Number.POSITIVE_INFINITY;
  dropped = false;
  /** Dropped before it was complete, or not: when that was asked for, and acknowledged. */
  droppedEarlyMs = Number.POSITIVE_INFINITY;
  goneMs = Number.POSITIVE_INFINITY;
  /** When somebody asked for its end first, when that was acknowledged, and its deadline at the earliest. */
  cancelMs = Number.POSITIVE_INFINITY;
  cancelledMs = Number.POSITIVE_INFINITY;
  deadlineMs = Number.POSITIVE_INFINITY;
  leaseMs = Number.POSITIVE_INFINITY;
  /** Who announced something of it, and when. */
  readonly producers: { readonly process: string; readonly ms: number }[] = [];
  redriveMs = Number.POSITIVE_INFINITY;
  /** When a waiter was told first that it is complete. */
  toldMs = Number.POSITIVE_INFINITY;
  readonly settles: Settle[] = [];
  readonly #changes = new Map<number, Change>();
  readonly seals: Seal[] = [];
  /** Those that a redrive began, as who waits for their ends was told. */
  readonly laterLives = new Set<number>();
  /** When something of it was asked for, and acknowledged. */
  readonly acks: Interval[] = [];
  /** When a producer announced each kind of step last. */
  readonly announced = new Map<string, number>();
  readonly told: Told[] = [];
  readonly inspected: {
    readonly generation: number;
    readonly counts: Counts;
    readonly ms: number;
  }[] = [];
  readonly readings: Reading[] = [];
  readonly redrives: Redrive[] = [];
  readonly notThere: NotThere[] = [];
  readonly expiredMs: number[] = [];
  readonly #attempted: [from: number, to: number][] = [];
  readonly #acknowledged: [from: number, to: number][] = [];

  constructor(number: number, id: string) {
    this.number = number;
    this.id = id;
  }

  get sealed(): Seal | undefined {
    return this.seals.at(-1);
  }

  /** When its first life was complete for certain, of one that was redriven; NaN of others. */
  get firstLifeMs(): number {
    const isRedriven = Number.isFinite(this.redriveMs);
    return isRedriven && this.toldMs < this.redriveMs ? this.toldMs : Number.NaN;
  }

  /** The limits after the first one, in their order. */
  get changes(): Change[] {
    return [...this.#changes.values()].sort((a, b) => a.step - b.step);
  }

  change(step: number): Change {
    const never = Number.POSITIVE_INFINITY;
    const known = this.#changes.get(step) ?? { step, limit: never, askedMs: never, doneMs: never };
    this.#changes.set(step, known);
    return known;
  }

  attempt(from: number, to: number): void {
    this.#attempted.push([from, to]);
  }

  acknowledge(from: number, to: number, ms: number): void {
    this.#acknowledged.push([from, to]);
    this.acknowledgedMs = Math.min(this.acknowledgedMs, ms);
  }

  /** For each index whether somebody tried to add it, and whether that was acknowledged. */
  items(): { attempted: Uint8Array; acknowledged: Uint8Array } {
    const ranges = [...this.#attempted, ...this.#acknowledged];
    const size = ranges.reduce((most, [, to]) => Math.max(most, to), 0);
    const marked = (some: readonly [number, number][]) => {
      const marks = new Uint8Array(size);
      for (const [from, to] of some) marks.fill(1, from, to);
      return marks;
    };
    return { attempted: marked(this.#attempted), acknowledged: marked(this.#acknowledged) };
  }

  /** The reading that `process` is at. */
  reading(process: string, generation: number): Reading {
    const last = this.readings.findLast((reading) => reading.process === process);
    if (last && !last.over && last.generation === generation) return last;
    const reading = new Reading(process, generation);
    this.readings.push(reading);
    return reading;
  }
}

/** Requests by their id. */
export class Requests {
  readonly #byId = new Map<string, Request>();
  readonly #byNumber: Request[] = [];

  named(id: string): Request {
    let request = this.#byId.get(id);
    if (!request) {
      request = new Request(this.#byNumber.length, id);
      this.#byId.set(id, request);
      this.#byNumber.push(request);
    }
    return request;
  }

  at(number: number): Request {
    return this.#byNumber[number] as Request;
  }

  [Symbol.iterator](): Iterator<Request> {
    return this.#byNumber.values();
  }
}
