import { setTimeout as sleep } from 'node:timers/promises';

/** Looks every `everyMs` until it is so; false when that took longer than `patienceMs`. */
export async function until(
  condition: () => Promise<boolean>,
  { everyMs = 50, patienceMs = Number.POSITIVE_INFINITY } = {},
): Promise<boolean> {
  const end = performance.now() + patienceMs;
  while (!(await condition())) {
    if (performance.now() > end) return false;
    await sleep(everyMs);
  }
  return true;
}
