import type { ProducerSigns, RequestStatus } from '@piecework/notifier';
import { shownText } from '@piecework/protocol/contract';
import { ago, costParts } from '@piecework/views/format';
import { shareBar } from '../terminal/bar.js';
import { columnsOf, shortened, wrapped } from '../terminal/table.js';

const COUNTS = ['ready', 'inFlight', 'delayed', 'succeeded', 'failed', 'cancelled'] as const;

/** What `status` prints. */
export function statusText(seen: RequestStatus): string {
  const { counts, readAt } = seen;
  const done = counts.succeeded + counts.failed + counts.cancelled;
  const total = counts.total.toLocaleString('en-US');
  const number = (n: number) => n.toLocaleString('en-US').padStart(total.length);
  const time = (at: number) => `${ago(at, readAt)} (${new Date(at).toISOString()})`;
  const lines = [
    `request     ${shownText(seen.id)}`,
    `status      ${seen.outcome ? `${seen.status} (${seen.outcome})` : seen.status}`,
    `why         ${wrapped(seen.why, 12)}`,
    `generation  ${seen.generation}`,
    `priority    ${seen.priority}`,
    `limit       ${seen.limit?.toLocaleString('en-US') ?? 'none'}`,
    ...(seen.task ? [`task        ${shownText(seen.task)}`] : []),
    ...(seen.producer && seen.waitingFor !== 'producer'
      ? [`producer    ${wrapped(producerText(seen, seen.producer), 12)}`]
      : []),
    `progress    ${shareBar(done, counts.total, 20)}`,
    `total       ${total}`,
    ...COUNTS.map(
      (name) =>
        `  ${name.padEnd(10)}${number(counts[name])}${name === 'inFlight' ? aheadText(seen) : ''}`,
    ),
    `cost        ${wrapped(
      costParts(seen.cost)
        .map((part) => shownText(part.join(' ')))
        .join(', '),
      12,
    )}`,
    `created     ${time(seen.createdAt)}`,
    ...(seen.completedAt ? [`completed   ${time(seen.completedAt)}`] : []),
  ];
  return lines
    .flatMap((line) => line.split('\n'))
    .map((line) => shortened(line, columnsOf(process.stdout)))
    .join('\n');
}

/** ' (at most 20 run; workers read ahead)', where some of those in flight cannot run. */
const aheadText = ({ counts, running }: RequestStatus) =>
  running < counts.inFlight
    ? ` (at most ${running.toLocaleString('en-US')} run; workers read ahead)`
    : '';

function producerText(
  { readAt }: RequestStatus,
  { seenAt, leaseEndsAt, ifLost }: ProducerSigns,
): string {
  const seconds = (ms: number) => `${Math.max(0, Math.round(ms / 1_000))} s`;
  const end = ifLost === 'seal' ? 'sealed' : 'cancelled';
  const seen = `last seen ${seconds(readAt - seenAt)} ago`;
  if (leaseEndsAt <= readAt)
    return `${seen}; the request is ${end} when a worker runs, or somebody waits for it`;
  return `${seen}; if it stays silent, the request is ${end} in about ${seconds(leaseEndsAt - readAt)}`;
}
