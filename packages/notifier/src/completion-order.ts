import { InvalidOptionError } from '@piecework/protocol';
import type { ReadEntry, ReadItem } from './read-entry.js';
import { type ResultItem, resultItem } from './result-item.js';
import type { ResultReader } from './result-reader.js';
import { SeenOutcomes } from './seen-outcomes.js';

/**
 * Results in the order in which they were settled. Nothing is held but the page that is being given
 * out, and a bit for each that was. The cursor is `c<position>.<n>`: n records of the stream's entry at that
 * position were dealt with. Entries never change, so it stays good for as long as the results are kept.
 *
 * Unless the server loses its last writes: the stream goes back behind the reader's back. What is recorded
 * again is not given again, and what is recorded before the reader's place is found by reading once more from
 * where it began. Nothing is passed over without a trace: as many records as went back come again before its
 * place, so where one of them is new, one of the old ones comes behind, for the second time.
 */
export async function* inCompletionOrder<Result>(
  reader: ResultReader,
  { failed, from }: { failed: boolean; from: CompletionCursor },
): AsyncGenerator<Iterable<ResultItem<Result>>> {
  const seen = new SeenOutcomes();
  let origin: string | undefined;
  for (let pass = 1; pass <= 2; pass += 1) {
    let isFirst = from.position !== '-';
    for await (const page of reader.pages(from.position)) {
      const first = page[0] as ReadEntry;
      if (isFirst) origin ??= originOf(first);
      if (isFirst && (originOf(first) !== origin || first.items.length < from.done))
        await reader.throwLost();
      isFirst = false;
      yield itemsOf<Result>(page, from, seen, failed);
    }
    const missing = from.position === '-' ? await reader.missing(seen) : 0;
    if (pass === 2 && missing > 0) await reader.throwLost(missing);
    if (missing === 0 && !seen.twice) return;
  }
}

/** What the entry of a cursor is: where it is another one, the stream went back to before it. */
const originOf = ({ position, items }: ReadEntry) =>
  [position, ...items.map(({ index }) => index)].join(' ');

/** The items of one page that were not seen before, each made when it is asked for. */
function* itemsOf<Result>(
  page: readonly ReadEntry[],
  from: CompletionCursor,
  seen: SeenOutcomes,
  failed: boolean,
): Generator<ResultItem<Result>> {
  for (const { position, items } of page) {
    const done = position === from.position ? from.done : 0;
    for (let n = 0; n < items.length; n += 1) {
      const item = items[n] as ReadItem;
      if (!seen.add(item, position) || n < done || item.kind === 'redriven') continue;
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
