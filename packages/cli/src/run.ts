import { resolveRedisUrl } from '@piecework/embedded';
import type { CompletionOutcome } from '@piecework/notifier';
import type { RequestOptions } from '@piecework/producer';
import {
  AbortError,
  InvalidOptionError,
  RequestExistsError,
  shardNames,
} from '@piecework/protocol';
import type { Command } from 'commander';
import { nanoid } from 'nanoid';
import { Piecework, type RequestHandle } from 'piecework';
import prettyMs from 'pretty-ms';
import {
  addFlags,
  commonFlags,
  outFlag,
  readFlags,
  requestFlags,
  requestOf,
  workerFlags,
} from './flags.js';
import { WorkerFleet } from './fleet.js';
import { openInput } from './input.js';
import { writeResults } from './output.js';
import { showProgress } from './progress-bar.js';
import { onStopSignals } from './stop-signals.js';
import { checkWork, type WorkValues } from './work.js';
import { passedOn } from './worker.js';

interface RunValues extends RequestOptions, WorkValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  input?: string;
  split?: string;
  out?: string;
  processes: number;
  maxRestarts: number;
  logLevel?: string;
}

/** `piecework run`: Redis, workers, request, progress and results, all in one command. */
export function runCommand(program: Command): void {
  const command = program
    .command('run')
    .description('do everything: Redis if none is given, worker processes, progress, results');
  const groups = [commonFlags, requestFlags, [outFlag], workerFlags];
  addFlags(command, ...groups).action(async (given: Record<string, unknown>) => {
    const read = readFlags<RunValues>(given, ...groups);
    // Results that nobody asked to see are not kept either.
    const results =
      read.out === undefined && given['results'] === undefined ? 'discard' : read.results;
    // A queue of its own: workers of others would run our items by their handler.
    const queue = given['queue'] === undefined ? `run-${nanoid(10)}` : read.queue;
    const logLevel = read.logLevel ?? 'warn';
    const values: RunValues = { ...read, queue, logLevel, ...(results ? { results } : {}) };
    checkWork(values);
    shardNames(queue, values.shards);
    requestOf({ ...values });
    if (values.out !== undefined && values.results === 'discard') {
      throw new InvalidOptionError('--results', 'discard', 'keep, as --out wants them');
    }
    const items = openInput(values.input, values.split);
    const outcome = await run(items, values);
    process.exitCode = outcome.status === 'succeeded' ? 0 : 1;
  });
}

async function run(items: AsyncIterable<unknown>, values: RunValues): Promise<CompletionOutcome> {
  const say = (text: string) => console.error(text);
  const started = performance.now();
  const redis = values.redis
    ? { url: values.redis, stop: async () => {} }
    : await resolveRedisUrl({ onStatus: say });
  let fleet: WorkerFleet | undefined;
  let request: RequestHandle | undefined;
  const pw = new Piecework({ redis: redis.url, queue: values.queue, shards: values.shards });
  try {
    const { queue, processes, maxRestarts, handler, out } = values;
    fleet = await WorkerFleet.start({
      redis: redis.url,
      queue,
      handler,
      processes,
      maxRestarts,
      flags: passedOn({ ...values }),
      onRestart: ({ why }) => say(`${why}; another one is started`),
    });
    const workers = fleet;
    const stopping = new AbortController();
    const unlisten = onStopSignals(
      () => {
        say('stopping: running sub-requests end, the rest is cancelled; again to end at once');
        stopping.abort();
      },
      () => workers.kill(),
    );
    const options = requestOf({ ...values });
    const named = values.id !== undefined || options.dedupe !== undefined;
    const open = await pw.open({ ...options, ...(named ? {} : { id: nanoid() }) });
    const { handle } = open;
    if (options.dedupe && open.joined) {
      open.close();
      throw new RequestExistsError(open.id, 'open', 'another run of this key is under way');
    }
    request = handle;
    stopping.signal.addEventListener('abort', () => void open.cancel().catch(() => {}));
    const submitting = feed(items, open, stopping.signal);
    // Without workers the rest is cancelled, and what they have done is written.
    let lost: unknown;
    const cut = new Promise<never>((_, reject) => {
      workers.lost.catch((error: unknown) => {
        lost = error;
        stopping.abort();
        open.cancel().catch(() => reject(error));
      });
    });
    const outcome = await Promise.race([
      cut,
      (async () => {
        const [, , ended] = await Promise.all([
          submitting,
          values.json ? undefined : showProgress(handle.progress()),
          handle.completion(),
          out === undefined
            ? 0
            : writeResults(handle.results({ order: 'index', failed: true }), out),
        ]);
        return ended;
      })(),
    ]);
    unlisten();
    report(handle.id, outcome, performance.now() - started, values.json);
    if (lost) throw lost;
    return outcome;
  } finally {
    await fleet?.stop();
    // Nobody else is to find it, whatever came of it.
    await request?.drop().catch(() => {});
    await pw.close();
    await redis.stop();
  }
}

/** Appends all items and seals. An item or source that is wrong cancels the request. */
async function feed(
  items: AsyncIterable<unknown>,
  open: { append(item: unknown): Promise<void>; seal(): Promise<void>; cancel(): Promise<void> },
  stopping: AbortSignal,
): Promise<void> {
  try {
    for await (const item of items) {
      if (stopping.aborted) return;
      await open.append(item);
    }
    if (!stopping.aborted) await open.seal();
  } catch (error) {
    if (stopping.aborted || error instanceof AbortError) return;
    await open.cancel().catch(() => {});
    throw error;
  }
}

function report(id: string, outcome: CompletionOutcome, tookMs: number, json: boolean): void {
  const { status, counts, generation } = outcome;
  if (json) {
    console.log(JSON.stringify({ id, status, counts, generation, tookMs: Math.round(tookMs) }));
    return;
  }
  const number = (n: number) => n.toLocaleString('en-US');
  const parts = [`${number(counts.succeeded)} succeeded`, `${number(counts.failed)} failed`];
  if (counts.cancelled > 0) parts.push(`${number(counts.cancelled)} cancelled`);
  console.error(`${status}: ${parts.join(', ')} of ${number(counts.total)} in ${prettyMs(tookMs)}`);
}
