import type { RequestCommands } from '@piecework/protocol';
import { completionCursor, inCompletionOrder } from './completion-order.js';
import { indexCursor, inIndexOrder } from './index-order.js';
import { OneByOne } from './one-by-one.js';
import type { CheckedResultsOptions } from './options.js';
import type { ResultItem } from './result-item.js';
import { ResultReader } from './result-reader.js';
import { Stay } from './stay.js';
import type { Ticket } from './ticket.js';

/**
 * Results of a request, live. What is wrong with the arguments is thrown here and now; nothing is
 * opened before the first item is asked for, and all is released when the loop is left.
 */
export function resultsOf<Result>(
  request: RequestCommands,
  join: () => Ticket,
  options: CheckedResultsOptions,
  closing: AbortSignal,
): AsyncGenerator<ResultItem<Result>> {
  const { order, failed, cursor, bufferBytes } = options;
  const read =
    order === 'index'
      ? readBy(indexCursor(cursor), (reader, from) =>
          inIndexOrder<Result>(reader, { failed, from, bufferBytes }),
        )
      : readBy(completionCursor(cursor), (reader, from) =>
          inCompletionOrder<Result>(reader, { failed, from }),
        );
  return new OneByOne(runs());

  async function* runs() {
    using stay = new Stay(`results of ${request.keys.id}`, options, closing);
    const ticket = join();
    stay.hindered = () => ticket.hindered;
    try {
      for await (const run of read(new ResultReader(request, ticket, stay, failed))) {
        yield whileIn(stay, run);
      }
    } finally {
      ticket.leave();
    }
  }
}

/** The consumer may be away for long between two of them. */
function* whileIn<Item>(stay: Stay, run: Iterable<Item>): Generator<Item> {
  for (const item of run) {
    stay.throwIfOver();
    yield item;
  }
}

function readBy<Cursor, Item>(
  from: Cursor,
  read: (reader: ResultReader, from: Cursor) => AsyncGenerator<Iterable<Item>>,
): (reader: ResultReader) => AsyncGenerator<Iterable<Item>> {
  return (reader) => read(reader, from);
}
