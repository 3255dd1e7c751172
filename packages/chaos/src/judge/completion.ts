import { sameCounts } from './delivery.js';
import type { Evidence } from './evidence.js';
import type { Findings } from './findings.js';
import type { Request } from './requests.js';
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
    const lives = new Set(request.told.map(({ generation }) => generation)).size;
    if (lives > 0) {
      sums.completed += 1;
      generations.first += 1;
      generations.later += lives - 1;
      judgeTold(request, findings);
    } else if (Number.isFinite(request.acknowledgedMs)) {
      // Before an acknowledgement nobody was promised anything: it may never have come to be.
      findings.add('never completed', request.id);
    }
  }
  return { ...sums, told: evidence.told, generations };
}

/** An id is used for one life only in these runs, so whatever is told of it has to be the same. */
function judgeTold({ id, told, inspected, sealed }: Request, findings: Findings): void {
  const [first] = told;
  if (!first) return;
  const other = told.find(
    ({ generation, status, counts }) =>
      generation !== first.generation ||
      status !== first.status ||
      !sameCounts(counts, first.counts),
  );
  if (other) {
    const said = [first, other].map((one) => JSON.stringify(one));
    findings.add('completed twice', `${id}: ${said.join(' and ')}`);
    return;
  }
  const seen = [...inspected, ...(sealed ? [sealed] : [])];
  const later = seen.find(({ generation }) => generation !== first.generation);
  if (!later) return;
  findings.add(
    'completed twice',
    `${id}: generation ${first.generation} was told, ${later.generation} was there`,
  );
}
