/** Milliseconds of a clock that all processes of this machine share; `performance.now` is per process. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
