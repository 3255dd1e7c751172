import type { HandlerContext } from '@piecework/worker';
import { ExecCommand } from '../exec/command.js';
import { LiveStderr, type StderrPrefix } from '../exec/live-stderr.js';
import { PersistentPrograms } from '../exec/persistent-programs.js';
import { ExecProgram } from '../exec/program.js';
import { execEach } from '../exec/program-per-item.js';
import type { WorkValues } from './check-work.js';
import type { Loaded } from './load-handlers.js';

/** Runs the sub-requests of a worker. `close` is called after the last one. */
export interface Work {
  readonly handlers: Loaded;
  close(): Promise<void>;
}

const PREFIXES: Readonly<Record<WorkValues['execStderr'], StderrPrefix | undefined>> = {
  keep: undefined,
  index: ({ index }) => String(index),
  request: ({ requestId, index }) => `${requestId} ${index}`,
};

/** The work of `--exec`. Loaded by workers that run programs. */
export function openPrograms(values: WorkValues, onDiscarded: () => Promise<void>): Work {
  const { exec = '', execFields, execInput, execOutput, execStderr, persistent } = values;
  const { maxResultBytes } = values;
  const prefix = PREFIXES[execStderr];
  if (persistent) {
    const programs = new PersistentPrograms(exec, maxResultBytes, prefix);
    return {
      handlers: { handler: programs.handler, jsonText: true },
      close: () => programs.close(),
    };
  }
  // A program whose sub-request was aborted may ignore SIGTERM.
  const close = () => ExecProgram.closeAll();
  const live = (context: HandlerContext) => prefix && new LiveStderr(() => prefix(context));
  const command = new ExecCommand(exec, execInput, execFields?.split(','));
  let notifying: Promise<void> | undefined;
  const discarded = () => {
    notifying ??= onDiscarded();
    return notifying;
  };
  const output = { as: execOutput, maxBytes: maxResultBytes, discarded };
  return { handlers: { handler: execEach(command, output, live), jsonText: true }, close };
}
