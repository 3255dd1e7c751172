import type { Setting } from './assumptions.js';

/** Longest delay of an outcome (`settleDelayMs`), in ms, and in handlers; at most until so many outcomes are expected. */
const DELAY_MS = 80;
const DELAY_HANDLERS = 4;
const COMPANY = 64;
const LEAST_COMPANY = 0.5;
/** What is read ahead: a third more than is needed until the reply, at most so many for each permit. */
const RESERVE = 1.3;
const PER_PERMIT = 4;
/** If a round trip takes less of a handler's time, nothing is read ahead while no outcome waits. */
const GAP = 0.05;
/** A turn in handlers, and in time slices at most; a question comes after so many handlers, in slices at most. */
const TURN_HANDLERS = 10;
const TURN_SLICES = 20;
const QUESTION_EACH = 32;
const QUESTION_SLICES = 4;
/** What a handler that does nothing takes a worker, in ms. */
const LEAST_MS = 0.05;

/** The numbers that a session works by: packages/worker/src/request/{pace,time-slice}.ts. */
export class Pace {
  /** For how long an outcome waits for others. */
  readonly delayMs: number;
  /** How many are read beyond those that run. */
  readonly ahead: number;
  /** How many start during one call. */
  readonly duringCall: number;
  readonly turnMs: number;
  /** The time between two questions who waits. */
  readonly questionMs: number;

  constructor({ handlerMs, quantumMs, roundTripMs }: Setting, permits: number) {
    const eachMs = Math.max(handlerMs, LEAST_MS);
    const perMs = permits / eachMs;
    const delayMs = Math.min(DELAY_MS, DELAY_HANDLERS * eachMs, COMPANY / perMs);
    this.delayMs = delayMs < 1 || delayMs * perMs < LEAST_COMPANY ? 0 : delayMs;
    const needed = Math.ceil(RESERVE * perMs * (this.delayMs + roundTripMs)) + 1;
    const pays = this.delayMs > 0 || roundTripMs >= GAP * eachMs;
    this.ahead = pays ? Math.min(needed, PER_PERMIT * permits) : 0;
    this.duringCall = Math.floor(perMs * roundTripMs);
    this.turnMs = within(quantumMs, TURN_HANDLERS * eachMs, TURN_SLICES * quantumMs);
    this.questionMs = within(quantumMs, QUESTION_EACH / perMs, QUESTION_SLICES * quantumMs);
  }
}

const within = (least: number, wanted: number, most: number) =>
  Math.min(Math.max(least, wanted), most);
