import { Numbers } from './numbers.js';
import type { Interval } from './processes.js';

export type Counts = Readonly<Record<string, number>>;

/** A completion as it was reported to a waiter. */
export interface Told {
  readonly process: string;
  readonly generation: number;
  readonly status: string;
  readonly counts: Counts;
  readonly ms: number;
  /** From when on it may have known: a reader is told at its end what it had heard at its beginning. */
  readonly sinceMs: number;
  /** When that process began to wait. */
  readonly beganMs: number;
  /** The waiter asked for this generation or a later one. */
  readonly after: number;
}

/** A limit that is in force from a step on; 0 while the request is paused. */
export interface Change {
  readonly step: number;
  limit: number;
  askedMs: number;
  doneMs: number;
}

/** The server acknowledged to a worker the outcome of a run that ended at `endedMs`. */
export interface Settle {
  readonly process: number;
  readonly endedMs: number;
  readonly ms: number;
}

/** A redrive by `process`; without an end if it was never acknowledged. */
export interface Redrive extends Interval {
  readonly process: string;
}

/** A process that waited for a request, or read it, got the answer that the request does not exist. */
export interface NotThere {
  readonly ms: number;
  /** When that process began to wait. */
  readonly beganMs: number;
  /** Whether the answer was that it existed before and is lost. */
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
  /** How the request had ended, as the reader was told with the last result. */
  counts: Counts = {};
  /** From the beginning of the wait to the end of the read. */
  beganMs = Number.POSITIVE_INFINITY;
  endedMs = Number.NaN;

  constructor(process: string, generation: number) {
    this.process = process;
    this.generation = generation;
  }
}

/** The seal as it was acknowledged to a producer, from the sending of the call on. */
export interface Seal extends Interval {
  readonly generation: number;
  readonly total: number;
}

/** Everything that the journals say about one request. */
export class Request {
  readonly number: number;
  readonly id: string;
  limit = Number.POSITIVE_INFINITY;
  openedMs = Number.NaN;
  acknowledgedMs = Number.POSITIVE_INFINITY;
  dropMs = Number.POSITIVE_INFINITY;
  dropped = false;
  /** When its drop as a control step was first requested, and acknowledged. */
  droppedEarlyMs = Number.POSITIVE_INFINITY;
  goneMs = Number.POSITIVE_INFINITY;
  /** When a producer last announced that it submits it. */
  lastOpenMs = Number.NEGATIVE_INFINITY;
  /** When its cancel was first requested, when that was acknowledged, and its earliest possible deadline. */
  cancelMs = Number.POSITIVE_INFINITY;
  cancelledMs = Number.POSITIVE_INFINITY;
  deadlineMs = Number.POSITIVE_INFINITY;
  leaseMs = Number.POSITIVE_INFINITY;
  /** Which producers announced something about it, and when. */
  readonly producers: { readonly process: string; readonly ms: number }[] = [];
  redriveMs = Number.POSITIVE_INFINITY;
  /** When its completion was first reported to a waiter. */
  toldMs = Number.POSITIVE_INFINITY;
  readonly settles: Settle[] = [];
  readonly #changes = new Map<number, Change>();
  readonly seals: Seal[] = [];
  /** The generations that redrives began, as given to waiters. */
  readonly laterGenerations = new Set<number>();
  /** When each write to it was requested, and acknowledged. */
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

  /**
   * Whether it was dropped while a producer still submitted it: then it exists again, as another generation, under the
   * limit that it had first.
   */
  get isBegunAgain(): boolean {
    const isAcknowledged = this.acks.some(({ toMs }) => toMs >= this.goneMs);
    return this.lastOpenMs >= this.droppedEarlyMs || isAcknowledged;
  }

  get sealed(): Seal | undefined {
    return this.seals.at(-1);
  }

  /** For a redriven request, when its first generation was complete for certain; otherwise NaN. */
  get firstCompleteMs(): number {
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

  /** For each index, whether a producer tried to add it, and whether that was acknowledged. */
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

  /** The unfinished reading of `process`, or a new one. */
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
