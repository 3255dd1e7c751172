import { dirname, resolve } from 'node:path';
import { InvalidOptionError } from '@piecework/protocol/contract';
import type { ExecInput } from '../exec/command.js';
import type { ExecOutput } from '../exec/program-per-item.js';
import { isHidden } from '../terminal/file-stat.js';

/** Values of the flags that say what a worker does with a sub-request. */
export interface WorkValues {
  handler?: string;
  exec?: string;
  /** Names, separated by commas. */
  execFields?: string;
  execInput?: ExecInput;
  execOutput: ExecOutput;
  execStderr: 'keep' | 'index' | 'request';
  persistent: boolean;
  maxResultBytes: number;
}

/** @throws InvalidOptionError unless there is exactly one of --handler and --exec, with flags that fit it */
export async function checkWork(values: WorkValues): Promise<void> {
  const { handler, exec, execFields, execInput, execOutput, execStderr, persistent } = values;
  if (handler === undefined && exec === undefined) {
    throw new InvalidOptionError('--handler', undefined, 'a file that exists, or --exec instead');
  }
  if (handler !== undefined && isHidden(resolve(handler))) {
    const allowed = `a file that may be read (permission denied: ${dirname(resolve(handler))})`;
    throw new InvalidOptionError('--handler', handler, allowed);
  }
  if (handler !== undefined && exec !== undefined) {
    throw new InvalidOptionError('--exec', exec, 'without --handler');
  }
  if (exec === undefined && persistent) {
    throw new InvalidOptionError('--persistent', true, 'together with --exec');
  }
  if (execOutput !== 'text' && (exec === undefined || persistent)) {
    throw new InvalidOptionError(
      '--exec-output',
      execOutput,
      'together with --exec and without --persistent, whose lines are JSON',
    );
  }
  if (execInput !== undefined && (exec === undefined || persistent)) {
    throw new InvalidOptionError('--exec-input', execInput, 'with --exec, without --persistent');
  }
  if (execFields !== undefined && (exec === undefined || persistent))
    throw new InvalidOptionError('--exec-fields', execFields, 'with --exec, without --persistent');
  if (execStderr !== 'keep' && exec === undefined)
    throw new InvalidOptionError('--exec-stderr', execStderr, 'together with --exec');
  if (exec === undefined) return;
  const { ExecCommand, hasItem } = await import('../exec/command.js');
  // Its text goes to the shell as it is.
  if (!persistent) new ExecCommand(exec, execInput, execFields?.split(','));
  else if (hasItem(exec))
    throw new InvalidOptionError('--exec', exec, 'no {} with --persistent: the program gets lines');
}
