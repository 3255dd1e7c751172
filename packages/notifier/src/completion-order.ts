import { decode, decodeError, type RequestCommands } from '@piecework/protocol';
import { type ResultItem, type ResultRow, resultRows } from './result-feed.js';

/**
 * Results in the order in which they were settled. A cursor is the place of the result's entry in the
 * stream and how many of its results were given out: 'c<generation>-<settled>.<n>'.
 */
export async function* inCompletionOrder<Result>(
  commands: RequestCommands,
  options: { failed: boolean; cursor: string | undefined },
  done: Promise<unknown>,
): AsyncGenerator<ResultItem<Result>> {
  const [start, given] = options.cursor ? options.cursor.slice(1).split('.') : ['-', '0'];
  for await (const rows of resultRows(commands, start ?? '-', done)) {
    const errors = options.failed ? await errorsOf(commands, rows) : undefined;
    for (const { position, records } of rows) {
      const skip = position === start ? Number(given) : 0;
      for (let i = skip; i < records.length; i += 1) {
        const { index, failed, value } = records[i]!;
        const cursor = `c${position}.${i + 1}`;
        if (!failed) {
          yield { index, status: 'succeeded', value: decode(value) as Result, cursor };
          continue;
        }
        // Without a kept error it is being run again, and its next outcome comes later.
        const error = errors?.get(index);
        if (error) yield { index, status: 'failed', error: decodeError(error), cursor };
      }
    }
  }
}

/** Kept errors of everything that failed in these rows, in one call. */
async function errorsOf(
  commands: RequestCommands,
  rows: readonly ResultRow[],
): Promise<Map<number, string>> {
  const indexes = rows.flatMap(({ records }) =>
    records.flatMap(({ failed, index }) => (failed ? [index] : [])),
  );
  const errors = new Map<number, string>();
  if (indexes.length === 0) return errors;
  const texts = await commands.failures(indexes);
  texts.forEach((text, i) => {
    if (text) errors.set(indexes[i]!, text);
  });
  return errors;
}
