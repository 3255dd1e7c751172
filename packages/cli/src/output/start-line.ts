import prettyMs from 'pretty-ms';
import { zoned } from '../terminal/time-of.js';

/** Says when a request with this `--run-at` starts. */
export function startLine(runAt: Date | number, nowMs = Date.now()): string {
  const at = new Date(runAt);
  const leftMs = at.getTime() - nowMs;
  const far = prettyMs(Math.abs(leftMs), { unitCount: 2, secondsDecimalDigits: 0 });
  if (leftMs <= 0) return `starts at once: --run-at ${zoned(at)} has passed (${far} ago)`;
  return `starts at ${zoned(at)} (in ${far})`;
}
