import { ago } from '@piecework/dashboard/format';
import type { ProducerSigns, RequestStatus } from '@piecework/notifier';
import type { Command } from 'commander';
import { commonFlags } from '../flags/common-flags.js';
import { statusFlags } from '../flags/query-flags.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { runningTable } from '../output/running-table.js';
import { shareBar } from '../terminal/bar.js';
import { oneLine } from '../terminal/plain-text.js';
import { columnsOf, shortened, wrapped } from '../terminal/table.js';
import { openPiecework } from './open-piecework.js';

interface StatusValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  running: boolean;
  limit: number;
}

/** `status`: where a request is, and with `--running` which of its sub-requests run now. */
export function statusCommand(program: Command): void {
  const status = program
    .command('status')
    .argument('<id>')
    .description('show the status of a request');
  addFlags(status, commonFlags, statusFlags).action(
    async (id: string, given: Record<string, unknown>) => {
      const values = readFlags<StatusValues>(given, commonFlags, statusFlags);
      await using pw = await openPiecework(values);
      const request = pw.request(id);
      const seen = await request.status();
      if (!values.running) {
        console.log(values.json ? JSON.stringify(seen) : describe(seen));
        return;
      }
      const running = await request.running({ limit: values.limit });
      if (values.json) for (const one of running) console.log(JSON.stringify(one));
      else console.log(`${describe(seen)}\n\n${runningTable(running, seen)}`);
    },
  );
}

export const WHY_ENDED: Readonly<Record<NonNullable<RequestStatus['endReason']>, string>> = {
  deadline: 'early: its deadline passed',
  failures: 'early: too many sub-requests failed',
  cancel: 'early: somebody cancelled it',
  'producer-lost': 'early: its producer was lost before all items were in',
};

const COUNTS = ['ready', 'inFlight', 'delayed', 'succeeded', 'failed', 'cancelled'] as const;

function describe(seen: RequestStatus): string {
  const { counts, readAt } = seen;
  const done = counts.succeeded + counts.failed + counts.cancelled;
  const total = counts.total.toLocaleString('en-US');
  const number = (n: number) => n.toLocaleString('en-US').padStart(total.length);
  const time = (at: number) => `${ago(at, readAt)} (${new Date(at).toISOString()})`;
  const lines = [
    `request     ${seen.id}`,
    `status      ${seen.outcome ? `${seen.status} (${seen.outcome})` : seen.status}`,
    `generation  ${seen.generation}`,
    `priority    ${seen.priority}`,
    `limit       ${seen.limit?.toLocaleString('en-US') ?? 'none'}`,
    ...(seen.task ? [`task        ${oneLine(seen.task)}`] : []),
    ...(seen.endReason ? [`ended       ${WHY_ENDED[seen.endReason]}`] : []),
    ...(seen.waiting ? [`waiting     ${wrapped(waitingText(seen), 12)}`] : []),
    ...(seen.producer && seen.waitingFor !== 'producer'
      ? [`producer    ${wrapped(producerText(seen, seen.producer), 12)}`]
      : []),
    `progress    ${shareBar(done, counts.total, 20)}`,
    `total       ${total}`,
    ...COUNTS.map(
      (name) =>
        `  ${name.padEnd(10)}${number(counts[name])}${name === 'inFlight' ? aheadText(seen) : ''}`,
    ),
    `created     ${time(seen.createdAt)}`,
    ...(seen.completedAt ? [`completed   ${time(seen.completedAt)}`] : []),
  ];
  return lines
    .flatMap((line) => line.split('\n'))
    .map((line) => shortened(line, columnsOf(process.stdout)))
    .join('\n');
}

/** Producers may be gone for good, or have forgotten to close the request. */
const waitingText = ({ id, waiting, waitingFor }: RequestStatus) =>
  waitingFor === 'producer' ? `${waiting} (\`piecework cancel ${id}\` ends it)` : `${waiting}`;

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
  return `last seen ${seconds(readAt - seenAt)} ago; if it stays silent, the request is ${end} in about ${seconds(leaseEndsAt - readAt)}`;
}
