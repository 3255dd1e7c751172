import { QueueErrors } from '../calls/queue/queue-errors.js';
import { FailureCommands } from '../calls/request/failure-commands.js';
import { decodeError } from '../contract/codec.js';
import type { Connection } from '../redis/connection.js';

/**
 * Adds sub-requests that failed because their workers ended too often to the last errors of the queue. Their workers
 * are gone and cannot do it. `indexes`: the sub-requests that one tend settled as failed.
 */
export async function noteCrashes(
  connection: Connection,
  queue: string,
  requestId: string,
  indexes: readonly number[],
): Promise<void> {
  const at = Date.now();
  const failures = await new FailureCommands(connection, requestId).pick(indexes, false);
  const errors = failures.map(({ index, attempts, error }) => {
    const { name, message, worker = '' } = decodeError(error);
    return { at, requestId, index, attempt: attempts + 1, worker, name, message };
  });
  await new QueueErrors(connection, queue).note(errors);
}
