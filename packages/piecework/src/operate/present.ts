import { QueueSigns, type RequestStatus, statusOf } from '@piecework/notifier';
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
  const signs = new QueueSigns(shards);
  const status = (id: string) =>
    patiently(() => statusOf(new RequestReads(connection, id), shards, 0, signs));
  return Promise.all(ids.map((id) => status(id).catch(undefinedIfGone)));
}

function undefinedIfGone(error: unknown): undefined {
  const isGone =
    error instanceof NotFoundError ||
    error instanceof ExpiredError ||
    error instanceof DroppedError;
  if (!isGone) throw error;
}
