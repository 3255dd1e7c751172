import type { Change, Request } from '../evidence/requests.js';
import type { Run } from '../evidence/runs.js';
import type { Part } from './sweep.js';

/*
 * The cap of a request whose limit changes while it runs; a pause is a change to 0. Runs that are in flight may
 * continue above a lowered limit. But after its next settle, a worker starts nothing above it. So each start is
 * compared with the number of runs in flight at that moment. A settle certainly came after a change if it reported a
 * run that ended after the change was acknowledged. Before that, every limit that was requested and is not superseded
 * for this worker may be in force; the greatest of them counts.
 */

export interface Above {
  readonly run: Run;
  readonly believed: number;
  readonly allowed: number;
}

/** Starts above the limit. Runs that may have lost their lease do not count. */
export function startsAbove(parts: readonly Part[], request: Request): Above[] {
  const { limit, isBegunAgain, droppedEarlyMs } = request;
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
      isBegunAgain && ms >= droppedEarlyMs ? limit : 0,
      ...changes.flatMap((change, i) => (change.askedMs <= ms && !isOver(i) ? [change.limit] : [])),
    );
    if (believed > allowed) above.push({ run: part.run, believed, allowed });
  }
  return above;
}

/** For each worker, from when on it must respect each change. */
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
