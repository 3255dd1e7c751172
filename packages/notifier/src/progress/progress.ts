import { hasNotEnded, type Inspected, pause, type RequestReads } from '@piecework/protocol';
import { type Counts, finalCounts } from '../waiting/outcome.js';
import { persist } from '../waiting/persist.js';
import type { Subscription } from '../waiting/subscription.js';
import { WaitScope } from '../waiting/wait-scope.js';
import type { ProgressOptions } from './progress-options.js';
import { Rate } from './rate.js';
import type { WaitingFor, Why } from './snapshot.js';
import { Stall } from './stall.js';
import {
  COUNT_FIELDS,
  countsOf,
  lifeOf,
  type RequestPhase,
  runningOf,
  type StatusQueue,
} from './status.js';

/** One report of `progress`. */
export interface ProgressReport {
  readonly counts: Counts;
  /** How many of `counts.inFlight` run, at most: see `RequestStatus`. */
  readonly running: number;
  readonly generation: number;
  /** 'complete' in the last report, and only there. */
  readonly status: RequestPhase;
  /** Sub-requests settled per second, over about the last ten seconds. */
  readonly ratePerSecond: number;
  /** Time to completion at this rate, in ms; null when unknown: nothing moves, or it is not sealed. */
  readonly etaMs: number | null;
  /** Why nothing has been settled for about a second, unless its handlers merely take their time: see `RequestStatus`. */
  readonly why: string | undefined;
  readonly waitingFor: WaitingFor | undefined;
}

/** Reports until the completion, which is the last report. */
export async function* progressOf(
  request: RequestReads,
  queue: StatusQueue,
  join: () => Subscription,
  options: ProgressOptions & { everyMs: number },
  closing: AbortSignal,
  reason: () => Promise<string | undefined>,
): AsyncGenerator<ProgressReport> {
  using scope = new WaitScope(`progress of ${request.keys.id}`, options, closing);
  const subscription = join();
  scope.hindered = () => subscription.hindered;
  scope.why = reason;
  const rate = new Rate();
  const stall = new Stall(request, queue);
  try {
    await scope.race(subscription.firstRead);
    const wakes = [subscription.endSignal, scope.signal];
    for (;;) {
      subscription.throwIfAbsent();
      const seen = subscription.complete
        ? null
        : await persist(scope, () => request.inspect(COUNT_FIELDS));
      const { complete } = subscription;
      if (complete) {
        const counts = finalCounts(complete);
        const { generation } = complete;
        const ratePerSecond = rate.note(generation, counts.total);
        const done = { status: 'complete', running: 0, etaMs: 0 } as const;
        yield { counts, generation, ratePerSecond, ...done, ...MOVES };
        return;
      }
      // cure: progress is not that of another life of the id
      if (seen && isActive(seen) && subscription.isOf(lifeOf(seen))) {
        subscription.learn(lifeOf(seen).generation);
        const standstill = await persist(scope, () => stall.note(seen));
        yield report(seen, rate, standstill ?? MOVES);
      }
      // Ended or gone, as the subscription will soon show. It is asked for a read, in case the notice was lost.
      else subscription.ask();
      await scope.race(pause(options.everyMs, ...wakes));
    }
  } finally {
    subscription.leave();
  }
}

const isActive = ({ state }: Inspected) => hasNotEnded(state['status']);

const MOVES = { why: undefined, waitingFor: undefined };

function report(
  seen: Inspected,
  rate: Rate,
  { why, waitingFor }: Why | typeof MOVES,
): ProgressReport {
  const counts = countsOf(seen);
  const status = seen.state['status'] as RequestPhase;
  const generation = Number(seen.state['generation']);
  const settled = counts.succeeded + counts.failed + counts.cancelled;
  const ratePerSecond = rate.note(generation, settled);
  const known = status !== 'open' && ratePerSecond > 0;
  const etaMs = known ? ((counts.total - settled) * 1_000) / ratePerSecond : null;
  const running = runningOf(seen);
  return { counts, running, generation, status, ratePerSecond, etaMs, why, waitingFor };
}
