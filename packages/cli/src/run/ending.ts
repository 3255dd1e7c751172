import type { CompletionOutcome } from '@piecework/notifier';
import { ConnectionError, pause } from '@piecework/protocol';
import pTimeout from 'p-timeout';
import type { OpenHandle, RequestHandle } from 'piecework/client';
import type { Kept } from '../output/kept.js';
import type { OutputError } from '../output/output.js';
import { isNamed } from './named-run.js';
import type { RunValues } from './values.js';

/** How a request ended under this run. */
export interface Ending {
  readonly outcome: CompletionOutcome;
  /** What was wrong with the input, if anything. */
  readonly wrong: unknown;
  /** Why `--out` does not have all results. */
  readonly cut: OutputError | undefined;
  /** Why `--joblog` does not have all lines. */
  readonly logCut: OutputError | undefined;
}

/**
 * What stays in Redis of a request that has ended, on a Redis that outlives the run; undefined when nobody needs it.
 * @param cut why an output does not have all results, if it does not
 * @param wrong why the run fails although the request ended, if it does
 */
export function keptAfter(
  id: string,
  values: RunValues,
  { outcome }: Pick<Ending, 'outcome'>,
  cut: OutputError | undefined,
  wrong: unknown,
): Kept | undefined {
  const { status, counts } = outcome;
  const { redis, retentionMs } = values;
  const named = isNamed(values);
  const failed = counts.failed > 0;
  const isWrong = wrong !== undefined && counts.total > 0;
  if (!named && !failed && status !== 'failed' && cut === undefined && !isWrong) return undefined;
  const retries = named && counts.cancelled === 0 && wrong === undefined;
  return { id, redis, retentionMs, failed, results: cut !== undefined, retries };
}

/** Resolves when the run is to stop. */
export const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined)));

/** How long a request whose workers have failed may take to end, in ms. */
const ENDING_MS = 15_000;

/** Lets a request end that has no workers any more, so that its results are written. @throws `error` if it does not */
export async function withoutWorkers(
  error: unknown,
  open: OpenHandle<unknown>,
  ending: Promise<Ending>,
): Promise<Ending> {
  await open.cancel().catch(() => {});
  const ended = await Promise.race([ending, pause(ENDING_MS)]);
  if (!ended) throw error;
  return ended;
}

/** How long a stopped run tries to read how far it has come, in ms. */
const LAST_READ_MS = 3_000;

/** How far a run has come that was stopped. @throws ConnectionError when Redis does not answer soon */
export function lastStatus(handle: RequestHandle): ReturnType<RequestHandle['status']> {
  const seconds = LAST_READ_MS / 1_000;
  const message = `stopped, and how far the run has come is not known: no answer from Redis within ${seconds} s; see that it runs`;
  return pTimeout(handle.status(), {
    milliseconds: LAST_READ_MS,
    message: new ConnectionError(message),
  });
}
