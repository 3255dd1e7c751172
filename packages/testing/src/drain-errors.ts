import { type KeptError, PieceworkError } from '@piecework/protocol';
import type { CompletionOutcome, Counts, Failure, RequestDetails } from 'piecework';

/** Most characters of a payload in a message. */
const SHOWN = 60;

const shown = (payload: unknown): string => {
  const text = JSON.stringify(payload) ?? '';
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
};

const said = ({ name, message }: KeptError) => `${name}: ${message}`;

const countsOf = (counts: Counts) =>
  Object.entries(counts)
    .filter(([name, n]) => n > 0 && name !== 'total')
    .map(([name, n]) => `${n} ${name === 'inFlight' ? 'in flight' : name}`)
    .join(', ');

/** A request that was drained did not succeed. The message lists the failures, the first 20 of them. */
export class RequestFailuresError extends PieceworkError {
  override readonly name = 'RequestFailuresError';
  readonly outcome: CompletionOutcome;
  /** In the order of the items, at most 20; `outcome.counts.failed` says how many there are. */
  readonly failures: readonly Failure[];

  constructor(outcome: CompletionOutcome, failures: readonly Failure[]) {
    const { requestId, status, counts, endReason } = outcome;
    const early = endReason ? ` (${endReason})` : '';
    const rows = failures.map(({ index, payload, attempts, crashes, error }) => {
      const runs = attempts === 1 ? '' : `, ${attempts} attempts`;
      const ended = crashes > 0 ? `, ${crashes} crashes` : '';
      return `  item ${index} ${shown(payload)}${runs}${ended}: ${said(error)}`;
    });
    const more = counts.failed - failures.length;
    if (more > 0) rows.push(`  and ${more} more`);
    const head = `request ${requestId} ${status}${early}: ${countsOf(counts)} of ${counts.total}`;
    super([head, ...rows].join('\n'), { code: 'REQUEST_FAILURES' });
    this.outcome = outcome;
    this.failures = failures;
  }
}

/** A request that was drained cannot end as it is, or has not ended in time. The message says what it waits for. */
export class StuckError extends PieceworkError {
  override readonly name = 'StuckError';
  readonly status: RequestDetails;

  /** `timeoutMs`: how long it was given; 0: it cannot end. */
  constructor(status: RequestDetails, timeoutMs: number) {
    const { id, counts, why, deadline } = status;
    const cannot =
      deadline === undefined
        ? 'cannot end'
        : `cannot end before its deadline, ${new Date(deadline).toISOString()}`;
    const what = timeoutMs > 0 ? `has not ended within ${timeoutMs} ms` : cannot;
    super(`request ${id} ${what}: ${countsOf(counts) || 'no items'}; ${why}`, {
      code: 'STUCK',
    });
    this.status = status;
  }
}
