import {
  backoff,
  type KeptError,
  pause,
  type RequestCommands,
  type ResultRecord,
} from '@piecework/protocol';

/** A result as it is given out. `cursor` resumes behind it. */
export type ResultItem<Result = unknown> =
  | {
      readonly index: number;
      readonly status: 'succeeded';
      readonly value: Result;
      readonly cursor: string;
    }
  | {
      readonly index: number;
      readonly status: 'failed';
      readonly error: KeptError;
      readonly cursor: string;
    };

/** One settle's results: its place in the stream and what it holds. */
export interface ResultRow {
  readonly position: string;
  readonly records: readonly ResultRecord[];
}

/** What is aimed at for one page, in characters of encoded results. */
const PAGE = 1_000_000;

/**
 * Pages of the results stream, live: ends when the request was complete before the last page was
 * found empty. `done` settles at the completion and rejects when the request is gone.
 */
export async function* resultRows(
  commands: RequestCommands,
  from: string,
  done: Promise<unknown>,
): AsyncGenerator<ResultRow[]> {
  const ended = { yes: false, error: undefined as unknown };
  const wake = new AbortController();
  done
    .catch((error: unknown) => {
      ended.error = error;
    })
    .finally(() => {
      ended.yes = true;
      wake.abort();
    });
  const waits = backoff(20, 500);
  let next = from;
  let count = 10;
  for (;;) {
    if (ended.error) throw ended.error;
    const last = ended.yes;
    const rows = await commands.results(next, count);
    const tail = rows.at(-1);
    if (tail) {
      next = `(${tail.position}`;
      count = pageCount(rows);
      waits.reset();
      yield rows;
    } else if (last) {
      return;
    } else {
      await pause(waits.next(), wake.signal);
    }
  }
}

/** How many entries to ask for, by the size of those that came. */
function pageCount(rows: readonly ResultRow[]): number {
  let size = 1;
  for (const { records } of rows) for (const { value } of records) size += value.length + 16;
  return Math.max(1, Math.min(1_000, Math.ceil((rows.length * PAGE) / size)));
}
