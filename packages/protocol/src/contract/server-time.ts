let aheadMs: () => number = () => 0;

/** The time of Redis as this process knows it: its own, and by how much a test has moved the clock of the scripts. */
export const serverTimeMs = (): number => Date.now() + aheadMs();

/** For tests (see testing.ts): `ms` says how far the clock of the scripts is ahead. */
export function moveServerTime(ms: () => number): void {
  aheadMs = ms;
}
