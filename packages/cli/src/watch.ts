import { clearScreenDown, cursorTo } from 'node:readline';
import type { ProgressReport, RequestStatus } from '@piecework/notifier';
import { checkOption, option, PieceworkError, pause, type QueueCounts } from '@piecework/protocol';
import type { Command } from 'commander';
import type { Piecework } from 'piecework';
import { addFlags, commonFlags, readFlags, watchFlags } from './flags.js';
import { REQUEST_COLUMNS, requestRow } from './list.js';
import { showProgress } from './progress-bar.js';
import { openPiecework } from './redis-url.js';
import { Silence } from './silence.js';
import { onStopSignals } from './stop-signals.js';
import { plainTable, wrapped } from './table.js';

/** After how long a look that failed is tried again, in ms. */
const AGAIN_MS = 500;

interface WatchValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  everyMs: number;
}

/**
 * `piecework watch ID`: progress of one request until it is complete; the exit code tells its
 * outcome. `piecework watch`: the open requests of the queue, until it is stopped.
 */
export function watchCommand(program: Command): void {
  const command = program
    .command('watch')
    .argument('[id]')
    .description('follow a request to its end, or all open requests until stopped');
  addFlags(command, commonFlags, watchFlags).action(
    async (id: string | undefined, given: Record<string, unknown>) => {
      const values = readFlags<WatchValues>(given, commonFlags, watchFlags);
      if (id !== undefined) checkOption('id', id, option.name());
      await using pw = await openPiecework(values);
      if (id === undefined) await watchQueue(pw, values);
      else process.exitCode = await watchRequest(pw, id, values);
    },
  );
}

async function watchRequest(pw: Piecework, id: string, values: WatchValues): Promise<number> {
  const request = pw.request(id);
  using silence = new Silence(values.everyMs);
  const reports = silence.of(request.progress({ everyMs: values.everyMs }));
  if (values.json) for await (const report of reports) console.log(reportLine(report));
  else await showProgress(reports);
  const { status, counts } = await request.completion();
  if (!values.json)
    console.error(`${id} ${status}: ${counts.succeeded} of ${counts.total} succeeded`);
  return status === 'succeeded' ? 0 : 1;
}

function reportLine({ counts, generation, status, ratePerSecond, etaMs }: ProgressReport): string {
  return JSON.stringify({ status, generation, counts, ratePerSecond, etaMs });
}

async function watchQueue(pw: Piecework, { json, everyMs }: WatchValues): Promise<void> {
  const stopping = new AbortController();
  const unlisten = onStopSignals(() => stopping.abort());
  const stopped = new Promise<undefined>((resolve) => {
    stopping.signal.addEventListener('abort', () => resolve(undefined));
  });
  using silence = new Silence(everyMs);
  try {
    while (!stopping.signal.aborted) {
      const seen = await Promise.race([lookAt(pw), stopped]);
      if (!seen) continue;
      silence.heard();
      const { counts, requests } = seen;
      if (json) console.log(JSON.stringify({ ...counts, requests }));
      else
        show(
          `${wrapped(summary(counts))}\n${plainTable(REQUEST_COLUMNS, requests.map(requestRow), '')}`,
        );
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

/** undefined: Redis has not answered, which may pass by itself. */
async function lookAt(pw: Piecework): Promise<Seen | undefined> {
  try {
    const counts = await pw.admin.counts();
    const requests: RequestStatus[] = [];
    for await (const request of pw.admin.list()) requests.push(request);
    return { counts, requests };
  } catch (error) {
    if (error instanceof PieceworkError && error.retryable) {
      await pause(AGAIN_MS);
      return undefined;
    }
    throw error;
  }
}

function summary({ open, parked, workers, ended, pausedUntil }: QueueCounts) {
  const { succeeded, failed, cancelled } = ended;
  const parts = [
    `${open} open`,
    `${workers} workers`,
    `${succeeded} succeeded`,
    `${failed} failed`,
  ];
  if (cancelled > 0) parts.push(`${cancelled} cancelled`);
  if (pausedUntil !== undefined) parts.push('paused');
  if (parked > 0) parts.push(`${parked} without a worker that serves them`);
  return parts.join(' · ');
}

/** On a terminal each look replaces the one before. */
function show(text: string): void {
  if (process.stdout.isTTY) {
    cursorTo(process.stdout, 0, 0);
    clearScreenDown(process.stdout);
  }
  console.log(text);
}
