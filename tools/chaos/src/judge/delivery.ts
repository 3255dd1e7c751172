import type { Evidence } from '../evidence/evidence.js';
import type { Findings } from '../evidence/findings.js';
import type { Counts, NotThere, Reading, Request, Seal, Told } from '../evidence/requests.js';
import type { Run } from '../evidence/runs.js';
import { LATE_MS, type Upheavals, undoes } from '../evidence/upheavals.js';
import type { Verdict } from './verdict.js';

/*
 * Delivery: each acknowledged item was run and has one result, its own; nothing else has a result; and the counts are
 * those of the results.
 */

const UNSETTLED = ['ready', 'inFlight', 'delayed'];

export function judgeDelivery(evidence: Evidence, findings: Findings): Verdict['items'] {
  const ran = new Map<number, Uint8Array>();
  for (const [number, runs] of evidence.runs.byRequest()) {
    ran.set(number, indexesThatRan(evidence.requests.at(number), runs, findings));
  }
  const sums = { attempted: 0, acknowledged: 0, settled: 0, succeeded: 0, failed: 0, cancelled: 0 };
  for (const request of evidence.requests) {
    const { attempted, acknowledged } = request.items();
    sums.attempted += total(attempted);
    sums.acknowledged += total(acknowledged);
    const { upheavals } = evidence;
    const stands = request.acks.filter(({ fromMs, toMs }) => !upheavals.mayUndo(fromMs, toMs));
    const early = request.notThere.find(
      (one) =>
        one.ms < request.dropMs &&
        stands.some(({ toMs }) => toMs < one.ms) &&
        !isOfLostGeneration(request, one, upheavals) &&
        !isOfLostSubmission(request, one, upheavals),
    );
    if (early !== undefined) findings.add('lost', `${request.id}: acknowledged, and not found`);
    const counts = lastTold(request)?.counts;
    if (!counts) continue;
    const { succeeded = 0, failed = 0, cancelled = 0 } = counts;
    sums.succeeded += succeeded;
    sums.failed += failed;
    sums.cancelled += cancelled;
    sums.settled += succeeded + failed + cancelled;
    judgeCounts(request, evidence, findings);
    const whole = request.readings.filter(({ over }) => over);
    if (whole.length === 0 && request.droppedEarlyMs === Number.POSITIVE_INFINITY) {
      findings.add('cut short', `${request.id}: nobody read its results to their end`);
    }
    const started = ran.get(request.number) ?? new Uint8Array();
    for (const reading of whole) {
      const items = { attempted, acknowledged, started };
      // Ended before all of it while a part, acknowledged and lost, was not there again; or begun again since.
      const isCutOff =
        request.isBegunAgain ||
        (stands.length < request.acks.length &&
          (Math.min(request.cancelMs, request.deadlineMs) < Number.POSITIVE_INFINITY ||
            request.told.some(({ status }) => status === 'cancelled')));
      const isOlder = upheavals.mayUndo(reading.beganMs, reading.endedMs);
      judgeReading(request, reading, { ...items, isCutOff, isOlder }, findings);
    }
  }
  return { ...sums, read: evidence.read };
}

/**
 * Whether a loss of writes may have undone a redrive while a process waited: the request is complete as before it, and
 * the generation that the process waited for is lost. A redrive that was acknowledged long enough after the loss is
 * there.
 */
function isOfLostGeneration({ redrives }: Request, told: NotThere, upheavals: Upheavals): boolean {
  const { ms, isLost } = told;
  const stands = redrives.some(
    ({ fromMs, toMs }) => toMs < ms - LATE_MS && !upheavals.mayUndo(fromMs, toMs),
  );
  const wasUndone = lossesDuring(told, upheavals).some((loss) =>
    redrives.some((redrive) => undoes(loss, redrive)),
  );
  return isLost && wasUndone && !stands;
}

/**
 * Whether a process waited for a generation that a loss of writes undid, and the request was submitted again under a
 * smaller one: the server had forgotten the number as well, and its clock had gone back. So the process cannot take that
 * generation for the one that it waits for, or for a later one.
 */
function isOfLostSubmission({ seals }: Request, told: NotThere, upheavals: Upheavals): boolean {
  const losses = lossesDuring(told, upheavals);
  const isAgain = (seal: Seal, lost: Seal) =>
    seal.toMs > lost.toMs && seal.toMs < told.ms && seal.generation < lost.generation;
  const lost = seals.filter((seal) => losses.some((loss) => undoes(loss, seal)));
  return told.isLost && lost.some((one) => seals.some((seal) => isAgain(seal, one)));
}

/** The losses of writes that ended while that process waited. */
const lossesDuring = ({ ms, beganMs }: NotThere, { losses }: Upheavals) =>
  losses.filter(({ toMs }) => beganMs < toMs && ms > toMs);

function indexesThatRan(request: Request, runs: readonly Run[], findings: Findings): Uint8Array {
  const { attempted } = request.items();
  const ran = new Uint8Array(attempted.length);
  for (const { index } of runs) {
    if (attempted[index]) ran[index] = 1;
    else findings.add('unexpected', `${request.id}: index ${index} ran, and nobody added it`);
  }
  return ran;
}

const lastTold = ({ told }: Request) =>
  told.reduce<Told | undefined>(
    (last, one) => (last && last.generation >= one.generation ? last : one),
    undefined,
  );

/**
 * Whether all producers of the request were dead for so long that it may have been given up. While one is dead, a
 * second upheaval in a row gives no second grace (docs/decisions/0010).
 */
function wasLeft(
  { producers, leaseMs, toldMs }: Request,
  { processes, upheavals }: Evidence,
): boolean {
  const byTime = producers.toSorted((a, b) => a.ms - b.ms);
  return byTime.some(({ process }, i) => {
    const { killMs } = processes.named(process);
    const next = byTime[i + 1];
    if (killMs === undefined || killMs > toldMs || next?.process === process) return false;
    const nextMs = next?.ms ?? Number.POSITIVE_INFINITY;
    const graces = upheavals.times().filter(({ fromMs }) => Math.abs(fromMs - killMs) < leaseMs);
    return nextMs - killMs > leaseMs * LEFT || graces.length > 1;
  });
}

/** The successor of a killed producer may be too late if it comes after this share of the lease. */
const LEFT = 0.5;

function judgeCounts(request: Request, evidence: Evidence, findings: Findings): void {
  const { upheavals } = evidence;
  const { sealed, id } = request;
  // What was begun again after a drop has the counts of its last life.
  const last = Math.max(...[...request.told, ...request.inspected].map((one) => one.generation));
  const ofLast = <T extends { readonly generation: number }>(some: readonly T[]) =>
    request.isBegunAgain ? some.filter(({ generation }) => generation === last) : some;
  const [allTold, inspected] = [ofLast(request.told), ofLast(request.inspected)];
  const stands = <T extends { readonly ms: number; readonly sinceMs?: number }>(
    some: readonly T[],
  ) => some.filter((one) => !upheavals.mayUndoHeard(one));
  const told = stands(allTold);
  const heard = told.map(({ counts }) => counts);
  const said = [...heard, ...stands(inspected).map(({ counts }) => counts)];
  const wereAll = told.length > 0 && told.length === allTold.length;
  const seal = request.acks.every(({ fromMs, toMs }) => !upheavals.mayUndo(fromMs, toMs))
    ? sealed
    : undefined;
  const sum = ({ total: _, ...counts }: Counts) => Object.values(counts).reduce((a, b) => a + b, 0);
  const isCalled = Math.min(request.cancelMs, request.deadlineMs) < Number.POSITIVE_INFINITY;
  const uncalled = !isCalled && !wasLeft(request, evidence);
  const wrong =
    said.find((counts) => sum(counts) !== counts['total']) ??
    // It was not cancelled, and had no deadline.
    said.find((counts) => uncalled && (counts['cancelled'] ?? 0) > 0) ??
    said.find((counts) => UNSETTLED.some((state) => (counts[state] ?? 0) > 0)) ??
    said.find((counts) => seal && seal.total !== counts['total']) ??
    // Waiters that got different answers are reported by completion.ts.
    said.find((counts) => wereAll && !heard.some((each) => sameCounts(each, counts)));
  if (!wrong) return;
  const sealedAt = sealed ? `, sealed at ${sealed.total}` : '';
  findings.add('miscounted', `${id}: ${JSON.stringify(wrong)}${sealedAt}`);
}

export function sameCounts(a: Counts, b: Counts): boolean {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every(
    (state) => (a[state] ?? 0) === (b[state] ?? 0),
  );
}

interface Items {
  readonly attempted: Uint8Array;
  readonly acknowledged: Uint8Array;
  readonly started: Uint8Array;
  /** Whether items may be missing: it ended before items that were lost had been added again. */
  readonly isCutOff: boolean;
  /** Whether the server lost writes meanwhile: counts and results may be from before and from after. */
  readonly isOlder: boolean;
}

function judgeReading(
  { id }: Request,
  { process, counts, index: indexes, item: values }: Reading,
  { attempted, acknowledged, started, isCutOff, isOlder }: Items,
  findings: Findings,
): void {
  const seen = new Uint8Array(attempted.length);
  const got = { succeeded: 0, failed: 0 };
  for (let row = 0; row < indexes.length; row += 1) {
    const index = indexes.at(row);
    const value = values.at(row);
    const where = `${id}: index ${index}, read by ${process}`;
    if (!attempted[index]) {
      findings.add('unexpected', `${where}: nobody added it`);
      continue;
    }
    if (seen[index]) {
      findings.add('counted twice', `${where}: a second result`);
      continue;
    }
    seen[index] = 1;
    got[Number.isNaN(value) ? 'failed' : 'succeeded'] += 1;
    if (!Number.isNaN(value) && value !== index) {
      findings.add('unexpected', `${where}: the value is that of item ${value}`);
    }
    if (!started[index]) findings.add('lost', `${where}: settled, and never ran`);
  }
  // Cancelled items have no result. The journals do not say which items those are.
  let missing = -(counts['cancelled'] ?? 0);
  const gone: number[] = [];
  for (const [index, acked] of acknowledged.entries()) {
    if (!acked || seen[index]) continue;
    missing += 1;
    if (gone.length < 5) gone.push(index);
  }
  if (missing > 0 && !isCutOff) {
    findings.add('lost', `${id}: no result of ${missing} (${gone}…), read by ${process}`, missing);
  }
  if (isOlder || isCutOff) return;
  // Lost results are reported above. Apart from them, the counts have to be those of the results.
  const slack = Math.max(0, missing);
  const wrong = (['succeeded', 'failed'] as const).some((state) => {
    const said = counts[state] ?? 0;
    return said < got[state] || said > got[state] + slack;
  });
  if (!wrong) return;
  const [said, read] = [counts, got].map((each) => JSON.stringify(each));
  findings.add('miscounted', `${id}: ${said} counted, ${read} read by ${process}`);
}

const total = (marks: Uint8Array): number => marks.reduce((sum, mark) => sum + mark, 0);
