import { setTimeout as sleep } from 'node:timers/promises';
import { PieceworkError } from '@piecework/protocol';
import { Journal } from '../contract/journal.js';
import type { Report, RoleArgument, Task } from '../contract/messages.js';

/** A process of the attack: it has a journal, gets tasks from the desk, and ends when its parent ends. */
export interface Role {
  readonly argument: RoleArgument;
  readonly journal: Journal;
  readonly report: (report: Report) => void;
}

export function enterRole(): Role {
  process.on('disconnect', () => process.exit(1));
  const argument = JSON.parse(process.argv[2] ?? '') as RoleArgument;
  return {
    argument,
    journal: new Journal(argument.journals, argument.name),
    report: (report) => void process.send?.(report),
  };
}

/** Runs the tasks of the desk, all at once: the desk limits their number. */
export function serve(work: (task: Task) => Promise<void>): void {
  process.on('message', (task: Task) => void work(task));
}

/** Now, on the clock of the journals. */
export const nowNs = (): string => String(process.hrtime.bigint());

/** Closes and exits at SIGTERM, which the desk sends at the end of the run. */
export function onStop(stop: () => Promise<void>): void {
  process.once('SIGTERM', () => void stop().then(() => process.exit(0)));
}

/**
 * Repeats a call, which the errors allow, until it is answered; `note` receives every error.
 * @throws what is not retryable
 */
export async function insist<T>(
  call: () => Promise<T>,
  note: (error: PieceworkError) => void,
): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof PieceworkError)) throw error;
      note(error);
      if (!error.retryable) throw error;
      await sleep(100);
    }
  }
}
