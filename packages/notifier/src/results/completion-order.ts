import { InvalidOptionError, type ResultsEntry } from '@piecework/protocol';
import type { ReadEntry, ReadItem } from './read-entry.js';
import { type ResultItem, resultItem } from './result-item.js';
import type { ResultReader } from './result-reader.js';
import { SeenOutcomes } from './seen-outcomes.js';

/**
 * Results in the order in which they were settled. Memory holds the page that is being yielded, and one bit for each
 * result that was. The cursor is `c<position>.<n>`: the consumer has processed n records of the stream's entry at
 * that position. Entries never change, so a cursor is valid for as long as the results are kept.
 *
 * A server that loses its last writes is the exception: the stream goes back to an earlier state, and the lost
 * outcomes are recorded again, in another order. A result that was yielded is not yielded again. One that is now
 * recorded before the reader's position is found by a second pass from the start. The reader notices that one is
 * needed: when a new result lands before its position, an old one lands behind it and is seen twice.
 */
export async function* inCompletionOrder<Result>(
  reader: ResultReader,
  { failed, from, jsonText }: { failed: boolean; from: CompletionCursor; jsonText: boolean },
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
      yield itemsOf<Result>(page, { from, failed, jsonText }, seen);
    }
    await reader.throwIfRedriven(seen.takenBack);
    const missing = from.position === '-' ? await reader.missing(seen) : 0;
    // cure: missing results are an error
    if (pass === 2 && missing > 0) await reader.throwLost(missing);
    // cure: results are read again in the order of completion
    if (missing === 0 && !seen.mayLackEarlier) return;
  }
}

/** Identifies the entry of a cursor: when it changes, the stream went back to before that entry. */
const originOf = ({ position, items }: ReadEntry) =>
  [position, ...items.map(({ index }) => index)].join(' ');

/** The items of one page that were not seen before, each decoded when it is asked for. */
function* itemsOf<Result>(
  page: readonly ReadEntry[],
  { from, failed, jsonText }: { from: CompletionCursor; failed: boolean; jsonText: boolean },
  seen: SeenOutcomes,
): Generator<ResultItem<Result>> {
  for (const { position, items } of page) {
    const done = position === from.position ? from.done : 0;
    for (let n = 0; n < items.length; n += 1) {
      const item = items[n] as ReadItem;
      // cure: results are given once in the order of completion
      if (!seen.add(item, position) || n < done) continue;
      if (item.kind === 'succeeded' || failed)
        yield resultItem(item, `c${position}.${n + 1}`, jsonText);
    }
  }
}

/** The items of a request without failures, from all its results. */
export function* allSucceeded<Result>(
  results: readonly ResultsEntry[],
  jsonText: boolean,
): Generator<ResultItem<Result>> {
  for (const { position, records } of results) {
    for (const [n, { index, value }] of records.entries()) {
      yield resultItem(
        { index, kind: 'succeeded', text: value },
        `c${position}.${n + 1}`,
        jsonText,
      );
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
