import { isAbsent, isCrash, wrongAtEnd as wrongWithRequest } from '../cast/judge.js';
import { BAD } from '../cast/roles/handler.js';
import { wrongNotice } from '../cast/roles/waiter.js';
import { faultsOf, type Picture, queueFaultsOf } from '../support/peek.js';
import type { Cast } from './cast.js';
import type { Stage } from './stage.js';
import { serverNow } from './virtual-time.js';

/*
 * What must hold after every step, when nothing is to do, and at the end of a history.
 */

/** What is asked of one request. */
export interface Expected {
  readonly id: string;
  readonly payloads: readonly string[];
  /** Submitted by a producer: it may never come into being, if nobody was told that it did. */
  readonly byProducer?: boolean;
  /** Somebody cancels it. */
  readonly isCancelled?: boolean;
  /** It is cancelled when its producer is not heard of any more. */
  readonly mayCancel?: boolean;
  /** Somebody drops it, or its retention ends: nothing may be left of it. */
  readonly mayGo?: boolean;
}

/** States of a request that is not over. */
export const LIVE: readonly string[] = ['open', 'sealed', 'cancelling'];

/** After every step. */
export function wrongNow(stage: Stage, cast: Cast): string[] {
  const wrong = stage.queue ? queueFaultsOf(stage.queue) : [];
  for (const [id, picture] of stage.pictures) {
    const faults = faultsOf(picture).filter(
      // A script that may not publish ends there: docs/evidence/interleavings.md.
      (what) => !stage.wasMute || !what.endsWith('outlived the request'),
    );
    wrong.push(...faults.map((what) => `${id}: ${what}`));
    const runs = [...cast.running].filter(
      (run) => run.id === id && !run.actor.frozen && !run.context.signal.aborted,
    );
    const indexes = new Set(runs.map(({ index }) => index));
    if (indexes.size < runs.length) wrong.push(`${id}: one of ${[...indexes]} runs twice at once`);
    if (LIVE.includes(picture.status) && runs.length > picture.limit) {
      wrong.push(`${id}: ${runs.length} run, the limit is ${picture.limit}`);
    }
  }
  for (const { level, what, about } of stage.log.lines) {
    // What a server without the right to publish says is not hidden from the operator.
    if (/can't publish/.test(String(about.err)) && stage.wasMute) continue;
    if (level === 'error') wrong.push(`logged: ${what}: ${about.err}`);
  }
  return wrong;
}

/**
 * When nothing is to do, and nothing went wrong so far, and no time was lost: whoever has a free slot
 * has the work that is there, and who waits has been told.
 */
export function wrongWhenIdle(stage: Stage, cast: Cast): string[] {
  const wrong: string[] = [];
  for (const [id, picture] of stage.pictures) {
    if (picture.status === 'complete' && cast.awaits(id))
      wrong.push(`${id}: somebody was not told`);
    if (!['open', 'sealed'].includes(picture.status)) continue;
    const spare = picture.limit - picture.granted;
    if (readyOf(picture) > 0 && spare > 0 && stage.pops.length > 0)
      wrong.push(`${id}: nobody takes what is ready, though a slot is free`);
  }
  return wrong;
}

/** How many of its sub-requests could be taken now. */
export function readyOf({ counts, due }: Picture): number {
  const now = serverNow();
  const unread = counts.ready + counts.delayed - Object.keys(due).length;
  return unread + Object.values(due).filter((at) => at <= now).length;
}

/** Whether there is nothing left to do, ever. */
export function isOver(stage: Stage, cast: Cast): boolean {
  if (!cast.done || stage.patience || stage.anybodyFrozen) return false;
  if (Object.keys(stage.queue?.open ?? {}).length > 0) return false;
  return [...stage.pictures.values()].every(({ status }) => !LIVE.includes(status));
}

/** At the end, of one request. `undisturbed`: nothing went wrong, and no time was lost. */
export function wrongAtEnd(
  expected: Expected,
  stage: Stage,
  cast: Cast,
  undisturbed: boolean,
): string[] {
  const { id, payloads } = expected;
  const picture = stage.pictures.get(id);
  const status = picture?.status ?? 'none';
  if (status === 'dropped' && cast.dropped.has(id) && id in (stage.queue?.history ?? {}))
    return [`${id} is dropped, and the queue remembers it`];
  if (!picture || isAbsent(picture)) {
    if (expected.mayGo) return [];
    const may = expected.byProducer && !cast.submitted.has(id) && !undisturbed;
    return may ? [] : [`${id} is ${status}`];
  }
  const { counts, outcome, results } = picture;
  const wrong = wrongWithRequest(id, picture, cast.runs);
  const known = cast.submitted.has(id) || (undisturbed && !expected.mayGo);
  const sure = !expected.byProducer || known;
  const mayCancel = expected.isCancelled || (expected.mayCancel && !undisturbed);
  if (sure && counts.total !== payloads.length) wrong.push(`it has ${counts.total} sub-requests`);
  if (outcome === 'cancelled' && !mayCancel) wrong.push('nobody cancelled it');
  for (const { index, failed } of results) {
    if (cast.runs.of(id, index).began === 0) wrong.push(`${index} has an outcome and never ran`);
    if (isCrash(picture, index)) continue;
    if (failed !== payloads[index]?.includes(BAD))
      wrong.push(`${index} ${failed ? 'failed' : 'succeeded'}, as its handler does not`);
  }
  for (const one of cast.notices) if (one.id === id) wrong.push(...wrongNotice(one, picture));
  return wrong.map((what) => `${id}: ${what}`);
}
