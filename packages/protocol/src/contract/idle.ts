import { TIMES } from './defaults.js';
import { type OptionSpec, option } from './options.js';

/**
 * How often an idle process checks what it may have missed: 'responsive', or 'frugal', for servers that bill each
 * command.
 */
export type Idle = 'responsive' | 'frugal';

export const idleOption: OptionSpec = option.word('responsive', 'frugal');

/**
 * By how much all waits of an idle process are longer. A frugal worker ticks every 50 s, so that nobody takes it for gone,
 * which is after 60 s.
 */
export const idleFactor = (idle: Idle): number => (idle === 'frugal' ? 10 : 1);

/** Whether a process that ticks this often rests: others must not take its silence for an outage. */
export const isRest = (restMs: number): boolean => restMs > TIMES.tickMs;

/**
 * After this time, in ms, a process that ticks has given a sign of life, where there are `fleet` workers. `restMs`: the
 * longest time between two of its ticks.
 */
export const signOfLifeMs = (fleet: number, restMs: number = TIMES.tickMs): number =>
  Math.max(TIMES.awayMs + restMs - TIMES.tickMs, fleet * TIMES.awayPerWorkerMs);

/** Whether a worker has been silent for longer than a live one is. It may have ended. */
export const isSilentWorker = (
  { seenAt, restMs }: { readonly seenAt: number; readonly restMs?: number },
  fleet: number,
  now: number,
): boolean => now - seenAt > signOfLifeMs(fleet, restMs);

/** How long a report of a worker may be on its way, in ms. */
const ON_ITS_WAY_MS = 1_000;

/** Whether a worker has missed a report. It may have ended, or is only slow: it counts as silent after three times that. */
export const isLateWorker = (
  { seenAt, restMs = TIMES.tickMs }: { readonly seenAt: number; readonly restMs?: number },
  fleet: number,
  now: number,
): boolean => now - seenAt > Math.max(restMs, (fleet * TIMES.awayPerWorkerMs) / 3) + ON_ITS_WAY_MS;
