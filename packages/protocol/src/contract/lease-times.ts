/*
 * When a lease is renewed, and when its holder stops to rely on it: parts of its length, the same for the leases of
 * workers, producers, redrives and items.
 *
 *   0 ──────── 1/3 ─────────── 0.7 ──────────── 9/10 ──────── 1
 *   granted    the holder      where a worker   the holder    the server gives
 *              renews          is blocked, its  stops to      the work to others
 *                              thread renews    rely on it
 */

/** A holder renews after this time, in ms: two renewals may get lost. */
export const renewAfterMs = (leaseMs: number): number => leaseMs / 3;

/** So long before the end, in ms, a holder stops to rely on the lease: its clock may run slower than the server's. */
export const leaseMarginMs = (leaseMs: number): number => leaseMs / 10;

/** How often a holder checks whether to renew, or whether its lease has ended, in ms. */
export const leaseCheckMs = (leaseMs: number): number => Math.min(1_000, leaseMs / 10);

/** After so long without a beat, in ms, the renewal thread takes the main loop for blocked. */
export const blockedAfterMs = (leaseMs: number): number => leaseMs / 6;

/** How often the main loop beats at least, and how often the renewal thread checks the beat, in ms. */
export const beatMs = (leaseMs: number): number => leaseMs / 12;
