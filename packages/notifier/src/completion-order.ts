import { InvalidOptionError } from '@piecework/protocol';
import { type ResultItem, resultItem } from './result-item.js';
import type { ReadEntry, ReadItem, ResultReader } from './result-reader.js';

/**
 * Results in the order in which they were settled. Nothing is held but the page that is being given
 * out. The cursor is `c<position>.<n>`: n records of the stream's entry at that position were dealt
 * with. Entries never change, so it stays good for as long as the results are kept.
 */
export async function* inCompletionOrder<Result>(
  reader: ResultReader,
  { failed, from }: { failed: boolean; from: CompletionCursor },
): AsyncGenerator<Iterable<ResultItem<Result>>> {
  for await (const page of reader.pages(from.position)) yield itemsOf<Result>(page, failed, from);
}

/** The items of one page, each made when it is asked for. */
function* itemsOf<Result>(
  page: readonly ReadEntry[],
  failed: boolean,
  from: CompletionCursor,
): Generator<ResultItem<Result>> {
  for (const { position, items } of page) {
    const done = position === from.position ? from.done : 0;
    for (let n = done; n < items.length; n += 1) {
      const item = items[n] as ReadItem;
      if (item.kind === 'redriven') continue;
      if (item.kind === 'succeeded' || failed) yield resultItem(item, `c${position}.${n + 1}`);
    }
  }
}

interface CompletionCursor {
  /** '-': before the first. */
  readonly position: string;
  readonly done: number;
}

/** @throws InvalidOptionError */
export function completionCursor(cursor: string | undefined): CompletionCursor {
  if (cursor === undefined) return { position: '-', done: 0 };
  const [, position, done] = /^c(\d{1,16}-\d{1,16})\.(\d{1,15})$/.exec(cursor) ?? [];
  if (position === undefined) {
    throw new InvalidOptionError('cursor', cursor, "the cursor of an item in order 'completion'");
  }
  return { position, done: Number(done) };
}
