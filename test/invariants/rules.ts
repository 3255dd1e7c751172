import { indexOf } from '@piecework/protocol';
import type { Worker } from '../cast/calls/worker.js';
import type { Scene } from '../support/given.js';
import { faultsOf, type Picture } from '../support/peek.js';

/* What must hold after every call of a random history. */

const ACTIVE = new Set(['open', 'sealed', 'cancelling']);

/** What the books of a request must not say. A lowered limit lets what was granted before drain. */
export const wrongBooks = (picture: Picture): string[] =>
  faultsOf(picture).filter((fault) => fault !== 'granted above the limit');

/** What must not have come about since the picture before. */
export function wrongChange(before: Picture | undefined, after: Picture): string[] {
  if (!before || before.generation !== after.generation || before.status === 'none') return [];
  if (after.status === 'dropped' || after.status === 'void') return [];
  const wrong: string[] = [];
  const more = after.granted - before.granted;
  if (after.granted > after.limit && more > 0) wrong.push(`granted ${more} more above the limit`);
  if (isHalted(before) && isHalted(after)) {
    if (more > 0) wrong.push(`granted ${more} while it is halted`);
    if (after.out + after.outBefore > before.out + before.outBefore)
      wrong.push('minted while it is halted');
  }
  const settled = ({ counts }: Picture) => counts.succeeded + counts.cancelled;
  if (settled(after) < settled(before)) wrong.push('what was settled is settled no more');
  const [was, is] = [before.fields['endReason'], after.fields['endReason']];
  if (was !== undefined && is !== was) wrong.push(`ended for ${was}, then for ${is}`);
  return wrong;
}

const isHalted = ({ fields, now }: Picture) =>
  fields['paused'] === '1' || Number(fields['heldUntil'] ?? 0) > now;

/** Holds what the workers run of a request against what they were granted. */
export function wrongRuns(scene: Scene, picture: Picture, workers: readonly Worker[]): string[] {
  if (!ACTIVE.has(picture.status)) return [];
  const wrong: string[] = [];
  const owners = new Map(picture.pending.map(({ index, owner }) => [index, owner]));
  let all = 0;
  for (const worker of workers) {
    // A worker learns with its next call only that a generation was dropped.
    const runs = worker
      .valid(scene)
      .filter((entry) => entry.startsWith(`${picture.generation}-`))
      .map(indexOf);
    all += runs.length;
    const permits = picture.permits[worker.name] ?? 0;
    if (runs.length > permits) wrong.push(`${runs.length} running under ${permits} permits`);
    for (const index of runs) {
      // Without an owner it was settled, by a worker that had lost it before.
      const owner = owners.get(index) ?? worker.name;
      if (owner !== worker.name) wrong.push(`${index} is run by another than its owner`);
    }
  }
  // Above a lowered limit what runs may end.
  if (all > Math.max(picture.limit, picture.granted))
    wrong.push(`${all} running, limit ${picture.limit}`);
  return wrong;
}
