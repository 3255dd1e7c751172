import { resolveRedisUrl } from '@piecework/embedded';
import type { CompletionOutcome, RequestStatus } from '@piecework/notifier';
import type { OpenRequest, RequestOptions } from '@piecework/producer';
import {
  AbortError,
  InvalidOptionError,
  LARGEST_VALUE_BYTES,
  pause,
  RequestExistsError,
  SealedError,
  shardNames,
} from '@piecework/protocol';
import type { Command } from 'commander';
import { nanoid } from 'nanoid';
import { Piecework, type RequestHandle } from 'piecework';
import { dryRun } from './dry-run.js';
import { execFieldsOf } from './exec-fields.js';
import {
  addFlags,
  commonFlags,
  outFlags,
  readFlags,
  requestFlags,
  requestOf,
  runFlags,
  withDefaults,
  workerFlags,
} from './flags.js';
import { restartText, WorkerFleet } from './fleet.js';
import { type Input, type InputValues, openInput } from './input.js';
import { writeJoblogLive } from './joblog.js';
import { type Kept, keptLines } from './kept.js';
import { defaultLogFormat, type LogFormat } from './log.js';
import { type OutputError, writeResultsLive } from './output.js';
import { say, showProgress } from './progress-bar.js';
import { type ResultFormat, resultFormats, untimed } from './result-format.js';
import {
  checkAgain,
  expectNew,
  isNamed,
  lockRun,
  lostRun,
  namedOptions,
  ownQueue,
  sayWhatThereIs,
  setLimit,
  whatThereIs,
} from './run-again.js';
import { abandon, leave, openFiles, type RunFiles } from './run-files.js';
import { freeLeftovers, type Leftovers } from './run-leftovers.js';
import { reportRun, reportStopped } from './run-report.js';
import { sourceOf } from './run-source.js';
import { Salvage } from './salvage.js';
import { type Slots, slotsOf } from './slots.js';
import { ALL_SIGNALS, codeOf, onStopSignals } from './stop-signals.js';
import { checkWork, type WorkValues } from './work.js';
import { passedOn } from './worker.js';

/** How long a request whose workers cannot go on may take to end, in ms. */
const ENDING_MS = 5_000;
/** How often it is looked whether all that was read has been run, in ms. */
const IDLE_LOOK_MS = 200;
/** How long results of a run that is left are still read, in ms; the next one writes the others. */
const CATCH_UP_MS = 1_000;

interface RunValues extends RequestOptions, InputValues, WorkValues {
  redis?: string;
  queue: string;
  /** Whether only its own workers serve that. */
  hasOwnQueue: boolean;
  shards: number;
  json: boolean;
  dryRun: boolean;
  out?: string;
  format?: ResultFormat;
  failures?: string;
  joblog?: string;
  timing: boolean;
  resume: boolean;
  retryFailed: boolean;
  jobs?: number;
  processes: number;
  concurrency: number;
  maxRestarts: number;
  retentionMs: number;
  logLevel: string;
  logFormat?: LogFormat;
}

/** Its outcome, what was wrong with it, and why `--out` and `--joblog` do not have all of it. */
type Ending = [
  CompletionOutcome,
  wrong: unknown,
  cut: OutputError | undefined,
  logCut: OutputError | undefined,
];

/** `piecework run`: Redis, workers, request, progress and results, all in one command. */
export function runCommand(program: Command): void {
  const command = program
    .command('run')
    .description('do everything: Redis if none is given, worker processes, progress, results');
  const groups = [
    // A queue of its own, of a run with a name always the same: workers of others would run our items by
    // their handler.
    withDefaults(commonFlags, { queue: { otherwise: 'run-ID, or a new one' } }),
    // Results that nobody asked to see are not kept either.
    withDefaults(requestFlags, {
      results: { otherwise: 'keep with --out or --joblog, else discard' },
    }),
    outFlags,
    runFlags,
    withDefaults(workerFlags, { logLevel: { value: 'warn' } }),
  ];
  addFlags(command, ...groups).action(async (given: Record<string, unknown>) => {
    const read = readFlags<Omit<RunValues, 'queue' | 'hasOwnQueue'> & { queue?: string }>(
      given,
      ...groups,
    );
    const { id, out, joblog } = read;
    const unseen = out === undefined && joblog === undefined;
    const results = read.results ?? (unseen ? 'discard' : 'keep');
    const queue = read.queue ?? ownQueue(id);
    const logFormat = read.logFormat ?? defaultLogFormat();
    const { unused, ...slots } = slotsOf(given, read);
    const values: RunValues = {
      ...{ ...read, ...slots, queue, hasOwnQueue: read.queue === undefined, logFormat, results },
      ...execInputOf(read),
    };
    checkWork(values);
    shardNames(queue, values.shards);
    requestOf({ ...values });
    checkAgain(values);
    for (const [flag, file] of [
      ['--out', out],
      ['--joblog', joblog],
    ])
      if (file !== undefined && values.results === 'discard')
        throw new InvalidOptionError('--results', 'discard', `keep, as ${flag} wants them`);
    const { format } = values;
    if (format !== undefined && out === undefined)
      throw new InvalidOptionError('--format', format, 'together with --out');
    using items = await openInput(values);
    const execFields = await execFieldsOf(values, items);
    if (execFields !== undefined) values.execFields = execFields;
    if (values.dryRun) return await dryRun(items, values);
    const files = await openFiles(values, isNamed(values));
    try {
      if (id !== undefined && !isNamed(values)) {
        await expectNew(files, NO_REDIS);
        say(`${id} cannot go on later: ${NO_REDIS}`);
      }
      process.exitCode = await run(items, values, files, unused);
    } finally {
      await abandon(files);
    }
  });
}

const DISCARDED = 'no --out: what the programs printed was discarded (--out - shows it)';

const NO_REDIS =
  'only with --redis or REDIS_URL does a run go on: a Redis of its own ends with each';

/** Programs that take many lines at once read them as lines, unless something else is said. */
function execInputOf({
  batch,
  exec,
  execInput,
  persistent,
}: Pick<RunValues, 'batch' | 'exec' | 'execInput' | 'persistent'>): Partial<WorkValues> {
  const asLines = batch !== undefined && exec !== undefined && !persistent;
  return asLines ? { execInput: execInput ?? 'lines' } : {};
}

/** What nobody keeps may have any size. Workers of a queue that is shared may work for others as well. */
function discarding(values: RunValues): Partial<RunValues> {
  const { results, exec, execOutput, persistent, hasOwnQueue } = values;
  if (results !== 'discard' || !hasOwnQueue) return {};
  return exec !== undefined && !persistent && execOutput === 'text'
    ? { execOutput: 'none' }
    : { maxResultBytes: LARGEST_VALUE_BYTES };
}

function startWorkers(
  redis: string,
  values: RunValues,
  onDiscarded: () => void,
): Promise<WorkerFleet> {
  const { queue, processes, maxRestarts, handler } = values;
  return WorkerFleet.start({
    ...{ redis, queue, handler, processes, maxRestarts, onDiscarded },
    flags: passedOn({ ...values, ...discarding(values) }),
    // What handlers write to standard output is theirs, and not part of the results.
    onLine: say,
    // Not over the bar.
    ...(process.stderr.isTTY ? { onErrorLine: say } : {}),
    onRestart: (restart) => say(restartText(restart)),
  });
}

/** Answers the exit code. */
async function run(
  items: Input,
  values: RunValues,
  files: RunFiles,
  unused: Slots['unused'],
): Promise<number> {
  const started = performance.now();
  const redis = values.redis
    ? { url: values.redis, origin: 'environment', stop: async () => {} }
    : await resolveRedisUrl({ onStatus: say });
  const outlives = redis.origin === 'environment';
  const { queue, shards } = values;
  // Of a run that may go on, also for a joblog that is asked for later.
  const timing = values.timing || values.joblog !== undefined || isNamed(values);
  const asked = requestOf({ ...values, timing });
  const { id = '', resume, retryFailed } = values;
  const named = isNamed(values)
    ? { id, queue, redis: redis.url, resume: resume || retryFailed }
    : undefined;
  let fleet: WorkerFleet | undefined;
  let request: RequestHandle | undefined;
  let kept: Kept | undefined;
  let lock: Awaited<ReturnType<typeof lockRun>> | undefined;
  /** Whether it was said how it ended. */
  let told = false;
  /** Whether programs have written what nobody keeps. */
  let discarded = false;
  /** Settles when the results that a run leaves behind are written, which nothing else has. */
  let rescue: (() => Promise<void>) | undefined;
  /** By a second signal, before the end of the process. */
  let hardEnd: Promise<void> | undefined;
  const leftoversOf = ({ id }: RequestStatus): Leftovers => ({
    ...{ redis: redis.url, queue, shards, id, here: lock?.followsEnded ?? false },
    work: values.persistent ? 'persistent programs' : values.exec ? 'programs' : 'handler',
  });
  const unended = (id: string): Kept => ({
    ...{ id, redis: values.redis, retentionMs: undefined, failed: false },
    ...{ results: values.out !== undefined, goesOn: named !== undefined },
  });
  const pw = new Piecework({ redis: redis.url, queue, shards });
  try {
    if (named) lock = await lockRun(named);
    const options = named ? namedOptions(asked, await sourceOf(values, items.paths)) : asked;
    const before = named && (await whatThereIs(pw, named, options, files));
    const was = before && (await before.handle.status());
    const wasComplete = was?.status === 'complete';
    const retries = wasComplete && retryFailed;
    if (was) sayWhatThereIs(was, retryFailed);
    if (was && lock && !wasComplete) await freeLeftovers(lock.connection, leftoversOf(was));
    if (!wasComplete || retries)
      fleet = await startWorkers(redis.url, values, () => {
        discarded = true;
      });
    const workers = fleet;
    const stopping = new AbortController();
    let stoppedBy: NodeJS.Signals | undefined;
    const unlisten = onStopSignals(
      (signal) => {
        stoppedBy = signal;
        const rest = named ? 'the rest stays' : 'the rest is cancelled';
        say(`stopping: what runs may end, ${rest}; Ctrl-C again ends at once`);
        stopping.abort();
      },
      () => {
        workers?.kill();
        say('ended at once');
        const tell = () => {
          if (request && outlives) for (const line of keptLines(unended(request.id))) say(line);
        };
        hardEnd = rescue?.().then(tell);
        if (!hardEnd) tell();
        return hardEnd;
      },
      ALL_SIGNALS,
    );
    const ownId = named || options.dedupe !== undefined ? {} : { id: `run-${nanoid(10)}` };
    const open = before ?? (await pw.open({ ...ownId, ...options }));
    if (options.dedupe && open.joined) {
      open.leave();
      throw new RequestExistsError(open.id, 'open', 'another run of this key is under way');
    }
    // Its own handle is of the life that has ended.
    const handle = retries ? pw.request(open.id) : open.handle;
    request = handle;
    if (named && !wasComplete) await setLimit(handle, asked.limit);
    if (retries) await handle.redrive();
    await files.out?.begin(named !== undefined);
    await files.joblog?.begin(named !== undefined);
    stopping.signal.addEventListener('abort', () => {
      if (named) open.leave();
      else void endEarly(workers, open, () => hardEnd !== undefined);
      // Whoever types or pipes the items is not waited for.
      items.close();
    });
    // Results on the same terminal are progress enough.
    const quiet = values.json || (values.out === '-' && process.stdout.isTTY);
    const leaving = new AbortController();
    const { signal } = leaving;
    const logged = { order: 'completion', failed: true, signal } as const;
    const format = resultFormats[values.format ?? 'ndjson'];
    const writer = values.timing ? format : untimed(format);
    const { out, joblog } = files;
    const salvage = out && new Salvage(handle, out, values.format ?? 'ndjson', signal);
    const writing = salvage && out && writeResultsLive(salvage, out, values.json, writer);
    const logging = joblog && writeJoblogLive(handle.results(logged), joblog, values.json);
    // The next run of a name writes them.
    if (salvage && writing && !named)
      rescue = async () => {
        rescue = undefined;
        const said = await salvage.end(writing);
        await joblog?.flush().catch(() => {});
        if (!values.json) say(said);
      };
    // What a run that is left still does, `leaving` ends.
    const parts = [
      handle.completion({ signal }),
      open.allIn ? undefined : feed(items, open, handle, values.json, stopping.signal),
      writing,
      logging,
      quiet ? undefined : showProgress(handle.progress({ signal })),
    ] as const;
    const ending = Promise.all(parts).then(
      ([ended, fed, cut, logCut]): Ending => [ended, fed, cut, logCut],
    );
    // The request ends when its rest is cancelled, which may be heard of before anything else.
    let lost: unknown;
    const failed = (error: unknown) => {
      lost = error;
      return named ? undefined : withoutWorkers(error, open, ending);
    };
    const ended = await Promise.race([
      ending,
      ...(workers ? [workers.lost.catch(failed)] : []),
      ...(lock ? [lock.lost.catch(failed)] : []),
      ...(named ? [aborted(stopping.signal)] : []),
    ]).then((one) => one ?? leaveIt());
    /** What runs may end; what comes of it is written for a moment longer. */
    async function leaveIt(): Promise<Ending | undefined> {
      stopping.abort();
      await workers?.stop();
      const late = await Promise.race([ending, pause(CATCH_UP_MS)]);
      leaving.abort();
      await Promise.allSettled(parts);
      return late ?? undefined;
    }
    await hardEnd;
    unlisten();
    rescue = undefined;
    if (!ended) {
      kept = unended(handle.id);
      const { counts, status } = await handle.status();
      const tookMs = performance.now() - started;
      reportStopped({ kept, counts, tookMs, isOpen: status === 'open' }, values.json);
      if (lost !== undefined) throw lost;
      return codeOf(stoppedBy ?? 'SIGINT');
    }
    const [outcome, fed, cut, logCut] = ended;
    const wrong = lost ?? fed;
    const { status, counts } = outcome;
    const worth =
      counts.failed > 0 ||
      status === 'failed' ||
      cut !== undefined ||
      (wrong !== undefined && counts.total > 0);
    const hasFailed = counts.failed > 0;
    const { retentionMs } = values;
    if (outlives && (worth || named))
      kept = {
        ...{ id: handle.id, redis: values.redis, retentionMs, failed: hasFailed },
        ...{
          results: cut !== undefined,
          retries: named !== undefined && counts.cancelled === 0 && wrong === undefined,
        },
      };
    const tookMs = performance.now() - started;
    const slots = workers ? unused(counts.total) : undefined;
    const notes = [slots, discarded ? DISCARDED : undefined].filter((one) => one !== undefined);
    const left = await leave(handle, { files, cut, outlives, failed: hasFailed });
    const end = { id: handle.id, outcome, tookMs, cut, kept };
    told = true;
    reportRun({ ...end, notes, ...left }, values.json);
    if (wrong !== undefined) throw wrong;
    if (status === 'cancelled' && stoppedBy) return codeOf(stoppedBy);
    return status === 'succeeded' && !cut && !logCut ? 0 : 1;
  } catch (error) {
    // Whoever reads the output may have seen enough.
    const seen = (error as NodeJS.ErrnoException).code === 'EPIPE';
    if (!seen) await rescue?.();
    const lost = named ? lostRun(error, id, files) : undefined;
    if (lost) throw lost;
    if (request && outlives && !kept && !told && !seen) {
      kept = unended(request.id);
      if (!values.json) for (const line of keptLines(kept)) say(line);
    }
    throw error;
  } finally {
    await fleet?.stop();
    // Nobody else is to find it, unless there is something to look at.
    if (!kept && !named) await request?.drop().catch(() => {});
    await pw.close();
    await lock?.[Symbol.asyncDispose]();
    await redis.stop();
  }
}

/** Cancels the rest once what runs has ended: a cancel has running handlers told to stop. */
async function endEarly(
  workers: WorkerFleet | undefined,
  open: Pick<OpenRequest, 'cancel'>,
  isEnded: () => boolean,
): Promise<void> {
  await workers?.stop();
  // At once: all stays as it is.
  if (isEnded()) return;
  await open.cancel().catch(() => {});
}

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined)));

/**
 * Appends all items and seals. Where an item or source is wrong, the request is cancelled when all before that has been
 * run: sealed, it would seem whole. Answers what is wrong.
 */
async function feed(
  items: Input,
  open: Pick<OpenRequest, 'append' | 'flush' | 'seal' | 'cancel'>,
  handle: RequestHandle,
  json: boolean,
  stopping: AbortSignal,
): Promise<unknown> {
  try {
    for await (const item of items) {
      if (stopping.aborted) return undefined;
      await open.append(item);
    }
    if (!stopping.aborted) await open.seal();
    return undefined;
  } catch (error) {
    if (stopping.aborted || error instanceof AbortError) return undefined;
    // It ended before its items did: its outcome says why.
    if (error instanceof SealedError && error.status !== 'sealed') return undefined;
    const wrong = items.blame(error);
    if (!json && wrong instanceof Error)
      say(`${wrong.message}; what was read before that is run, the rest is not read`);
    await open
      .flush()
      .then(() => untilIdle(handle, stopping))
      .catch(() => {});
    if (stopping.aborted) return wrong;
    await open.cancel().catch(() => {
      throw wrong;
    });
    return wrong;
  }
}

/** Nothing of it is left to be run, or it is to stop. */
async function untilIdle(handle: RequestHandle, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    const { status, counts } = await handle.status();
    const left = counts.ready + counts.inFlight + counts.delayed;
    if (status !== 'open' || left === 0) return;
    await pause(IDLE_LOOK_MS, stopping);
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
