import type { RegisteredWorker } from '@piecework/protocol';
import { type Finding, many, ok, some, warning } from '../finding.js';
import type { RequestSnapshot } from './request-snapshot.js';

/** Round trips, and clocks that were set by a little, are no finding. */
const SLACK_MS = 1_000;

const HEALS =
  'nothing while a worker runs: it heals by itself; let chrony or ntpd correct the clock in small steps';

/** Checks for times of the queue's side that lie ahead of its server's clock. `now`: time of that server. */
export function queueTimesAhead(
  now: number,
  times: Readonly<Record<'tickedAt' | 'resumedAt' | 'shiftMs', string | null>>,
  workers: readonly RegisteredWorker[],
): Finding {
  const { tickedAt, resumedAt, shiftMs } = times;
  const aheadMs = Math.max(Number(tickedAt), Number(resumedAt)) - now;
  const ahead = workers.filter(({ seenAt }) => seenAt - now > SLACK_MS);
  const what = [
    ...(aheadMs > SLACK_MS ? [`the last tick lies ${seconds(aheadMs)} ahead`] : []),
    ...(ahead.length > 0
      ? [
          `signs of life of ${many(ahead.length, 'worker')} lie ahead: ${some(ahead.map(({ id }) => id))}`,
        ]
      : []),
    ...(shiftMs ? [`the agenda is being shifted by ${seconds(Number(shiftMs))}`] : []),
  ];
  // cure: the doctor reports times of a queue that lie ahead
  if (what.length === 0) return ok('clocks', 'no time of the queue lies ahead of its server');
  return warning('clocks', `the clock of the queue's server went back: ${what.join('; ')}`, HEALS);
}

/** Which times of a request lie further ahead than they can; undefined: none. */
export function requestTimesAhead(
  { fields, dueLast = 0 }: Pick<RequestSnapshot, 'fields' | 'dueLast'>,
  now: number,
): string | undefined {
  const beyond = (until: string | undefined, ms: string | undefined) =>
    until && ms && Number(until) > now + Number(ms) + SLACK_MS;
  const leases = Object.keys(fields).filter(
    (field) =>
      field.startsWith('lease:') && beyond(fields[field], fields[field.replace('lease:', 'term:')]),
  );
  // cure: the doctor reports leases that lie ahead
  if (leases.length > 0)
    return `leases that end later than their duration allows: ${some(leases.map((field) => field.slice(6)))}`;
  if (fields['status'] === 'open' && beyond(fields['producerUntil'], fields['leaseMs']))
    return 'the lease of its producer ends later than its duration allows';
  if (beyond(String(dueLast), fields['longestDelayMs']))
    return `a sub-request waits ${seconds(dueLast - now)} for its next attempt, longer than any delay that was asked for`;
  return undefined;
}

export const TIMES_AHEAD_ADVICE = HEALS;

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
