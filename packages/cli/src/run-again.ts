import { createHash } from 'node:crypto';
import type { RequestStatus } from '@piecework/notifier';
import type { RequestOptions } from '@piecework/producer';
import {
  Connection,
  EndedError,
  ExpiredError,
  InvalidOptionError,
  LostError,
  NAME,
  PieceworkError,
  RequestExistsError,
} from '@piecework/protocol';
import { nanoid } from 'nanoid';
import type { OpenHandle, Piecework, RequestHandle } from 'piecework';
import { say } from './progress-bar.js';
import type { RunFiles } from './run-files.js';
import { RunLock } from './run-lock.js';

/**
 * A run that has a name (`--id`) on a Redis that outlives it can be gone on with by the same command. This is what
 * it does before anything is started: see that nobody else runs it, and look what there is of it.
 */

/** Nobody looks for a run that was left for so long, in ms: then the rest is cancelled, if its input was cut. */
const LEFT_MS = 86_400_000;

interface AgainValues {
  readonly id?: string;
  readonly redis?: string;
  readonly resume: boolean;
  readonly retryFailed: boolean;
}

export interface Named {
  readonly id: string;
  readonly redis: string;
  readonly queue: string;
  /** `--resume`: nothing is to be begun. */
  readonly resume: boolean;
}

/** @throws InvalidOptionError when there is nothing that could be gone on with */
export function checkAgain({ id, redis, resume, retryFailed }: AgainValues): void {
  if (!resume && !retryFailed) return;
  const flag = resume ? '--resume' : '--retry-failed';
  if (id === undefined) throw new InvalidOptionError(flag, true, 'together with --id');
  if (redis === undefined && !process.env['REDIS_URL']) {
    const allowed = 'together with --redis or REDIS_URL, as a Redis of its own ends with each run';
    throw new InvalidOptionError(flag, true, allowed);
  }
}

/** Only a Redis that goes on after a run can be asked for it again. */
export const isNamed = ({ id, redis }: Pick<AgainValues, 'id' | 'redis'>): boolean =>
  id !== undefined && (redis !== undefined || !!process.env['REDIS_URL']);

/** A queue of its own, always the same for an id; ids may be as long as names of queues are. */
export function ownQueue(id = nanoid(10)): string {
  const whole = `run-${id}`;
  if (NAME.test(whole)) return whole;
  return `run-${createHash('sha256').update(id).digest('hex')}`;
}

/** What a run can be gone on with by. What may differ from one to the next, as `limit`, is not among it. */
export function namedOptions(options: RequestOptions, source: string): RequestOptions {
  const { limit: _, ...identity } = options;
  return { ...identity, source, producerLeaseMs: LEFT_MS };
}

/** The lock of a run, with a connection that is open as long as it is held. */
export interface RunningHere extends AsyncDisposable, Pick<RunLock, 'lost' | 'followsEnded'> {
  readonly connection: Connection;
}

/** Takes the lock of a run. @throws PieceworkError UNDER_WAY · ConnectionError, ServerError */
export async function lockRun({ redis, queue, id }: Named): Promise<RunningHere> {
  const connection = Connection.open(redis);
  try {
    await connection.check();
    const lock = await RunLock.take(connection, queue, id, say);
    const release = async () => {
      await lock[Symbol.asyncDispose]();
      await connection.close();
    };
    const { lost, followsEnded } = lock;
    return { lost, followsEnded, connection, [Symbol.asyncDispose]: release };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/**
 * What there is of a run; undefined when it is to be begun.
 * @throws InvalidOptionError when a file would be lost by that, or `--resume` forbids it · RequestExistsError
 */
export async function whatThereIs(
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
    const message = `nothing to go on with: ${absent.message}; without --resume it begins from the start`;
    throw new PieceworkError(message, { code: absent.code });
  }
  await expectNew(files, absent.message);
  if (absent instanceof ExpiredError || absent instanceof LostError)
    say(`${absent.message}; it begins from the start`);
  return undefined;
}

/** Says how far a run is that goes on. */
export function sayWhatThereIs({ id, status, counts }: RequestStatus, retryFailed: boolean): void {
  const number = (n: number) => n.toLocaleString('en-US');
  const { total, succeeded, failed } = counts;
  if (status === 'complete' && counts.cancelled > 0) {
    say(`${id} was cancelled before; piecework drop ${id} lets it begin anew`);
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
  say(`${id} goes on: ${number(succeeded + failed)} of ${all} were done`);
  if (retryFailed) say('--retry-failed is for a run that has ended: this one goes on first');
}

/** How many may run at once can be another number each time. */
export async function setLimit(
  handle: RequestHandle,
  limit: number | null | undefined,
): Promise<void> {
  await handle.update({ limit: limit ?? null }).catch((error) => {
    if (!(error instanceof EndedError)) throw error;
  });
}

/** What an earlier run of an id wrote is not overwritten. @throws InvalidOptionError, which says `why` it would be */
export async function expectNew({ out, joblog }: RunFiles, why: string): Promise<void> {
  for (const [flag, file] of Object.entries({ '--out': out, '--joblog': joblog })) {
    if (!file || (await file.size()) === 0) continue;
    const allowed = `a new or empty file, as this run begins from the start: ${why}`;
    throw new InvalidOptionError(flag, file.name, allowed);
  }
}

/** Of a run that is not on the server any more: it cannot go on, only begin anew, and what it wrote is in the way. */
export function lostRun(
  error: unknown,
  id: string,
  { out, joblog }: RunFiles,
): PieceworkError | undefined {
  if (!(error instanceof LostError)) return undefined;
  const names = [out, joblog].flatMap((file) => (file?.isFile ? [file.name] : []));
  const move = names.length > 0 ? `move ${names.join(' and ')} away, then ` : '';
  const message = `run ${id} is not on the server any more, which may have lost it (a restart without its data, a failover, deleted keys), and cannot go on; to run all of it from the start, ${move}give the same command again`;
  return new PieceworkError(message, { code: error.code });
}

/** Nothing is there, for one reason or another. */
const ABSENT = new Set(['NOT_FOUND', 'EXPIRED', 'DROPPED', 'LOST']);

/** Says what to do about a request of this id that is another one. */
function differs(error: unknown, id: string): never {
  if (!(error instanceof RequestExistsError)) throw error;
  const { requestId, status, differs } = error;
  const way = `take another --id, or remove that one by piecework drop ${id}`;
  if (differs.length === 0 && status === 'complete') {
    const why = `it was cancelled before its input was read to the end; ${way}`;
    throw new RequestExistsError(requestId, status, why);
  }
  // That may differ, and always seems to: it is set when the run has begun.
  const names = differs.filter((name) => name !== 'limit');
  const what = names.map((name) => (name === 'items' ? 'input or command' : name)).join(', ');
  const why = `the run of this id is another one (it differs in: ${what}); ${way}`;
  throw new RequestExistsError(requestId, status, why, differs);
}
