import { InvalidOptionError } from '@piecework/protocol';
import { ReorderBuffer } from './reorder-buffer.js';
import { type ResultItem, resultItem } from './result-item.js';
import type { ResultReader } from './result-reader.js';
import { SeenOutcomes } from './seen-outcomes.js';

/** The most entries that one round trip fetches. */
const FETCH_ENTRIES = 256;

/**
 * Results in the order of the items. While the request runs, an index without an outcome blocks those behind it;
 * after the completion, an index without a result (cancelled, or failed when `failed` is false) is skipped. The
 * cursor is `i<next index>`. Every call reads the stream from its start, because the position of an index is not
 * known beforehand. A second pass follows when the server lost its last writes: an outcome that was recorded
 * since may precede what was read last.
 */
export async function* inIndexOrder<Result>(
  reader: ResultReader,
  {
    failed,
    from,
    bufferBytes,
    jsonText,
  }: { failed: boolean; from: number; bufferBytes: number; jsonText: boolean },
): AsyncGenerator<Iterable<ResultItem<Result>>> {
  const buffer = new ReorderBuffer(from, bufferBytes);
  let end = 0;
  for (let pass = 1; pass <= 2; pass += 1) {
    const seen = new SeenOutcomes();
    buffer.lost = false;
    for await (const page of reader.pages('-')) {
      for (const { position, items } of page) {
        for (const item of items) {
          seen.add(item, position);
          if (item.kind === 'redriven') continue;
          end = Math.max(end, item.index + 1);
          buffer.offer(item, position, item.kind === 'succeeded' || failed);
          if (item.index === buffer.next)
            yield* ready<Result>(buffer, reader, { bufferBytes, jsonText });
        }
      }
    }
    await reader.throwIfRedriven(seen.takenBack + buffer.takenBack);
    const missing = await reader.missing(seen);
    if (pass === 2 && missing > 0) await reader.throwLost(missing);
    // cure: results are read again in the order of the items
    if (missing === 0 && !seen.mayLackEarlier && !buffer.lost) break;
  }
  // Of a request that still runs, a reader that does not wait gets what is behind such an index, too.
  buffer.end(Math.max(end, reader.total));
  yield* ready<Result>(buffer, reader, { bufferBytes, jsonText });
}

/** All results whose turn it is; those kept only as a position are fetched. */
async function* ready<Result>(
  buffer: ReorderBuffer,
  reader: ResultReader,
  { bufferBytes, jsonText }: { bufferBytes: number; jsonText: boolean },
): AsyncGenerator<Iterable<ResultItem<Result>>> {
  for (;;) {
    const run = buffer.take();
    if (run.length > 0) {
      yield run.map((item) => resultItem<Result>(item, `i${item.index + 1}`, jsonText));
      continue;
    }
    const missing = buffer.missing(Math.min(FETCH_ENTRIES, reader.entriesFor(bufferBytes)));
    if (missing.length === 0) return;
    const entries = await reader.fetch(missing);
    if (entries.length < missing.length) await reader.throwIfGone();
    buffer.refill(entries);
    if (!buffer.ended) continue;
    await reader.throwIfRedriven(buffer.takenBack);
    if (buffer.lost) await reader.throwLost();
  }
}

/** @throws InvalidOptionError */
export function indexCursor(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  const [, next] = /^i(\d{1,15})$/.exec(cursor) ?? [];
  if (next === undefined) {
    throw new InvalidOptionError('cursor', cursor, "the cursor of an item in order 'index'");
  }
  return Number(next);
}
