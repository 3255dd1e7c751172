import type { Evidence } from '../evidence/evidence.js';
import type { Findings } from '../evidence/findings.js';
import type { Request, Seal, Told } from '../evidence/requests.js';
import type { Upheavals } from '../evidence/upheavals.js';
import { sameCounts } from './delivery.js';
import type { Verdict } from './verdict.js';

/*
 * Completion: every request for which a write was acknowledged completes, and all waiters get the same answer about it.
 */

export function judgeCompletion(evidence: Evidence, findings: Findings): Verdict['requests'] {
  const sums = { opened: 0, completed: 0, dropped: 0 };
  const generations = { first: 0, later: 0 };
  for (const request of evidence.requests) {
    if (!Number.isNaN(request.openedMs)) sums.opened += 1;
    if (request.dropped) sums.dropped += 1;
    const unsaid = request.expiredMs.find(
      (ms) => ms < request.dropMs && request.acknowledgedMs < ms,
    );
    if (unsaid !== undefined && request.droppedEarlyMs === Number.POSITIVE_INFINITY)
      findings.add(
        'told as completed',
        `${request.id}: expired, it is said, and nobody dropped it`,
      );
    const generationsSeen = new Set(request.told.map(({ generation }) => generation)).size;
    if (generationsSeen > 0) {
      sums.completed += 1;
      generations.first += 1;
      generations.later += generationsSeen - 1;
      judgeTold(request, evidence.upheavals, findings);
    } else if (
      Number.isFinite(request.acknowledgedMs) &&
      request.droppedEarlyMs === Number.POSITIVE_INFINITY
    ) {
      // A dropped request does not complete. Without an acknowledgement nothing was promised: it may never have
      // existed.
      findings.add('never completed', request.id);
    }
  }
  return { ...sums, told: evidence.told, generations };
}

/**
 * All waiters must get the same answer about one generation. There is a second generation only if the request was
 * redriven. Waiters that come after that must not get the answer of the old one, nor that of a dropped request. If the
 * server has lost writes since, answers may differ. A request that was dropped while a producer still submitted it is
 * begun again, as another generation.
 */
function judgeTold(request: Request, upheavals: Upheavals, findings: Findings): void {
  const wrong =
    wrongSeal(request, upheavals) ??
    wrongTold(request, upheavals) ??
    wrongGeneration(request, upheavals);
  if (wrong) findings.add('completed twice', `${request.id}: ${wrong}`);
}

/**
 * All seals must be the same, except that a producer that submits the request once more, after a loss, may find the
 * generation that a redrive began since.
 */
function wrongSeal(
  { seals, laterGenerations, isBegunAgain }: Request,
  upheavals: Upheavals,
): string | undefined {
  const stand = seals.filter(({ fromMs, toMs }) => !upheavals.mayUndo(fromMs, toMs));
  let last: Seal | undefined;
  for (const seal of stand.sort((a, b) => a.toMs - b.toMs)) {
    const { generation, total } = seal;
    const before = last ?? seal;
    const isLater =
      generation > before.generation && (isBegunAgain || laterGenerations.has(generation));
    if (total !== before.total || (generation !== before.generation && !isLater)) {
      const said = [before, seal].map((one) => `${one.generation} with ${one.total}`);
      return `sealed as ${said.join(' and as ')}`;
    }
    last = seal;
  }
  return undefined;
}

function wrongTold(request: Request, upheavals: Upheavals): string | undefined {
  const { redriveMs, goneMs, isBegunAgain } = request;
  const told = request.told.filter((one) => !upheavals.mayUndoHeard(one));
  const isUndone = (fromMs: number) => upheavals.mayUndo(fromMs, Number.POSITIVE_INFINITY);
  const firstOf = new Map<number, Told>();
  for (const one of told) {
    const first = firstOf.get(one.generation) ?? one;
    firstOf.set(one.generation, first);
    const differs = one.status !== first.status || !sameCounts(one.counts, first.counts);
    const anew = firstOf.size > 1 && redriveMs === Number.POSITIVE_INFINITY && !isBegunAgain;
    if (differs || anew) {
      const [other] = differs ? [first] : told;
      return [other, one].map((each) => JSON.stringify(each)).join(' and ');
    }
    if (one.generation < one.after && !isUndone(redriveMs))
      return `${one.generation} was told to who waited for ${one.after}`;
    if (one.beganMs > goneMs && !isUndone(goneMs) && !isBegunAgain)
      return 'it was told as complete after it was dropped';
  }
  return undefined;
}

/** The sealed generation is the first or a redriven one, and the one on the server is one that was reported. */
function wrongGeneration(request: Request, upheavals: Upheavals): string | undefined {
  const { told, inspected, sealed, laterGenerations, isBegunAgain } = request;
  // After a loss, there may be generations that were never reported.
  const heard: { ms: number; sinceMs?: number }[] = [...told, ...inspected];
  if (sealed) heard.push({ ms: sealed.toMs });
  if (heard.some((one) => upheavals.mayUndoHeard(one))) return undefined;
  if (isBegunAgain) return undefined;
  const known = new Set(told.map(({ generation }) => generation));
  const first = Math.min(...known);
  const other =
    inspected.find(({ generation }) => !known.has(generation)) ??
    // Perhaps the first generation was never reported to a waiter.
    (sealed && sealed.generation > first && !laterGenerations.has(sealed.generation)
      ? sealed
      : undefined);
  return other && `generation ${first} was told, ${other.generation} was there`;
}
