import { decode, decodeError, type RequestCommands, type ResultRecord } from '@piecework/protocol';
import { Positions } from './positions.js';
import { type ResultItem, resultRows } from './result-feed.js';

/**
 * Results in the order of the items. What comes early waits for its turn: as text while it fits into
 * `bufferBytes`, else only its place in the stream, 8 bytes, and it is read again when its turn comes.
 * While the request runs, an index without a result holds the later ones back; at the completion the
 * gaps (cancelled ones) are skipped. A cursor is the next index: 'i<index>'.
 */

/** How many results are given out, or looked up again, at once. */
const BATCH = 256;

export async function* inIndexOrder<Result>(
  commands: RequestCommands,
  options: { failed: boolean; cursor: string | undefined; bufferBytes: number },
  done: Promise<unknown>,
): AsyncGenerator<ResultItem<Result>> {
  const order = new IndexOrder(
    commands,
    Number(options.cursor?.slice(1) ?? 0),
    options.bufferBytes,
  );
  for await (const rows of resultRows(commands, '-', done)) {
    for (const { position, records } of rows) {
      for (const record of records) order.add(record, position);
    }
    yield* give<Result>(order, commands, options.failed);
  }
  while (order.skipGap()) yield* give<Result>(order, commands, options.failed);
}

/** Everything whose turn it is. */
async function* give<Result>(
  order: IndexOrder,
  commands: RequestCommands,
  withFailed: boolean,
): AsyncGenerator<ResultItem<Result>> {
  for (;;) {
    const batch = await order.take(BATCH);
    if (batch.length === 0) return;
    const failed = withFailed
      ? batch.filter((record) => record.failed).map(({ index }) => index)
      : [];
    const texts = failed.length > 0 ? await commands.failures(failed) : [];
    const errors = new Map(failed.map((index, i) => [index, texts[i]]));
    for (const record of batch) {
      const { index } = record;
      const cursor = `i${index + 1}`;
      const error = errors.get(index);
      if (!record.failed)
        yield { index, status: 'succeeded', value: decode(record.value) as Result, cursor };
      else if (error) yield { index, status: 'failed', error: decodeError(error), cursor };
    }
  }
}

/** The reorder buffer. */
export class IndexOrder {
  readonly #commands: Pick<RequestCommands, 'results'>;
  readonly #bufferBytes: number;
  readonly #buffer = new Map<number, ResultRecord>();
  readonly #positions = new Positions();
  #bytes = 0;
  #next: number;

  constructor(commands: Pick<RequestCommands, 'results'>, next: number, bufferBytes: number) {
    this.#commands = commands;
    this.#next = next;
    this.#bufferBytes = bufferBytes;
  }

  /** Bytes that the bookkeeping holds beside the buffered texts. */
  get bookkeepingBytes(): number {
    return this.#positions.bytes;
  }

  add(record: ResultRecord, position: string): void {
    const { index, value } = record;
    if (index < this.#next || this.#buffer.has(index)) return;
    if (this.#bytes + value.length <= this.#bufferBytes) {
      this.#buffer.set(index, record);
      this.#bytes += value.length;
    } else {
      this.#positions.set(index, position);
    }
  }

  /** Up to `max` results from the next index on, without a gap. */
  async take(max: number): Promise<ResultRecord[]> {
    const records: (ResultRecord | undefined)[] = [];
    const missing = new Map<string, number[]>();
    const first = this.#next;
    while (records.length < max) {
      const index = this.#next;
      const buffered = this.#buffer.get(index);
      const position = buffered ? undefined : this.#positions.get(index);
      if (!buffered && !position) break;
      if (buffered) {
        this.#buffer.delete(index);
        this.#bytes -= buffered.value.length;
      } else if (position) {
        missing.set(position, [...(missing.get(position) ?? []), index]);
      }
      records.push(buffered);
      this.#next += 1;
      this.#positions.passed(this.#next);
    }
    await Promise.all(
      [...missing].map(async ([position, indexes]) => {
        const [row] = await this.#commands.results(position, 1, position);
        for (const record of row?.records ?? []) {
          if (indexes.includes(record.index)) records[record.index - first] = record;
        }
      }),
    );
    return records.filter((record) => record !== undefined);
  }

  /** Moves to the next index that has a result; false when there is none. */
  skipGap(): boolean {
    let next = this.#positions.nextFrom(this.#next) ?? Number.POSITIVE_INFINITY;
    for (const index of this.#buffer.keys()) next = Math.min(next, index);
    if (next === Number.POSITIVE_INFINITY) return false;
    this.#next = next;
    return true;
  }
}
