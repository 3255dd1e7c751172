import { FailureCommands } from '../calls/failure-commands.js';
import { QueueErrors } from '../calls/queue-errors.js';
import { decodeError } from '../contract/codec.js';
import type { Connection } from '../redis/connection.js';

/**
 * Adds sub-requests that failed because their workers ended too often to the last errors of the queue. Their
 * workers cannot do it: they are gone. `indexes`: those that one look at the request settled so.
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
