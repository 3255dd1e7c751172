import { type RequestStatus, statusOf } from '@piecework/notifier';
import {
  type Connection,
  DroppedError,
  ExpiredError,
  NotFoundError,
  RequestReads,
  type Shards,
} from '@piecework/protocol';

/** How a read is tried. */
export type Patiently = <T>(read: () => Promise<T>) => Promise<T>;

/** The requests of these ids that still exist, in this order; undefined for one that does not. */
export function presentAmong(
  connection: Connection,
  shards: Shards,
  ids: readonly string[],
  patiently: Patiently,
): Promise<(RequestStatus | undefined)[]> {
  return Promise.all(
    ids.map((id) =>
      patiently(() => statusOf(new RequestReads(connection, id), shards)).catch(undefinedIfGone),
    ),
  );
}

function undefinedIfGone(error: unknown): undefined {
  const isGone =
    error instanceof NotFoundError ||
    error instanceof ExpiredError ||
    error instanceof DroppedError;
  if (!isGone) throw error;
}
