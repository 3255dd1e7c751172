import { InvalidOptionError, type QueueEnd } from '@piecework/protocol';

/** `q`, then of each shard the last end that was processed: `at~id`. */
export const encodeQueueCursor = (positions: readonly QueueEnd[]): string =>
  `q${positions.map(({ at, id }) => `${at}~${id}`).join(',')}`;

/** A position for each shard; undefined without a cursor. @throws InvalidOptionError */
export function decodeQueueCursor(
  cursor: string | undefined,
  shards: number,
): (QueueEnd | undefined)[] {
  if (cursor === undefined) return Array.from({ length: shards }, () => undefined);
  const parts = cursor.startsWith('q') ? cursor.slice(1).split(',') : [];
  const positions = parts.map((part) => /^(\d{1,16})~([A-Za-z0-9_.:-]{0,128})$/.exec(part));
  if (positions.length !== shards || positions.includes(null))
    throw new InvalidOptionError(
      'cursor',
      cursor,
      'the cursor of an event of this queue, with the same number of shards',
    );
  return positions.map((found) => ({ at: Number(found?.[1]), id: found?.[2] ?? '' }));
}
