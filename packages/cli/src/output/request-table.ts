import type { RequestStatus } from '@piecework/notifier';
import { shownText } from '@piecework/protocol/contract';
import { ago, duration, percent, WAIT_WORDS } from '@piecework/views/format';
import cliTruncate from 'cli-truncate';
import { shareBar } from '../terminal/bar.js';
import { paint, type Tone } from '../terminal/colour.js';
import { type Cell, type Column, columnsOf, plainTable } from '../terminal/table.js';

/** The colour of a status; of what waits for somebody, that of a warning. */
const TONES: Readonly<Record<string, Tone>> = {
  ...{ succeeded: 'good', failed: 'bad', cancelled: 'quiet' },
  ...{ paused: 'warning', 'queue paused': 'warning', 'no ready worker': 'warning' },
  ...{ 'no handler': 'warning', 'worker silent': 'warning' },
  ...{ 'producer silent': 'warning', overdue: 'warning', 'Redis full': 'warning' },
};

const REQUEST_COLUMNS: readonly Column[] = [
  { head: 'request', shrinks: true },
  { head: 'status', shrinks: true, tone: (text) => TONES[text] },
  { head: 'progress', short: '%', right: true },
  { head: 'priority', short: 'prio', right: true },
  { head: 'limit', right: true },
  { head: 'waiting', short: 'wait', right: true },
  { head: 'running', short: 'run', right: true },
  { head: 'delayed', short: 'delay', right: true },
  { head: 'done', right: true },
  {
    head: 'failed',
    short: 'fail',
    right: true,
    tone: (text) => (text === '0' ? undefined : 'bad'),
  },
  { head: 'total', right: true },
  { head: 'created', right: true, drops: true },
];

/** With ids that a last line explains, if they are shortened. */
const LISTED_COLUMNS = REQUEST_COLUMNS.map((column) => ({
  ...column,
  isId: column.head === 'request',
}));

/** After this part of its lease without a sign of life, a producer is shown as silent. */
const SILENT_PART = 0.5;

function statusCell(request: RequestStatus): Cell {
  const { outcome, status, waitingFor, heldUntil, readAt, producer, silentWorkers } = request;
  if (outcome) return outcome;
  const silent = silentWorkers.reduce((sum, { inFlight }) => sum + inFlight, 0);
  // Others may run the rest of it.
  if (waitingFor === 'lease' && silent < request.counts.inFlight) return status;
  if (waitingFor === 'time') {
    const ms = Math.max(0, (heldUntil ?? readAt) - readAt);
    return `due in ${duration(ms)}`;
  }
  if (producer && (!waitingFor || waitingFor === 'producer')) {
    const { seenAt, leaseEndsAt } = producer;
    const isSilent = readAt - seenAt > SILENT_PART * (leaseEndsAt - seenAt);
    return isSilent ? 'producer silent' : status;
  }
  return waitingFor ? WAIT_WORDS[waitingFor] : status;
}

/** What is read ahead, or ended and not settled yet, counts as waiting: what runs is never more than the limit. */
function requestRow(request: RequestStatus): Cell[] {
  const { id, priority, limit, counts, running, createdAt, readAt } = request;
  const { ready, inFlight, delayed, succeeded, failed, cancelled, total } = counts;
  const done = succeeded + failed + cancelled;
  const numbers = [ready + inFlight - running, running, delayed, done, failed, total];
  const progress = [shareBar(done, total), percent(done, total)] as const;
  const since = ago(createdAt, readAt);
  return [id, statusCell(request), progress, priority, limit ?? 'none', ...numbers, since];
}

/** The table of `list`: below each request why it is not further, or why it ended so. */
export function listedTable(requests: readonly RequestStatus[], whenEmpty: string): string {
  const columns = columnsOf(process.stdout);
  const below = requests.map(({ why }) => {
    const line = `  ${shownText(why)}`;
    return paint('quiet', Number.isFinite(columns) ? cliTruncate(line, columns) : line);
  });
  const [head, ...rows] = plainTable(LISTED_COLUMNS, requests.map(requestRow), whenEmpty).split(
    '\n',
  );
  return [head, ...rows.flatMap((row, i) => [row, ...below.slice(i, i + 1)])].join('\n');
}

/** The table of `watch`, which is printed again and again. */
export const watchedTable = (requests: readonly RequestStatus[]): string =>
  plainTable(REQUEST_COLUMNS, requests.map(requestRow), '');
