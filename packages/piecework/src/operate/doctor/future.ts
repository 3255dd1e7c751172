import type { RegisteredWorker } from '@piecework/protocol';
import { type Finding, many, ok, some, warning } from './finding.js';
import type { RequestLook } from './request-look.js';

/** The way to a server, and clocks that were set by a hair, are no finding. */
const SLACK_MS = 1_000;

const HEALS =
  'nothing, if somebody looks at the agenda: it heals by itself; keep the clock with chrony or ntpd in small steps';

/** Times that the queue's side keeps and that lie ahead of its server's clock. `now`: time of that server. */
export function queueTimesAhead(
  now: number,
  times: Readonly<Record<'tickedAt' | 'resumedAt' | 'shiftMs', string | null>>,
  workers: readonly RegisteredWorker[],
): Finding {
  const { tickedAt, resumedAt, shiftMs } = times;
  const aheadMs = Math.max(Number(tickedAt), Number(resumedAt)) - now;
  const ahead = workers.filter(({ seenAt }) => seenAt - now > SLACK_MS);
  const what = [
    ...(aheadMs > SLACK_MS ? [`the last look lies ${seconds(aheadMs)} ahead`] : []),
    ...(ahead.length > 0
      ? [
          `signs of life of ${many(ahead.length, 'worker')} lie ahead: ${some(ahead.map(({ id }) => id))}`,
        ]
      : []),
    ...(shiftMs ? [`the agenda is being shifted by ${seconds(Number(shiftMs))}`] : []),
  ];
  if (what.length === 0) return ok('clocks', 'no time of the queue lies ahead of its server');
  return warning('clocks', `the clock of the queue's server went back: ${what.join('; ')}`, HEALS);
}

/** Why times of a request lie further ahead than they can; undefined: none does. */
export function requestTimesAhead(
  { fields, dueLast = 0 }: Pick<RequestLook, 'fields' | 'dueLast'>,
  now: number,
): string | undefined {
  const beyond = (until: string | undefined, ms: string | undefined) =>
    until && ms && Number(until) > now + Number(ms) + SLACK_MS;
  const leases = Object.keys(fields).filter(
    (field) =>
      field.startsWith('lease:') && beyond(fields[field], fields[field.replace('lease:', 'term:')]),
  );
  if (leases.length > 0)
    return `leases that end later than they last: ${some(leases.map((field) => field.slice(6)))}`;
  if (fields['status'] === 'open' && beyond(fields['producerUntil'], fields['leaseMs']))
    return 'the lease of its producer ends later than it lasts';
  if (beyond(String(dueLast), fields['longestDelayMs']))
    return `a sub-request waits ${seconds(dueLast - now)} to be tried again, longer than any delay that was asked for`;
  return undefined;
}

export const TIMES_AHEAD_ADVICE = HEALS;

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
