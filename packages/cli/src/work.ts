import { InvalidOptionError } from '@piecework/protocol';
import { execEach } from './exec-each.js';
import { PersistentPrograms } from './exec-persistent.js';
import { ExecProgram } from './exec-program.js';
import { type Loaded, loadHandlers } from './load-handlers.js';

/** Flags that say what a worker does with a sub-request. */
export interface WorkValues {
  handler?: string;
  exec?: string;
  execOutput: 'text' | 'json';
  persistent: boolean;
}

/** What runs the sub-requests, and what is to be done when no more will come. */
export interface Work {
  readonly handlers: Loaded;
  close(): Promise<void>;
}

/** @throws InvalidOptionError unless there is exactly one of --handler and --exec, and what belongs to it */
export function checkWork({ handler, exec, execOutput, persistent }: WorkValues): void {
  if (handler === undefined && exec === undefined) {
    throw new InvalidOptionError('--handler', undefined, 'a file that exists, or --exec instead');
  }
  if (handler !== undefined && exec !== undefined) {
    throw new InvalidOptionError('--exec', exec, 'no --handler beside it');
  }
  if (exec === undefined && persistent) {
    throw new InvalidOptionError('--persistent', true, 'together with --exec');
  }
  if (execOutput === 'json' && (exec === undefined || persistent)) {
    throw new InvalidOptionError(
      '--exec-output',
      execOutput,
      'together with --exec, not with --persistent, whose lines are JSON anyway',
    );
  }
}

export async function openWork(values: WorkValues): Promise<Work> {
  const { handler, exec = '', execOutput, persistent } = values;
  const nothing = async () => {};
  if (handler !== undefined) return { handlers: await loadHandlers(handler), close: nothing };
  if (!persistent) {
    // What was aborted may have ignored SIGTERM.
    const close = () => ExecProgram.stopAll();
    return { handlers: { handler: execEach(exec, execOutput) }, close };
  }
  const programs = new PersistentPrograms(exec);
  return { handlers: { handler: programs.handler }, close: () => programs.close() };
}
