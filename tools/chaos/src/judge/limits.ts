import type { Change, Request } from './requests.js';
import type { Run } from './runs.js';
import type { Part } from './sweep.js';

/*
 * The cap of a request whose limit changes while it runs; a pause is a change to 0. What runs may go on
 * above a lowered limit. But from a worker's next settle on, it begins nothing above it: so each start
 * is looked at, and what ran then. A settle came after a change for certain if it reported a run that
 * ended after the change was acknowledged. Until then any limit may be in force that was asked for and
 * is not over for this worker; the greatest counts.
 */

export interface Above {
  readonly run: Run;
  readonly believed: number;
  readonly allowed: number;
}

/** Starts above the limit, runs that may be without a lease not counted. */
export function startsAbove(parts: readonly Part[], request: Request): Above[] {
  const { limit } = request;
  const first: Change = { step: -1, limit, askedMs: 0, doneMs: 0 };
  const changes = [first, ...request.changes];
  const knows = knowledge(changes, request);
  const steps = parts.flatMap((part) => [
    { ms: part.run.startMs, by: 1, part },
    { ms: Math.max(part.run.startMs, part.doubtfulMs), by: -1, part },
  ]);
  steps.sort((a, b) => a.ms - b.ms || a.by - b.by);
  const above: Above[] = [];
  let believed = 0;
  for (const { ms, by, part } of steps) {
    believed += by;
    if (by < 0 || part.doubtfulMs <= part.run.startMs) continue;
    const known = knows.get(part.run.process) ?? [];
    const isOver = (i: number) =>
      changes.some((_, k) => k > i && (known[k] ?? Number.POSITIVE_INFINITY) <= ms);
    const allowed = Math.max(
      ...changes.flatMap((change, i) => (change.askedMs <= ms && !isOver(i) ? [change.limit] : [])),
    );
    if (believed > allowed) above.push({ run: part.run, believed, allowed });
  }
  return above;
}

/** Of each worker, from when on it keeps to each change. */
function knowledge(changes: readonly Change[], { settles }: Request): Map<number, number[]> {
  const knows = new Map<number, number[]>();
  for (const { process, endedMs, ms } of settles) {
    const known = knows.get(process) ?? changes.map(() => Number.POSITIVE_INFINITY);
    knows.set(process, known);
    for (const [k, { doneMs }] of changes.entries())
      if (endedMs > doneMs) known[k] = Math.min(known[k] as number, ms);
  }
  return knows;
}
