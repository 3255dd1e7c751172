import { clearScreenDown, cursorTo } from 'node:readline';
import type { RequestStatus } from '@piecework/notifier';
import type { QueueCounts } from '@piecework/protocol';
import { PieceworkError, pause } from '@piecework/protocol/contract';
import { count as number } from '@piecework/views/format';
import type { Piecework } from 'piecework';
import { watchedTable } from '../output/request-table.js';
import { print, printTable } from '../terminal/print.js';
import { Silence } from '../terminal/silence.js';
import { onStopSignals } from '../terminal/stop-signals.js';
import { wrapped } from '../terminal/table.js';

/** How long a read that failed waits before the next, in ms. */
const RETRY_MS = 500;

/** Shows the open requests of the queue until it is stopped. */
export async function watchQueue(
  pw: Piecework,
  { json, everyMs }: { readonly json: boolean; readonly everyMs: number },
): Promise<void> {
  const stopping = new AbortController();
  const unlisten = onStopSignals(() => stopping.abort());
  const stopped = new Promise<undefined>((resolve) => {
    stopping.signal.addEventListener('abort', () => resolve(undefined));
  });
  using silence = new Silence(everyMs);
  try {
    while (!stopping.signal.aborted) {
      const seen = await Promise.race([readQueue(pw), stopped]);
      if (!seen) continue;
      silence.noteAnswer();
      const { counts, requests } = seen;
      if (json) print(JSON.stringify({ ...counts, requests }));
      else show(`${wrapped(summary(counts))}\n${watchedTable(requests)}`);
      await pause(everyMs, stopping.signal);
    }
  } finally {
    unlisten();
  }
}

interface Seen {
  readonly counts: QueueCounts;
  readonly requests: readonly RequestStatus[];
}

/** Undefined when Redis did not answer, which may pass. */
async function readQueue(pw: Piecework): Promise<Seen | undefined> {
  try {
    const counts = await pw.admin.counts();
    const requests: RequestStatus[] = [];
    for await (const request of pw.admin.list()) requests.push(request);
    return { counts, requests };
  } catch (error) {
    if (error instanceof PieceworkError && error.retryable) {
      await pause(RETRY_MS);
      return undefined;
    }
    throw error;
  }
}

/** 'requests: 4 open (3 have no handler), 693 succeeded, 0 failed · 2 workers' */
function summary({ open, parked, workers, ended, pausedUntil }: QueueCounts): string {
  const { succeeded, failed, cancelled } = ended;
  const lacking =
    parked > 0 ? ` (${number(parked)} ${parked === 1 ? 'has' : 'have'} no handler)` : '';
  const requests = [`${number(open)} open${lacking}`];
  requests.push(`${number(succeeded)} succeeded`, `${number(failed)} failed`);
  if (cancelled > 0) requests.push(`${number(cancelled)} cancelled`);
  const parts = [
    `requests: ${requests.join(', ')}`,
    `${number(workers)} ${workers === 1 ? 'worker' : 'workers'}`,
  ];
  if (pausedUntil !== undefined) parts.push('paused');
  return parts.join(' · ');
}

/** On a terminal, each table replaces the one before, so it is no higher than the terminal. */
function show(text: string): void {
  if (!process.stdout.isTTY) {
    printTable(text);
    return;
  }
  cursorTo(process.stdout, 0, 0);
  clearScreenDown(process.stdout);
  const lines = text.split('\n');
  // The last row of the terminal is for the cursor.
  const room = Math.max(3, (process.stdout.rows || 24) - 1);
  const hidden = lines.length - room + 1;
  if (hidden > 1) lines.splice(room - 1, hidden, `… and ${number(hidden)} more lines`);
  printTable(lines.join('\n'));
}
