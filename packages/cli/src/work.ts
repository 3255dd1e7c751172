import { InvalidOptionError } from '@piecework/protocol';
import type { HandlerContext } from '@piecework/worker';
import { ExecCommand, type ExecInput } from './exec-command.js';
import { type ExecOutput, execEach } from './exec-each.js';
import { PersistentPrograms } from './exec-persistent.js';
import { ExecProgram } from './exec-program.js';
import { LiveStderr, type StderrPrefix } from './live-stderr.js';
import { type Loaded, loadHandlers } from './load-handlers.js';

/** Flags that say what a worker does with a sub-request. */
export interface WorkValues {
  handler?: string;
  exec?: string;
  /** Names with commas between them. */
  execFields?: string;
  execInput?: ExecInput;
  execOutput: ExecOutput;
  execStderr: 'keep' | 'index' | 'request';
  persistent: boolean;
  maxResultBytes: number;
}

/** What runs the sub-requests, and what is to be done when no more will come. */
export interface Work {
  readonly handlers: Loaded;
  close(): Promise<void>;
}

/** @throws InvalidOptionError unless there is exactly one of --handler and --exec, and what belongs to it */
export function checkWork(values: WorkValues): void {
  const { handler, exec, execFields, execInput, execOutput, execStderr, persistent } = values;
  if (handler === undefined && exec === undefined) {
    throw new InvalidOptionError('--handler', undefined, 'a file that exists, or --exec instead');
  }
  if (handler !== undefined && exec !== undefined) {
    throw new InvalidOptionError('--exec', exec, 'no --handler beside it');
  }
  if (exec === undefined && persistent) {
    throw new InvalidOptionError('--persistent', true, 'together with --exec');
  }
  if (execOutput !== 'text' && (exec === undefined || persistent)) {
    throw new InvalidOptionError(
      '--exec-output',
      execOutput,
      'together with --exec, not with --persistent, whose lines are JSON anyway',
    );
  }
  if (execInput !== undefined && (exec === undefined || persistent)) {
    throw new InvalidOptionError('--exec-input', execInput, 'with --exec, without --persistent');
  }
  if (execFields !== undefined && (exec === undefined || persistent))
    throw new InvalidOptionError('--exec-fields', execFields, 'with --exec, without --persistent');
  if (execStderr !== 'keep' && exec === undefined)
    throw new InvalidOptionError('--exec-stderr', execStderr, 'together with --exec');
  if (exec?.includes("'{}'"))
    throw new InvalidOptionError(
      '--exec',
      exec,
      "{} without single quotes: it needs none (with a blank, '{ }', it is text)",
    );
  if (exec !== undefined && persistent && new ExecCommand(exec).takesItem)
    throw new InvalidOptionError('--exec', exec, 'no {} with --persistent: it gets lines');
}

const PREFIXES: Readonly<Record<WorkValues['execStderr'], StderrPrefix | undefined>> = {
  keep: undefined,
  index: ({ index }) => String(index),
  request: ({ requestId, index }) => `${requestId} ${index}`,
};

/** @param onDiscarded told once, when a program has written what `--exec-output none` discards; is waited for */
export async function openWork(
  values: WorkValues,
  onDiscarded: () => Promise<void> = async () => {},
): Promise<Work> {
  const { handler, exec = '', execFields, execInput, execOutput, execStderr, persistent } = values;
  const { maxResultBytes } = values;
  const nothing = async () => {};
  if (handler !== undefined) return { handlers: await loadHandlers(handler), close: nothing };
  const prefix = PREFIXES[execStderr];
  if (!persistent) {
    // What was aborted may have ignored SIGTERM.
    const close = () => ExecProgram.stopAll();
    const live = (context: HandlerContext) => prefix && new LiveStderr(() => prefix(context));
    const command = new ExecCommand(exec, execInput, execFields?.split(','));
    let telling: Promise<void> | undefined;
    const discarded = () => {
      telling ??= onDiscarded();
      return telling;
    };
    const output = { as: execOutput, maxBytes: maxResultBytes, discarded };
    return { handlers: { handler: execEach(command, output, live) }, close };
  }
  const programs = new PersistentPrograms(exec, maxResultBytes, prefix);
  return { handlers: { handler: programs.handler }, close: () => programs.close() };
}
