import type { RequestOptions } from '@piecework/producer';
import { type PieceworkError, pause } from '@piecework/protocol';
import { type OpenHandle, Piecework, type RequestHandle } from 'piecework/client';
import prettyMs from 'pretty-ms';
import { requestOf } from '../flags/request-flags.js';
import type { Input } from '../input/input.js';
import { type Kept, keptLines } from '../output/kept.js';
import type { WorkerFleet } from '../processes/fleet.js';
import { say } from '../terminal/print.js';
import { showProgress } from '../terminal/progress-bar.js';
import { ALL_SIGNALS, codeOf, onStopSignals } from '../terminal/stop-signals.js';
import {
  type Earlier,
  findEarlier,
  lockRun,
  lostRun,
  namedOptions,
  type RunningHere,
  setLimit,
} from './earlier-run.js';
import { aborted, type Ending, keptAfter, lastStatus, withoutWorkers } from './ending.js';
import { feed } from './feed.js';
import { leave, type RunFiles } from './files.js';
import {
  aboutRun,
  againLines,
  type Filled,
  fillOutDir,
  type RunStanding,
  stoppedAt,
} from './fill-out-dir.js';
import { serveFleetMetrics, startFleet } from './fleet.js';
import { isNamed, type Named, resumeFlag } from './named-run.js';
import { openRequest } from './open-request.js';
import { DISCARDED, reportRun, reportStopped } from './report.js';
import { endedWithRedis, type RunRedis, redisOf } from './run-redis.js';
import type { Slots } from './slots.js';
import { sourceOf } from './source.js';
import type { RunValues } from './values.js';
import { Writing } from './writing.js';

/** How long the results of a stopped run are still written, in ms; the next run writes the rest. */
const CATCH_UP_MS = 1_000;

export interface RunParts {
  readonly items: Input;
  readonly values: RunValues;
  readonly files: RunFiles;
  readonly unused: Slots['unused'];
}

/** Runs all items and writes what comes of them. @returns the exit code */
export async function run(parts: RunParts): Promise<number> {
  const startedMs = performance.now();
  const redis = await redisOf(parts.values.redis || process.env['REDIS_URL']);
  return await new Run(parts, redis, startedMs).toItsEnd();
}

/** The request of this run, while it runs. */
interface Running {
  readonly open: OpenHandle<unknown>;
  readonly handle: RequestHandle;
  /** Everything that ends with the request, or when `leaving` aborts. */
  readonly parts: readonly unknown[];
  readonly leaving: AbortController;
  readonly ending: Promise<Ending>;
}

class Run {
  readonly #items: Input;
  readonly #values: RunValues;
  readonly #files: RunFiles;
  readonly #unused: Slots['unused'];
  readonly #redis: RunRedis;
  readonly #startedMs: number;
  readonly #pw: Piecework;
  readonly #asked: RequestOptions;
  /** Present when the same command can continue this run. */
  readonly #named: Named | undefined;
  readonly #stopping = new AbortController();
  readonly #redisLost = new AbortController();
  #stoppedBy: NodeJS.Signals | undefined;
  #lock: RunningHere | undefined;
  #fleet: WorkerFleet | undefined;
  #metrics: AsyncDisposable | undefined;
  #request: RequestHandle | undefined;
  /** Present when the request stays in Redis and its user knows that, or will know. */
  #kept: Kept | undefined;
  /** Whether the end was reported. */
  #reported = false;
  /** Whether programs have written output that was discarded. */
  #discarded = false;
  /** Present while results may have to be rescued, when the run ends at once. */
  #rescuable: Writing | undefined;
  /** Set by the second signal; the process ends when it settles. */
  #hardEnd: Promise<void> | undefined;
  /** Why the fleet or the lock was lost. */
  #lost: unknown;

  constructor({ items, values, files, unused }: RunParts, redis: RunRedis, startedMs: number) {
    const { queue, shards, unavailableMs, id = '' } = values;
    this.#items = items;
    this.#values = values;
    this.#files = files;
    this.#unused = unused;
    this.#redis = redis;
    this.#startedMs = startedMs;
    if (isNamed(values)) this.#named = { id, queue, redis: redis.url, resume: resumeFlag(values) };
    // A named run always measures it: a later run may ask for a joblog.
    const timing = values.timing || values.joblog !== undefined || isNamed(values);
    this.#asked = requestOf({ ...values, timing });
    this.#pw = new Piecework({ redis: redis.url, queue, shards, unavailableMs });
  }

  async toItsEnd(): Promise<number> {
    try {
      return await Promise.race([
        this.#run(),
        this.#redis.lost.catch((error) => this.#onRedisLost(error)),
      ]);
    } catch (error) {
      throw await this.#explain(error);
    } finally {
      await this.#close();
    }
  }

  async #run(): Promise<number> {
    const options = await this.#identify();
    const earlier =
      this.#named &&
      this.#lock &&
      (await findEarlier(this.#pw, this.#named, options, this.#values, this.#files, this.#lock));
    if (!earlier?.isComplete || earlier.retries) await this.#startFleet();
    const unlisten = this.#listenForSignals();
    const open = earlier?.open ?? (await openRequest(this.#pw, options, this.#named !== undefined));
    const handle = await this.#prepare(open, earlier);
    const running = this.#begin(open, handle);
    const ended = (await this.#firstEnd(running)) ?? (await this.#leave(running));
    await this.#hardEnd;
    unlisten();
    this.#rescuable = undefined;
    return ended ? await this.#complete(handle, ended) : await this.#stopped(handle);
  }

  /** Kills everything that works on the run, as its Redis has ended with all that was in it. @throws PieceworkError */
  #onRedisLost(error: PieceworkError): never {
    this.#redisLost.abort();
    // cure: workers end with the Redis of their run
    this.#fleet?.kill();
    throw endedWithRedis(error);
  }

  /** Whether Redis continues to run after this command. */
  get #outlives(): boolean {
    return this.#redis.origin === 'environment';
  }

  get #tookMs(): number {
    return performance.now() - this.#startedMs;
  }

  /** Takes the lock of a named run. @returns the options of the request, by which the next run recognises it */
  async #identify(): Promise<RequestOptions> {
    if (!this.#named) return this.#asked;
    this.#lock = await lockRun(this.#named);
    return namedOptions(this.#asked, await sourceOf(this.#values, this.#items.paths));
  }

  async #startFleet(): Promise<void> {
    const { signal } = this.#redisLost;
    this.#fleet = await startFleet(this.#pw, this.#redis.url, this.#values, signal, () => {
      this.#discarded = true;
    });
    this.#metrics = await serveFleetMetrics(this.#fleet, this.#values);
  }

  /** The first signal stops the run in good order, the second ends it at once. @returns removes the listeners */
  #listenForSignals(): () => void {
    return onStopSignals(
      (signal) => {
        this.#stoppedBy = signal;
        this.#stop('', '; Ctrl-C again ends at once');
      },
      () => {
        this.#fleet?.kill();
        say('ended at once');
        this.#hardEnd = this.#rescue()?.then(() => this.#sayUnended());
        if (!this.#hardEnd) this.#sayUnended();
        return this.#hardEnd;
      },
      ALL_SIGNALS,
    );
  }

  /** Stops the run in good order. */
  #stop(why: string, more = ''): void {
    const rest = this.#named ? 'the rest stays queued' : 'the rest is cancelled';
    const time = prettyMs(this.#values.drainMs);
    say(`${why}stopping: handlers get ${time}, ${rest}${more}`);
    this.#stopping.abort();
  }

  #rescue(): Promise<void> | undefined {
    return this.#rescuable?.canRescue ? this.#rescuable.rescue() : undefined;
  }

  #sayUnended(): void {
    if (this.#request && this.#outlives)
      for (const line of keptLines(this.#unended(this.#request.id))) say(line);
  }

  /** A request that has not ended and stays in Redis. */
  #unended(id: string): Kept {
    const { redis, out } = this.#values;
    const continues = this.#named !== undefined;
    const results = out !== undefined;
    return { id, redis, retentionMs: undefined, failed: false, results, continues };
  }

  /** Sets the limit of a continued request, redrives its failures, and lets the files begin. */
  async #prepare(
    open: OpenHandle<unknown>,
    { isComplete = false, retries = false }: Partial<Earlier> = {},
  ): Promise<RequestHandle> {
    // The handle of `open` belongs to the generation that has ended.
    const handle = retries ? this.#pw.request(open.id) : open.handle;
    const again = this.#named !== undefined;
    this.#request = handle;
    if (!again && this.#outlives && !this.#values.json)
      say(`${handle.id} begins; follow it: piecework top --queue ${this.#values.queue}`);
    if (again && !isComplete) await setLimit(handle, this.#asked.limit);
    await this.#files.outDir?.begin(aboutRun(handle.id, this.#values, this.#items, this.#asked));
    if (retries) await handle.redrive();
    await this.#files.out?.begin(again);
    await this.#files.joblog?.begin(again);
    await this.#files.badRows?.begin(again);
    return handle;
  }

  /** Starts everything that ends with the request: input, results, joblog, progress. */
  #begin(open: OpenHandle<unknown>, handle: RequestHandle): Running {
    const unstoppable = new Promise<never>((_, reject) => {
      this.#stopping.signal.addEventListener('abort', () => {
        if (this.#named) open.leave();
        else
          void this.#endEarly(open).catch((error) => {
            // cure: a run that cannot cancel its request ends all the same
            reject(error);
          });
        // The run does not wait for a person, or a program, that still writes items.
        // cure: what a stopped run has not read is pending
        if (!this.#files.outDir || !this.#items.isInFiles) this.#items.close();
      });
    });
    const { json, out } = this.#values;
    const leaving = new AbortController();
    const { signal } = leaving;
    const writing = new Writing(handle, this.#files, this.#values, signal, ({ message }) => {
      if (!this.#stopping.signal.aborted) this.#stop(`${message}; `);
    });
    // The next run of a name writes the results that are missing.
    if (!this.#named) this.#rescuable = writing;
    // Results on the same terminal show the progress.
    const quiet = json || (out === '-' && process.stdout.isTTY);
    const parts = [
      handle.completion({ signal }),
      feed(this.#items, open, handle, this.#values, this.#stopping.signal, this.#files),
      writing.results,
      writing.joblog,
      quiet ? undefined : showProgress(handle.progress({ signal })),
    ] as const;
    const ended = Promise.all(parts).then(
      ([outcome, wrong, cut, logCut]): Ending => ({ outcome, wrong, cut, logCut }),
    );
    const ending = Promise.race([ended, unstoppable]);
    return { open, handle, parts, leaving, ending };
  }

  /**
   * Cancels the rest once what runs has ended: a cancel would have running handlers stop.
   * @throws ConnectionError, ServerError, IndeterminateError when Redis does not answer, or refuses it
   */
  async #endEarly(open: OpenHandle<unknown>): Promise<void> {
    // cure: running handlers may finish after the first Ctrl-C
    await this.#fleet?.close();
    // After a second signal the request stays as it is.
    if (this.#hardEnd !== undefined) return;
    await open.cancel();
  }

  /** Waits for the end of the request. @returns undefined when a named run is to be left as it is */
  #firstEnd({ open, ending }: Running): Promise<Ending | undefined> {
    const { signal } = this.#stopping;
    const onLost = (error: unknown) => {
      this.#lost = error;
      return this.#named ? undefined : withoutWorkers(error, open, ending);
    };
    return Promise.race([
      ending,
      ...(this.#fleet ? [this.#fleet.lost.catch(onLost)] : []),
      ...(this.#lock ? [this.#lock.lost.catch(onLost)] : []),
      ...(this.#named ? [aborted(signal)] : []),
    ]);
  }

  /** Lets what runs end, and writes results for a moment longer. @returns the ending, if the request ended meanwhile */
  async #leave({ ending, parts, leaving }: Running): Promise<Ending | undefined> {
    this.#stopping.abort();
    await this.#fleet?.close();
    const late = await Promise.race([ending, pause(CATCH_UP_MS)]);
    leaving.abort();
    await Promise.allSettled(parts);
    return late ?? undefined;
  }

  /**
   * Reports a run that was stopped and can be continued. @returns the exit code
   * @throws ConnectionError when Redis does not answer soon
   */
  async #stopped(handle: RequestHandle): Promise<number> {
    const status = await lastStatus(handle);
    const kept = this.#unended(handle.id);
    this.#kept = kept;
    const filled = await this.#fill(handle, stoppedAt(status));
    const isOpen = status.status === 'open';
    const { counts } = status;
    reportStopped({ kept, counts, tookMs: this.#tookMs, isOpen, filled }, this.#values.json);
    if (this.#lost !== undefined) throw this.#lost;
    return this.#stoppedBy ? codeOf(this.#stoppedBy) : 1;
  }

  /** Writes and reports what a request that has ended leaves. @returns the exit code */
  async #complete(handle: RequestHandle, ending: Ending): Promise<number> {
    const { outcome, cut, logCut } = ending;
    const { status, counts } = outcome;
    const wrong = this.#lost ?? ending.wrong;
    const stopped = this.#stopping.signal.aborted && status === 'cancelled';
    // Before the folder gets the rest.
    const isPart = stopped && !this.#items.isWhole;
    const filled = await this.#fill(handle, outcome);
    // A reader who has closed an output wants no more results.
    const lost = [cut, filled?.cut].find((one) => one && !one.isClosed);
    if (this.#outlives) this.#kept = keptAfter(handle.id, this.#values, ending, lost, wrong);
    const tookMs = this.#tookMs;
    const slots = this.#fleet ? this.#unused(counts.total) : undefined;
    const discarded = this.#discarded ? DISCARDED : undefined;
    const notes = [slots, discarded].filter((one) => one !== undefined);
    const { badRows } = this.#files;
    const ended = { written: filled?.written, cut: lost, outlives: this.#outlives };
    const left = await leave(handle, { ...ended, failed: counts.failed > 0 });
    this.#reported = true;
    const again = stopped ? againLines(this.#values, filled) : [];
    const end = {
      id: handle.id,
      outcome,
      isPart,
      tookMs,
      cut,
      logCut,
      kept: this.#kept,
      badRows,
      filled,
    };
    reportRun({ ...end, notes, again, ...left }, this.#values.json);
    if (wrong !== undefined) throw wrong;
    if (status === 'cancelled' && this.#stoppedBy) return codeOf(this.#stoppedBy);
    const hasAll = !cut && !filled?.cut && !logCut && !badRows?.count;
    return status === 'succeeded' && hasAll ? 0 : 1;
  }

  #fill(handle: RequestHandle, standing: RunStanding): Promise<Filled | undefined> {
    const [files, items, values] = [this.#files, this.#items, this.#values];
    return fillOutDir(handle, { files, items, values }, standing);
  }

  /** After an error: rescues results and says what stays in Redis. @returns the error to throw */
  async #explain(error: unknown): Promise<unknown> {
    await this.#rescue();
    const lost = this.#named ? lostRun(error, this.#named.id, this.#files) : undefined;
    if (lost) return lost;
    if (this.#request && this.#outlives && !this.#kept && !this.#reported) {
      this.#kept = this.#unended(this.#request.id);
      if (!this.#values.json) for (const line of keptLines(this.#kept)) say(line);
    }
    return error;
  }

  async #close(): Promise<void> {
    await this.#fleet?.close();
    await this.#metrics?.[Symbol.asyncDispose]();
    const hasRedis = !this.#redisLost.signal.aborted;
    // Nobody else uses the request, unless the user knows how to read it.
    if (hasRedis && !this.#kept && !this.#named) await this.#request?.drop().catch(() => {});
    await this.#pw.close();
    await this.#lock?.[Symbol.asyncDispose]();
    await this.#redis.close();
  }
}
