import {
  ClosedError,
  type ReaderCommands,
  type ResultsEntry,
  type WaitOptions,
} from '@piecework/protocol';
import { CompletionOutcome } from '../waiting/outcome.js';
import type { Subscription } from '../waiting/subscription.js';
import { WaitScope } from '../waiting/wait-scope.js';
import type { EndWithResults } from '../waiting/watch.js';
import { allSucceeded, completionCursor, inCompletionOrder } from './completion-order.js';
import { Following } from './following.js';
import { indexCursor, inIndexOrder } from './index-order.js';
import { OneByOne } from './one-by-one.js';
import type { ResultItem } from './result-item.js';
import type { CheckedResultsOptions } from './result-options.js';
import { ResultReader } from './result-reader.js';

/** Results of a request, one by one. */
export interface Results<Item> extends AsyncGenerator<Item> {
  /**
   * How the request ended: known when the iteration has come to its end, undefined before. Results also end when the
   * request was cancelled, or when its deadline passed: then `endReason` says why, and `counts.cancelled` how many
   * sub-requests have no result. `throwIfFailed()` throws unless the request succeeded.
   */
  readonly outcome: CompletionOutcome | undefined;
}

class LiveResults<Item> extends OneByOne<Item> implements Results<Item> {
  readonly #outcome: () => CompletionOutcome | undefined;

  constructor(
    runs: AsyncGenerator<Iterable<Item>, void, undefined>,
    outcome: () => CompletionOutcome | undefined,
    atHand: () => Iterable<Item> | undefined,
  ) {
    super(runs, atHand);
    this.#outcome = outcome;
  }

  get outcome(): CompletionOutcome | undefined {
    return this.#outcome();
  }
}

/**
 * Results of a request, live. Wrong arguments throw here, at once; nothing is opened before the first item is
 * asked for, and everything is released when the consumer's loop ends. `join`: `afresh`: no end that is remembered counts ·
 * `why`: what is waited for, in words · `known`: how the request ended, with all its results, if that is known.
 */
export function resultsOf<Result>(
  request: ReaderCommands,
  join: (afresh: boolean) => Subscription,
  options: CheckedResultsOptions,
  closing: AbortSignal,
  why: () => Promise<string | undefined>,
  known: () => EndWithResults | undefined,
): Results<ResultItem<Result>> {
  const { order, failed, cursor, bufferBytes, live, jsonText, wait } = options;
  const read =
    order === 'index'
      ? readBy(indexCursor(cursor), (reader, from) =>
          inIndexOrder<Result>(reader, { failed, from, bufferBytes, jsonText }),
        )
      : readBy(completionCursor(cursor), (reader, from) =>
          inCompletionOrder<Result>(reader, { failed, from, jsonText }),
        );
  let outcome: CompletionOutcome | undefined;
  return new LiveResults(runs(), () => outcome, atHand);

  function atHand() {
    // Other orders, cursors and bounds of the wait are for the general way.
    if (order === 'index' || cursor !== undefined || isBounded(options)) return undefined;
    const end = closing.aborted ? undefined : known();
    // cure: results at hand are those of different sub-requests
    return end && areDistinct(end.results) ? itemsAtHand(end) : undefined;
  }

  function* itemsAtHand({ state, results }: EndWithResults): Generator<ResultItem<Result>> {
    for (const item of allSucceeded<Result>(results, jsonText)) {
      if (closing.aborted) throw new ClosedError(closing.reason);
      yield item;
    }
    outcome = new CompletionOutcome(request.keys.id, state);
  }

  async function* runs() {
    using scope = new WaitScope(`results of ${request.keys.id}`, options, closing);
    let subscription = join(false);
    let isBegun = false;
    scope.hindered = () => subscription.hindered;
    scope.why = why;
    try {
      const following = live && wait ? new Following(request) : undefined;
      for (let isOver = false; !isOver; ) {
        const reader = new ResultReader(request, subscription, scope, failed, following, wait);
        try {
          for await (const run of read(reader)) {
            isBegun = true;
            yield untilEnded(scope, run);
          }
          isOver = true;
        } catch (error) {
          const mayBeOlder = subscription.isRemembered && !isBegun;
          // cure: results that are missing of an end that was remembered are read again
          if (!mayBeOlder) throw error;
          // Another process may have dropped the request, and submitted it again.
          subscription.leave();
          subscription = join(true);
        }
      }
      const { complete } = subscription;
      outcome = complete && new CompletionOutcome(request.keys.id, complete);
    } finally {
      subscription.leave();
    }
  }
}

function areDistinct(results: readonly ResultsEntry[]): boolean {
  const indexes = results.flatMap(({ records }) => records.map(({ index }) => index));
  return new Set(indexes).size === indexes.length;
}

const isBounded = ({ signal, timeoutMs }: WaitOptions) =>
  signal !== undefined || timeoutMs !== undefined;

/** Checks the scope before each item: a consumer may take long between two of them. */
function* untilEnded<Item>(scope: WaitScope, run: Iterable<Item>): Generator<Item> {
  for (const item of run) {
    scope.throwIfEnded();
    yield item;
  }
}

function readBy<Cursor, Item>(
  from: Cursor,
  read: (reader: ResultReader, from: Cursor) => AsyncGenerator<Iterable<Item>>,
): (reader: ResultReader) => AsyncGenerator<Iterable<Item>> {
  return (reader) => read(reader, from);
}
