import type { ReaderCommands } from '@piecework/protocol';
import type { ProgressReport } from '../progress/progress.js';
import { completionCursor, inCompletionOrder } from '../results/completion-order.js';
import { Following } from '../results/following.js';
import { OneByOne } from '../results/one-by-one.js';
import type { ResultItem } from '../results/result-item.js';
import { ResultReader } from '../results/result-reader.js';
import { CompletionOutcome } from '../waiting/outcome.js';
import type { Subscription } from '../waiting/subscription.js';
import { WaitScope } from '../waiting/wait-scope.js';
import { type CheckedEventsOptions, decodeCursor, encodeCursor } from './event-options.js';
import { merged } from './merged.js';
import type { RequestEvent } from './request-event.js';

/** What the events of a request are read from. */
export interface EventSources {
  readonly request: ReaderCommands;
  readonly join: () => Subscription;
  readonly progress: (everyMs: number, signal: AbortSignal) => AsyncGenerator<ProgressReport>;
  readonly why: () => Promise<string | undefined>;
}

/**
 * The events of a request: its outcomes as the results stream has them, whose position is the cursor; between them
 * progress reports; and its completion, of which the notice informs. So nothing is written for them, and a reader holds
 * one page of results and one report.
 */
export function requestEvents<Result>(
  { request, join, progress, why }: EventSources,
  options: CheckedEventsOptions,
  closing: AbortSignal,
): AsyncGenerator<RequestEvent<Result>> {
  const { id: requestId } = request.keys;
  const from = decodeCursor(options.cursor);
  let outcome = from.outcome;
  const cursor = () => encodeCursor({ completed: from.completed, outcome });
  return new OneByOne(runs());

  async function* runs(): AsyncGenerator<Iterable<RequestEvent<Result>>> {
    using scope = new WaitScope(`events of ${requestId}`, options, closing);
    const subscription = join();
    scope.hindered = () => subscription.hindered;
    scope.why = why;
    try {
      await scope.race(subscription.firstRead);
      subscription.throwIfAbsent();
      // The consumer has seen this end. Behind it comes what a redrive does, if there was one.
      if (subscription.complete?.generation === from.completed) return;
      const pages: AsyncGenerator<Iterable<ResultItem<Result>>> = options.outcomes
        ? outcomes(scope, subscription)
        : untilEnd(scope, subscription);
      const reports = options.progressMs
        ? within(scope, progress(options.progressMs, scope.signal))
        : undefined;
      for await (const { first, second } of merged(pages, reports, () => scope.end(undefined))) {
        if (first) yield eventsOf(scope, first);
        // The last report says what `completed` says.
        else if (second && second.status !== 'complete')
          yield [{ type: 'progress', requestId, ...second, cursor: cursor() }];
      }
      const { complete } = subscription;
      if (!complete) return;
      const ended = new CompletionOutcome(requestId, complete);
      const completed = encodeCursor({ completed: complete.generation, outcome });
      yield [{ type: 'completed', requestId, outcome: ended, cursor: completed }];
    } finally {
      subscription.leave();
    }
  }

  function outcomes(scope: WaitScope, subscription: Subscription) {
    const following = options.live ? new Following(request) : undefined;
    const reader = new ResultReader(request, subscription, scope, true, following);
    return inCompletionOrder<Result>(reader, {
      failed: true,
      from: completionCursor(from.outcome),
      jsonText: false,
    });
  }

  function* eventsOf(
    scope: WaitScope,
    items: Iterable<ResultItem<Result>>,
  ): Generator<RequestEvent<Result>> {
    for (const item of items) {
      scope.throwIfEnded();
      outcome = item.cursor;
      if (item.status === 'succeeded') {
        const { status: type, ...about } = item;
        yield { type, requestId, ...about, cursor: cursor() };
      } else {
        const { status: type, ...about } = item;
        yield { type, requestId, ...about, cursor: cursor() };
      }
    }
  }
}

/** What `reports` yield. They end with the scope, and for its reason: a time-out, a close, the signal of the caller. */
async function* within<T>(scope: WaitScope, reports: AsyncGenerator<T>): AsyncGenerator<T> {
  try {
    yield* reports;
  } catch (error) {
    scope.throwIfEnded();
    throw error;
  }
}

/** No outcomes, but the same end. */
async function* untilEnd(
  scope: WaitScope,
  subscription: Subscription,
): AsyncGenerator<Iterable<never>> {
  await scope.race(subscription.ended);
  yield [];
}
