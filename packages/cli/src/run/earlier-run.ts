import type { RequestStatus } from '@piecework/notifier';
import type { RequestOptions } from '@piecework/producer';
import {
  Connection,
  EndedError,
  ExpiredError,
  LostError,
  PieceworkError,
  RequestExistsError,
} from '@piecework/protocol';
import type { OpenHandle, Piecework, RequestHandle } from 'piecework';
import { say } from '../terminal/print.js';
import { expectNew, type RunFiles } from './files.js';
import { freeLeftovers } from './leftovers.js';
import { RunLock } from './lock.js';
import type { Named } from './named-run.js';
import type { RunValues } from './values.js';

/**
 * The same command continues a run that has a name (`--id`), on a Redis that outlives the run. Before it starts
 * anything, it takes the lock of that name and finds the request of the earlier run.
 */

/** A run whose input was cut off is cancelled if nobody continues it for this time, in ms. */
const LEFT_MS = 86_400_000;

/** The options that identify a run. They leave out what may differ when it is continued, such as `limit`. */
export function namedOptions(options: RequestOptions, source: string): RequestOptions {
  const { limit: _, ...identity } = options;
  return { ...identity, source, producerLeaseMs: LEFT_MS };
}

/** The lock of a run, with the connection on which it was taken. */
export interface RunningHere extends AsyncDisposable, Pick<RunLock, 'lost' | 'followsEnded'> {
  readonly connection: Connection;
}

/** Takes the lock of a run. @throws PieceworkError UNDER_WAY · ConnectionError, ServerError */
export async function lockRun({ redis, queue, id }: Named): Promise<RunningHere> {
  const connection = Connection.open(redis);
  try {
    await connection.check();
    const lock = await RunLock.take(connection, queue, id, say);
    // Without an answer the lock expires by itself.
    const release = () => connection.closeSoon(lock[Symbol.asyncDispose]());
    const { lost, followsEnded } = lock;
    return { lost, followsEnded, connection, [Symbol.asyncDispose]: release };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** An earlier run of the same `--id`. */
export interface Earlier {
  readonly open: OpenHandle<unknown>;
  readonly isComplete: boolean;
  /** Whether its failures are run again (`--retry-failed`). */
  readonly retries: boolean;
}

/**
 * Finds the request of an earlier run, says how far it came, and frees what its ended workers own; undefined when the
 * run is to begin from the start.
 * @throws InvalidOptionError when that would overwrite a file · PieceworkError with `--resume` · RequestExistsError
 */
export async function findEarlier(
  pw: Piecework,
  named: Named,
  options: RequestOptions,
  { shards, persistent, exec, retryFailed }: RunValues,
  files: RunFiles,
  { connection, followsEnded }: RunningHere,
): Promise<Earlier | undefined> {
  const open = await openEarlier(pw, named, options, files);
  if (!open) return undefined;
  const status = await open.handle.status();
  const isComplete = status.status === 'complete';
  sayEarlier(status, retryFailed);
  if (!isComplete) {
    const work = persistent ? 'persistent programs' : exec ? 'programs' : 'handler';
    await freeLeftovers(connection, { ...named, shards, here: followsEnded, work });
  }
  return { open, isComplete, retries: isComplete && retryFailed };
}

async function openEarlier(
  pw: Piecework,
  { id, resume }: Named,
  options: RequestOptions,
  files: RunFiles,
): Promise<OpenHandle<unknown> | undefined> {
  const absent = await pw
    .request(id)
    .status()
    .then(
      () => undefined,
      (error: unknown) => {
        if (error instanceof PieceworkError && ABSENT.has(error.code)) return error;
        throw error;
      },
    );
  if (!absent) return pw.open(options).catch((error) => differs(error, id));
  if (resume) {
    const message = `nothing to continue: ${absent.message}; without ${resume} the run begins from the start`;
    throw new PieceworkError(message, { code: absent.code });
  }
  await expectNew(files, absent.message);
  if (absent instanceof ExpiredError || absent instanceof LostError)
    say(`${absent.message}; the run begins from the start`);
  return undefined;
}

/** Says how far the earlier run came. */
function sayEarlier({ id, status, counts }: RequestStatus, retryFailed: boolean): void {
  const number = (n: number) => n.toLocaleString('en-US');
  const { total, succeeded, failed } = counts;
  if (status === 'complete' && counts.cancelled > 0) {
    say(`${id} was cancelled before; to begin from the start, first: piecework drop ${id}`);
    return;
  }
  if (status === 'complete') {
    say(
      retryFailed && failed > 0
        ? `${id}: ${number(failed)} of ${number(total)} failed and run again`
        : `${id} has ended before: nothing is run again`,
    );
    return;
  }
  const all = status === 'open' ? `${number(total)} so far` : number(total);
  say(`${id} continues: ${number(succeeded + failed)} of ${all} were done`);
  if (retryFailed) say('--retry-failed has no effect yet: this run has not ended, and continues');
}

/** Sets the limit of this run; it may be another one each time. */
export async function setLimit(
  handle: RequestHandle,
  limit: number | null | undefined,
): Promise<void> {
  await handle.update({ limit: limit ?? null }).catch((error) => {
    if (!(error instanceof EndedError)) throw error;
  });
}

/** The error of a run whose request the server has lost: it says how to begin from the start. */
export function lostRun(
  error: unknown,
  id: string,
  { out, outDir, joblog }: RunFiles,
): PieceworkError | undefined {
  if (!(error instanceof LostError)) return undefined;
  const names = [out, outDir, joblog].flatMap((file) => (file?.isFile ? [file.name] : []));
  const move = names.length > 0 ? `move ${names.join(' and ')} away, then ` : '';
  const message = `run ${id} is no longer on the server, which may have lost it (a restart without its data, a failover, deleted keys), and cannot continue; to run all of it from the start, ${move}give the same command again`;
  return new PieceworkError(message, { code: error.code });
}

/** Codes of errors that say that there is no such request. */
const ABSENT = new Set(['NOT_FOUND', 'EXPIRED', 'DROPPED', 'LOST']);

/** Says what to do when the request of this id is not the same run. */
function differs(error: unknown, id: string): never {
  if (!(error instanceof RequestExistsError)) throw error;
  const { requestId, status, differs } = error;
  const way = `take another --id, or remove that run: piecework drop ${id}`;
  if (differs.length === 0 && status === 'complete') {
    const why = `it was cancelled before its input was read to the end; ${way}`;
    throw new RequestExistsError(requestId, status, why);
  }
  // The limit may differ, and always seems to: `setLimit` sets it when the run has begun.
  const names = differs.filter((name) => name !== 'limit');
  const what = names.map((name) => (name === 'items' ? 'input or command' : name)).join(', ');
  const why = `the run of this id is another one (it differs in: ${what}); ${way}`;
  throw new RequestExistsError(requestId, status, why, differs);
}
