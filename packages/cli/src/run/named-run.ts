import { createHash } from 'node:crypto';
import { InvalidOptionError, NAME } from '@piecework/protocol/contract';
import { nanoid } from 'nanoid';

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
  /** The flag that makes it fail unless there is a run to continue. */
  readonly resume: ResumeFlag | undefined;
}

type ResumeFlag = '--resume' | '--retry-failed';

/** `--retry-failed` implies `--resume`. */
export const resumeFlag = ({
  resume,
  retryFailed,
}: Pick<AgainValues, 'resume' | 'retryFailed'>): ResumeFlag | undefined => {
  if (resume) return '--resume';
  return retryFailed ? '--retry-failed' : undefined;
};

/** @throws InvalidOptionError when the flags name no run that could be continued */
export function checkAgain({ id, redis, ...values }: AgainValues): void {
  const flag = resumeFlag(values);
  if (flag === undefined) return;
  if (id === undefined) throw new InvalidOptionError(flag, true, 'together with --id');
  if (redis === undefined && !process.env['REDIS_URL']) {
    const allowed = 'together with --redis or REDIS_URL, as a Redis of its own ends with each run';
    throw new InvalidOptionError(flag, true, allowed);
  }
}

/** Whether the run can be continued: it has an id, on a Redis that outlives it. */
export const isNamed = ({ id, redis }: Pick<AgainValues, 'id' | 'redis'>): boolean =>
  id !== undefined && (redis !== undefined || !!process.env['REDIS_URL']);

/** The queue of a run without `--queue`: always the same for an id. A hash where `run-ID` is too long for a queue. */
export function ownQueue(id = nanoid(10)): string {
  const whole = `run-${id}`;
  if (NAME.test(whole)) return whole;
  return `run-${createHash('sha256').update(id).digest('hex')}`;
}
