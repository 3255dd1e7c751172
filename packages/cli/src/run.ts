import { resolve } from 'node:path';
import { resolveRedisUrl } from '@piecework/embedded';
import type { CompletionOutcome } from '@piecework/notifier';
import type { OpenRequest, RequestOptions } from '@piecework/producer';
import {
  AbortError,
  InvalidOptionError,
  pause,
  RequestExistsError,
  SealedError,
  shardNames,
} from '@piecework/protocol';
import type { Command } from 'commander';
import { nanoid } from 'nanoid';
import { Piecework, type RequestHandle } from 'piecework';
import {
  addFlags,
  commonFlags,
  outFlag,
  readFlags,
  requestFlags,
  requestOf,
  runFlags,
  withDefaults,
  workerFlags,
} from './flags.js';
import { WorkerFleet } from './fleet.js';
import { openInput } from './input.js';
import { type Kept, keptLines } from './kept.js';
import { defaultLogFormat, type LogFormat } from './log.js';
import { Output, type OutputError, writeResultsLive } from './output.js';
import { say, showProgress } from './progress-bar.js';
import { ALL, leave, type RunFiles } from './run-files.js';
import { reportRun } from './run-report.js';
import { type Slots, slotsOf } from './slots.js';
import { onStopSignals } from './stop-signals.js';
import { checkWork, type WorkValues } from './work.js';
import { passedOn } from './worker.js';

/** How long a request whose workers cannot go on may take to end, in ms. */
const ENDING_MS = 5_000;
/** How long an item of a slow input waits for others, to be submitted with them, in ms. */
const FLUSH_MS = 100;

interface RunValues extends RequestOptions, WorkValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  input?: string;
  split?: string;
  out?: string;
  failures?: string;
  jobs?: number;
  processes: number;
  concurrency: number;
  maxRestarts: number;
  retentionMs: number;
  logLevel: string;
  logFormat?: LogFormat;
}

/** Its outcome, what was wrong with it, and why `--out` does not have all results. */
type Ending = [CompletionOutcome, wrong: unknown, cut: OutputError | undefined];

/** `piecework run`: Redis, workers, request, progress and results, all in one command. */
export function runCommand(program: Command): void {
  const command = program
    .command('run')
    .description('do everything: Redis if none is given, worker processes, progress, results');
  const groups = [
    // A queue of its own: workers of others would run our items by their handler.
    withDefaults(commonFlags, { queue: { otherwise: 'a new one' } }),
    // Results that nobody asked to see are not kept either.
    withDefaults(requestFlags, { results: { otherwise: 'keep with --out, else discard' } }),
    [outFlag],
    runFlags,
    withDefaults(workerFlags, { logLevel: { value: 'warn' } }),
  ];
  addFlags(command, ...groups).action(async (given: Record<string, unknown>) => {
    const read = readFlags<Omit<RunValues, 'queue'> & { queue?: string }>(given, ...groups);
    const results = read.results ?? (read.out === undefined ? 'discard' : 'keep');
    const queue = read.queue ?? `run-${nanoid(10)}`;
    const logFormat = read.logFormat ?? defaultLogFormat();
    const { unused, ...slots } = slotsOf(given, read);
    const values: RunValues = {
      ...{ ...read, ...slots, queue, logFormat, results },
    };
    checkWork(values);
    shardNames(queue, values.shards);
    requestOf({ ...values });
    if (values.out !== undefined && values.results === 'discard') {
      throw new InvalidOptionError('--results', 'discard', 'keep, as --out wants them');
    }
    const items = openInput(values.input, values.split);
    const files = await openFiles(values);
    try {
      process.exitCode = await run(items, values, files, unused);
    } finally {
      await files.out?.abandon();
      await files.failures?.abandon();
    }
  });
}

async function openFiles({ out, failures }: RunValues): Promise<RunFiles> {
  if (out !== undefined && failures !== undefined && resolve(out) === resolve(failures))
    throw new InvalidOptionError('--failures', failures, 'another file than that of --out');
  const opened = out === undefined ? undefined : await Output.open('--out', out);
  if (failures === undefined) return { out: opened, failures };
  try {
    return { out: opened, failures: await Output.open('--failures', failures) };
  } catch (error) {
    await opened?.abandon();
    throw error;
  }
}

/** Answers the exit code. */
async function run(
  items: AsyncIterable<unknown>,
  values: RunValues,
  files: RunFiles,
  unused: Slots['unused'],
): Promise<number> {
  const started = performance.now();
  const redis = values.redis
    ? { url: values.redis, origin: 'environment', stop: async () => {} }
    : await resolveRedisUrl({ onStatus: say });
  const outlives = redis.origin === 'environment';
  let fleet: WorkerFleet | undefined;
  let request: RequestHandle | undefined;
  let kept: Kept | undefined;
  /** Whether it was said how it ended. */
  let told = false;
  const unended = (id: string): Kept => ({
    ...{ id, redis: values.redis, retentionMs: undefined, failed: false },
    results: values.out !== undefined,
  });
  const pw = new Piecework({ redis: redis.url, queue: values.queue, shards: values.shards });
  try {
    const { queue, processes, maxRestarts, handler } = values;
    fleet = await WorkerFleet.start({
      redis: redis.url,
      queue,
      handler,
      processes,
      maxRestarts,
      flags: passedOn({ ...values }),
      // Not over the bar.
      ...(process.stderr.isTTY ? { onErrorLine: say } : {}),
      onRestart: ({ why }) => say(`${why}; another one is started`),
    });
    const workers = fleet;
    const stopping = new AbortController();
    const unlisten = onStopSignals(
      () => {
        say('stopping: what runs may end, the rest is cancelled; Ctrl-C again ends at once');
        stopping.abort();
      },
      () => {
        workers.kill();
        say('ended at once');
        if (request && outlives) for (const line of keptLines(unended(request.id))) say(line);
      },
    );
    const options = requestOf({ ...values });
    const named = values.id !== undefined || options.dedupe !== undefined;
    const open = await pw
      .open({ ...options, ...(named ? {} : { id: `run-${nanoid(10)}` }) })
      .catch(keptEarlier);
    const handle = open.handle;
    if (options.dedupe && open.joined) {
      open.close();
      throw new RequestExistsError(open.id, 'open', 'another run of this key is under way');
    }
    request = handle;
    await files.out?.begin();
    stopping.signal.addEventListener('abort', () => {
      void open.cancel().catch(() => {});
      // Whoever types or pipes the items is not waited for.
      if (values.input === '-') process.stdin.destroy();
    });
    // Results on the same terminal are progress enough.
    const quiet = values.json || (values.out === '-' && process.stdout.isTTY);
    const ending = Promise.all([
      handle.completion(),
      feed(items, open, stopping.signal),
      files.out && writeResultsLive(handle.results(ALL), files.out, values.json),
      quiet ? undefined : showProgress(handle.progress()),
    ]).then(([ended, fed, written]): Ending => [ended, fed, written]);
    // The request ends when its rest is cancelled, which may be heard of before anything else.
    let lost: unknown;
    const [outcome, fed, cut] = await Promise.race([
      ending,
      workers.lost.catch((error) => {
        lost = error;
        return withoutWorkers(error, open, ending);
      }),
    ]);
    const wrong = lost ?? fed;
    unlisten();
    const { status, counts } = outcome;
    const worth =
      counts.failed > 0 ||
      status === 'failed' ||
      cut !== undefined ||
      (wrong !== undefined && counts.total > 0);
    const { id } = handle;
    const failed = counts.failed > 0;
    const { retentionMs } = values;
    if (outlives && worth)
      kept = { id, redis: values.redis, retentionMs, failed, results: cut !== undefined };
    const tookMs = performance.now() - started;
    const note = unused(counts.total);
    const left = await leave(handle, { files, cut, outlives, failed });
    told = true;
    reportRun({ ...{ id, outcome, tookMs, cut, note, kept }, ...left }, values.json);
    if (wrong !== undefined) throw wrong;
    return status === 'succeeded' && !cut ? 0 : 1;
  } catch (error) {
    // Whoever reads the output may have seen enough.
    const seen = (error as NodeJS.ErrnoException).code === 'EPIPE';
    if (request && outlives && !kept && !told && !seen) {
      kept = unended(request.id);
      if (!values.json) for (const line of keptLines(kept)) say(line);
    }
    throw error;
  } finally {
    await fleet?.stop();
    // Nobody else is to find it, unless there is something to look at.
    if (!kept) await request?.drop().catch(() => {});
    await pw.close();
    await redis.stop();
  }
}

/** Says what to do about a request that an earlier run left to be looked at. */
function keptEarlier(error: unknown): never {
  if (!(error instanceof RequestExistsError) || error.status !== 'complete') throw error;
  const { requestId, status, differs } = error;
  const why = `a request of this id has ended and is kept; piecework drop ${requestId} removes it`;
  throw new RequestExistsError(requestId, status, why, differs);
}

/** Appends all items and seals. An item or source that is wrong cancels the request; answers what is wrong. */
async function feed(
  items: AsyncIterable<unknown>,
  open: Pick<OpenRequest, 'append' | 'flush' | 'seal' | 'cancel'>,
  stopping: AbortSignal,
): Promise<unknown> {
  let soon: NodeJS.Timeout | undefined;
  const flush = () => {
    soon = undefined;
    // What is wrong is told to the next call.
    void open.flush().catch(() => {});
  };
  try {
    for await (const item of items) {
      if (stopping.aborted) return undefined;
      await open.append(item);
      soon ??= setTimeout(flush, FLUSH_MS);
    }
    if (!stopping.aborted) await open.seal();
    return undefined;
  } catch (error) {
    if (stopping.aborted || error instanceof AbortError) return undefined;
    // It ended before its items did: its outcome says why.
    if (error instanceof SealedError && error.status !== 'sealed') return undefined;
    await open.cancel().catch(() => {
      throw error;
    });
    return error;
  } finally {
    clearTimeout(soon);
  }
}

/** Lets a request end whose workers cannot go on, so that what they did is written. @throws `error` if it does not */
async function withoutWorkers(
  error: unknown,
  open: Pick<OpenRequest, 'cancel'>,
  ending: Promise<Ending>,
): Promise<Ending> {
  await open.cancel().catch(() => {});
  const ended = await Promise.race([ending, pause(ENDING_MS)]);
  if (!ended) throw error;
  return ended;
}
