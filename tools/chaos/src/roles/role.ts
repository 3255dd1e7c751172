import { setTimeout as sleep } from 'node:timers/promises';
import { PieceworkError } from '@piecework/protocol';
import { Journal } from '../journal.js';
import type { Report, RoleArgument, Task } from '../messages.js';

/** What every process of the attack is: it has a journal, a desk that asks, and ends with its parent. */
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

/** Does what the desk asks for, all at once: the desk knows how much that may be. */
export function serve(work: (task: Task) => Promise<void>): void {
  process.on('message', (task: Task) => void work(task));
}

/** Now, on the clock of the journals. */
export const nowNs = (): string => String(process.hrtime.bigint());

/** Ends in good order when the run is over. */
export function onStop(stop: () => Promise<void>): void {
  process.once('SIGTERM', () => void stop().then(() => process.exit(0)));
}

/**
 * Asks again, as the errors say that one may, until it is answered; every error is told to `note`.
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
