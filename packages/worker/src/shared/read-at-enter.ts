/*
 * How many sub-requests come with the permits of an enter.
 */

/** Most of them: as many as a compact request may have, which stays compact only if all of it is read. */
export const MOST_AT_ENTER = 128;
/** Most that is read ahead for each permit. */
export const PER_PERMIT = 4;
/**
 * Another worker needs about so long, in ms, from a token to its first handler. What runs within that time may be read
 * ahead although others could run it.
 */
export const QUICK_MS = 2;
/** Most of these for each permit. */
const QUICK_PER_PERMIT = 32;

/** How many are read ahead for each permit where all of these run within a time slice. */
export const aheadIn = (averageMs: number, quantumMs: number): number =>
  averageMs * (1 + PER_PERMIT) <= quantumMs ? PER_PERMIT : 0;

/** How many one permit runs, one after the other, before another worker could have entered, within a time slice. */
export const quickIn = (averageMs: number, quantumMs: number): number =>
  quantumMs < QUICK_MS ? 0 : Math.min(QUICK_PER_PERMIT, Math.floor(QUICK_MS / averageMs));
