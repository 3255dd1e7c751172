import { z } from 'zod';
import { type OptionSpec, option } from './options.js';

/**
 * How the attempts of a request are made: what its producer asked for, as one JSON field of the
 * request's state. The scripts do not look into it; `enter` hands it to the workers.
 */

/** Longest delay or hold, in ms: a year. */
export const LONGEST_DELAY_MS = 31_536_000_000;
const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;

export interface Backoff {
  /**
   * fixed: always `delayMs`. exponential: `delayMs`, then twice as long each time. custom: what the
   * worker's option `backoff` says; `delayMs` where a worker has none. @default 'fixed'
   */
  readonly type?: 'fixed' | 'exponential' | 'custom' | undefined;
  /** Delay before the second attempt, in ms. From 0 to a year. @default 1000 */
  readonly delayMs?: number | undefined;
  /** No delay is longer than this, in ms. From `delayMs` to a year. @default 86400000, a day */
  readonly maxDelayMs?: number | undefined;
  /** Which part of each delay is left to chance, so that not all come back at once. 0 to 1. @default 0 */
  readonly jitter?: number | undefined;
}

export interface AttemptPolicy {
  readonly backoff?: Required<Backoff>;
  readonly attemptTimeoutMs?: number;
  /** Whether the worker says with each outcome when and where it ran. */
  readonly timing?: true;
}

const delay = z.number().int().min(0).max(LONGEST_DELAY_MS);

const backoff = z
  .strictObject({
    type: z.enum(['fixed', 'exponential', 'custom']).optional(),
    delayMs: delay.optional(),
    maxDelayMs: delay.optional(),
    jitter: z.number().min(0).max(1).optional(),
  })
  .refine(({ delayMs, maxDelayMs }) => (maxDelayMs ?? LONGEST_DELAY_MS) >= (delayMs ?? SECOND_MS));

/** The option `backoff`; a number is short for a fixed delay. */
export const backoffOption: OptionSpec = option.custom(
  z.union([delay, backoff]),
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
}): string {
  const { backoff, attemptTimeoutMs, timing } = options;
  if (backoff === undefined && attemptTimeoutMs === undefined && !timing) return '';
  const policy: AttemptPolicy = {
    ...(backoff === undefined ? {} : { backoff: complete(backoff) }),
    ...(attemptTimeoutMs === undefined ? {} : { attemptTimeoutMs }),
    ...(timing ? { timing } : {}),
  };
  return JSON.stringify(policy);
}

export function decodePolicy(text: string): AttemptPolicy {
  return text === '' ? {} : (JSON.parse(text) as AttemptPolicy);
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
