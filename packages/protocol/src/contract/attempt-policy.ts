import { type OptionSpec, option } from './options.js';
import { shape } from './shapes.js';
import type { TraceContext } from './telemetry.js';

/**
 * How the attempts of a request are made, as its producer asked: one JSON field of the request's state. The scripts do
 * not parse it; `enter` returns it to the workers.
 */

/** Longest delay or hold, in ms: a year. */
export const LONGEST_DELAY_MS = 31_536_000_000;
const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;

export interface Backoff {
  /**
   * fixed: always `delayMs`. exponential: `delayMs`, then twice as long each time. custom: the delay that the worker's
   * option `backoff` returns; `delayMs` when a worker has no such option. @default 'fixed'
   */
  readonly type?: 'fixed' | 'exponential' | 'custom' | undefined;
  /** Delay before the second attempt, in ms. From 0 to a year. @default 1000 */
  readonly delayMs?: number | undefined;
  /** No delay is longer than this, in ms. From `delayMs` to a year. @default 86400000, a day */
  readonly maxDelayMs?: number | undefined;
  /** The part of each delay that is random, so that not all retries come at once. 0 to 1. @default 0 */
  readonly jitter?: number | undefined;
}

export interface AttemptPolicy {
  readonly backoff?: Required<Backoff>;
  readonly attemptTimeoutMs?: number;
  /** Whether the worker stores with each outcome when and where the attempt ran. */
  readonly timing?: true;
  /** Of the submission; says nothing about attempts, but travels the same way. */
  readonly trace?: TraceContext;
}

const delay = shape.integer(0, LONGEST_DELAY_MS);

const { optional } = shape;
const backoff = shape.both(
  shape.exactly({
    type: optional(shape.word('fixed', 'exponential', 'custom')),
    delayMs: optional(delay),
    maxDelayMs: optional(delay),
    jitter: optional(shape.number(0, 1)),
  }),
  (given) => {
    const { delayMs = SECOND_MS, maxDelayMs = LONGEST_DELAY_MS } = given as Backoff;
    return maxDelayMs >= delayMs;
  },
);

/** The option `backoff`; a number is short for a fixed delay. */
export const backoffOption: OptionSpec = option.custom(
  shape.either(delay, backoff),
  `a delay from 0 to ${LONGEST_DELAY_MS} (ms), or { type: 'fixed' | 'exponential' | 'custom', delayMs, maxDelayMs (not below delayMs), jitter: 0 to 1 }`,
);

const complete = (given: number | Backoff): Required<Backoff> => {
  const {
    type = 'fixed',
    delayMs = SECOND_MS,
    maxDelayMs,
    jitter = 0,
  } = typeof given === 'number' ? { delayMs: given } : given;
  return { type, delayMs, maxDelayMs: maxDelayMs ?? Math.max(delayMs, DAY_MS), jitter };
};

/** As the request keeps it; '' when nothing is asked for. */
export function encodePolicy(options: {
  readonly backoff?: number | Backoff;
  readonly attemptTimeoutMs?: number;
  readonly timing?: boolean;
  readonly trace?: TraceContext | undefined;
}): string {
  const { backoff, attemptTimeoutMs, timing, trace } = options;
  if (backoff === undefined && attemptTimeoutMs === undefined && !timing && !trace) return '';
  const policy: AttemptPolicy = {
    ...(backoff === undefined ? {} : { backoff: complete(backoff) }),
    ...(attemptTimeoutMs === undefined ? {} : { attemptTimeoutMs }),
    ...(timing ? { timing } : {}),
    ...(trace ? { trace } : {}),
  };
  return JSON.stringify(policy);
}

export function decodePolicy(text: string): AttemptPolicy {
  return text === '' ? {} : (JSON.parse(text) as AttemptPolicy);
}

/** The same policy without the trace, which differs with each submission of the same request. */
export function withoutTrace(text: string): string {
  const { trace: _, ...policy } = decodePolicy(text);
  return Object.keys(policy).length === 0 ? '' : JSON.stringify(policy);
}

/** Delay before the next attempt when `failed` attempts have failed, in ms. */
export function delayAfter(
  { type, delayMs, maxDelayMs, jitter }: Required<Backoff>,
  failed: number,
  random: () => number = Math.random,
): number {
  const grown = type === 'exponential' ? delayMs * 2 ** (failed - 1) : delayMs;
  const most = Math.min(grown, maxDelayMs);
  return Math.round(most * (1 - jitter * random()));
}
