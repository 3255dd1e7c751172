import { sameCounts } from './delivery.js';
import type { Evidence } from './evidence.js';
import type { Findings } from './findings.js';
import type { Request, Seal, Told } from './requests.js';
import type { Upheavals } from './upheavals.js';
import type { Verdict } from './verdict.js';

/*
 * Completion: every request of which something was acknowledged completes, and everybody who asks
 * is told the same of it.
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
    const lives = new Set(request.told.map(({ generation }) => generation)).size;
    if (lives > 0) {
      sums.completed += 1;
      generations.first += 1;
      generations.later += lives - 1;
      judgeTold(request, evidence.upheavals, findings);
    } else if (
      Number.isFinite(request.acknowledgedMs) &&
      request.droppedEarlyMs === Number.POSITIVE_INFINITY
    ) {
      // What was dropped completes no more. Before an acknowledgement nobody was promised anything: it may never have come to be.
      findings.add('never completed', request.id);
    }
  }
  return { ...sums, told: evidence.told, generations };
}

/**
 * Of one life everybody has to be told the same. There is a second one only if somebody redrove the
 * request; who waits since then is told of the old one no more, nor of one that was dropped. What the server has
 * lost since may be told otherwise.
 */
function judgeTold(request: Request, upheavals: Upheavals, findings: Findings): void {
  const wrong =
    wrongSeal(request, upheavals) ?? wrongTold(request, upheavals) ?? wrongLife(request, upheavals);
  if (wrong) findings.add('completed twice', `${request.id}: ${wrong}`);
}

/** Who submits it once more, as a life was lost, finds the one that a redrive began since. */
function wrongSeal({ seals, laterLives }: Request, upheavals: Upheavals): string | undefined {
  const stand = seals.filter(({ fromMs, toMs }) => !upheavals.mayUndo(fromMs, toMs));
  let last: Seal | undefined;
  for (const seal of stand.sort((a, b) => a.toMs - b.toMs)) {
    const { generation, total } = seal;
    const before = last ?? seal;
    const isLater = generation > before.generation && laterLives.has(generation);
    if (total !== before.total || (generation !== before.generation && !isLater)) {
      const said = [before, seal].map((one) => `${one.generation} with ${one.total}`);
      return `sealed as ${said.join(' and as ')}`;
    }
    last = seal;
  }
  return undefined;
}

function wrongTold(request: Request, upheavals: Upheavals): string | undefined {
  const { redriveMs, goneMs } = request;
  const told = request.told.filter(({ ms }) => !upheavals.mayUndoHeard(ms));
  const isUndone = (fromMs: number) => upheavals.mayUndo(fromMs, Number.POSITIVE_INFINITY);
  const firstOf = new Map<number, Told>();
  for (const one of told) {
    const first = firstOf.get(one.generation) ?? one;
    firstOf.set(one.generation, first);
    const differs = one.status !== first.status || !sameCounts(one.counts, first.counts);
    const anew = firstOf.size > 1 && redriveMs === Number.POSITIVE_INFINITY;
    if (differs || anew) {
      const [other] = differs ? [first] : told;
      return [other, one].map((each) => JSON.stringify(each)).join(' and ');
    }
    if (one.generation < one.after && !isUndone(redriveMs))
      return `${one.generation} was told to who waited for ${one.after}`;
    if (one.beganMs > goneMs && !isUndone(goneMs))
      return 'it was told as complete after it was dropped';
  }
  return undefined;
}

/** What was sealed is the first life, or one redriven, and what the server has is one of those that were told. */
function wrongLife(request: Request, upheavals: Upheavals): string | undefined {
  const { told, inspected, sealed, laterLives } = request;
  // What nobody was told of may have been there before, or since.
  const heard = [...told, ...inspected].map(({ ms }) => ms);
  if (sealed) heard.push(sealed.toMs);
  if (heard.some((ms) => upheavals.mayUndoHeard(ms))) return undefined;
  const known = new Set(told.map(({ generation }) => generation));
  const first = Math.min(...known);
  const other =
    inspected.find(({ generation }) => !known.has(generation)) ??
    // Of the first life perhaps nobody was told.
    (sealed && sealed.generation > first && !laterLives.has(sealed.generation)
      ? sealed
      : undefined);
  return other && `generation ${first} was told, ${other.generation} was there`;
}
