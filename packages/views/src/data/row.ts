import type { RequestStatus } from 'piecework';
import { doneOf } from '../shape/format.js';
import type { Row } from '../shape/views.js';
import type { Privacy } from './private.js';

/** A rate follows what it measures within about this time. */
const SMOOTHED_OVER_MS = 8_000;
/** Two reads that are closer than this say nothing about a rate. */
const CLOSEST_MS = 700;

/** A row, and what the list knows besides. */
export interface KeptRow {
  readonly row: Row;
  /** In small letters: id, task, metadata. */
  readonly searched: string;
  readonly readAt: number;
  /** The last pass through the queue that found it. */
  readonly pass: number;
  /** When its rate was measured last, and with how many settled. */
  readonly ratedAt: number;
  readonly ratedDone: number;
}

/**
 * @param told removes what the page may not know
 * @param before what was kept of the same request
 */
export function keptRow(
  status: RequestStatus,
  queue: string,
  privacy: Privacy,
  told: (text: string) => string,
  pass: number,
  before: KeptRow | undefined,
  now = Date.now(),
): KeptRow {
  const { inFlight, delayed, succeeded, failed, cancelled, total } = status.counts;
  const { running } = status;
  // What is read ahead waits, as what no worker has.
  const ahead = inFlight - running;
  const ready = status.counts.ready + ahead;
  const counts = { ready, running, delayed, succeeded, failed, cancelled, total };
  const done = doneOf(counts);
  const same = before && before.row.generation === status.generation ? before : undefined;
  const passed = same ? now - same.ratedAt : 0;
  const isRated = same !== undefined && passed >= CLOSEST_MS;
  const rate =
    status.status === 'complete' ? 0 : isRated ? rateOf(same, done, passed) : (same?.row.rate ?? 0);
  const about = { queue, requestId: status.id, task: status.task ?? '' };
  // Metadata never change within a generation.
  const metadata = same ? same.row.metadata : privacy.metadata(status.metadata, about);
  const row: Row = {
    id: status.id,
    task: status.task ?? '',
    status: status.status,
    outcome: status.outcome ?? '',
    endReason: status.endReason ?? '',
    waitingFor: status.waitingFor ?? '',
    why: whyOf(status, privacy, told, about),
    generation: status.generation,
    priority: status.priority,
    limit: status.limit,
    createdAt: status.createdAt,
    completedAt: status.completedAt ?? 0,
    heldUntil: status.heldUntil ?? 0,
    deadline: status.deadline ?? 0,
    ahead,
    counts,
    rate,
    // While it is open, more may come in.
    etaMs:
      rate > 0 && status.status === 'sealed' ? Math.round(((total - done) / rate) * 1_000) : null,
    metadata,
  };
  return {
    row,
    searched: same
      ? same.searched
      : `${status.id}\n${status.task ?? ''}\n${metadata}`.toLowerCase(),
    readAt: now,
    pass,
    ratedAt: isRated || !same ? now : same.ratedAt,
    ratedDone: isRated || !same ? done : same.ratedDone,
  };
}

/**
 * The message of an error is masked as elsewhere, and what workers report of their servers, too. Ids and times stay as
 * they are.
 */
function whyOf(
  { why, retry }: RequestStatus,
  privacy: Privacy,
  told: (text: string) => string,
  about: Parameters<Privacy['message']>[1],
): string {
  const message = retry?.lastError?.message ?? '';
  const [before = '', reported] = why.split(/(?<= takes no work: )/);
  const said = reported === undefined ? before : before + told(reported);
  return message === '' ? said : said.replaceAll(message, () => privacy.message(message, about));
}

function rateOf(before: KeptRow, done: number, passed: number): number {
  const measured = Math.max(0, ((done - before.ratedDone) * 1_000) / passed);
  if (before.row.rate === 0) return round(measured);
  const weight = 1 - Math.exp(-passed / SMOOTHED_OVER_MS);
  const smooth = before.row.rate + (measured - before.row.rate) * weight;
  return smooth < 0.005 ? 0 : round(smooth);
}

/** Three digits are enough, and the page is not sent a change where there is none. */
const round = (n: number) => Number(n.toPrecision(3));
