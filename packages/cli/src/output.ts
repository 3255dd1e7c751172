import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import type { Writable } from 'node:stream';
import type { ResultItem } from '@piecework/notifier';

/** Lines are gathered up to this many characters before they are written. */
const BATCH = 65_536;

/** One result as a line of `--out`: `{"index":…,"status":…,"value"|"error":…}`. */
export function resultLine(item: ResultItem<unknown>): string {
  const { index, status } = item;
  const line =
    item.status === 'succeeded'
      ? { index, status, value: item.value === undefined ? null : item.value }
      : { index, status, error: item.error };
  return `${JSON.stringify(line)}\n`;
}

/** Writes results as NDJSON, no faster than the file or pipe takes them. Answers how many. */
export async function writeResults(
  results: AsyncIterable<ResultItem<unknown>>,
  out: string,
  line: (item: ResultItem<unknown>) => string = resultLine,
): Promise<number> {
  const stream: Writable = out === '-' ? process.stdout : createWriteStream(out);
  const failed = new Promise<never>((_, reject) => stream.once('error', reject));
  failed.catch(() => {});
  let batch = '';
  let count = 0;
  const flush = async () => {
    if (batch !== '' && !stream.write(batch)) await Promise.race([once(stream, 'drain'), failed]);
    batch = '';
  };
  for await (const item of results) {
    batch += line(item);
    count += 1;
    if (batch.length >= BATCH) await flush();
  }
  await flush();
  if (out !== '-') {
    stream.end();
    await Promise.race([once(stream, 'close'), failed]);
  }
  return count;
}
