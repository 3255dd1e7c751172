import type { Counts } from '@piecework/notifier';
import {
  type EndReason,
  type OptionTable,
  option,
  type QueueCounts,
  type QueueError,
  type RequestOutcome,
  shape,
} from '@piecework/protocol';

interface OfQueue {
  /** Pass it to `events` to continue behind this event. */
  readonly cursor: string;
}

/** A request of the queue is complete. Each end comes once, in the order of the ends within a shard. */
export interface RequestCompletedEvent extends OfQueue {
  readonly type: 'completed';
  readonly requestId: string;
  readonly generation: number;
  readonly task: string | undefined;
  readonly outcome: RequestOutcome;
  /** Why it ended before all its work was done; undefined when all was done. */
  readonly endReason: EndReason | undefined;
  readonly counts: Counts;
  /** When the queue noted the end, by the server's clock, in ms since 1970. */
  readonly at: number;
}

/**
 * An attempt has failed, for good or not. Workers report theirs once a second and the queue keeps the last 100: of more
 * in one interval the earlier ones have no event. Those before the call have none either, also with a cursor.
 */
export type AttemptFailedEvent = { readonly type: 'attemptFailed' } & OfQueue & QueueError;

/** How much the queue has open and waiting. */
export interface QueueProgressEvent extends OfQueue {
  readonly type: 'progress';
  readonly counts: QueueCounts;
}

/**
 * Ends may be missing between `after` and `before` (server's clock, ms since 1970): the queue keeps the last 1,000 of a
 * week, and the consumer was away for longer.
 */
export interface GapEvent extends OfQueue {
  readonly type: 'gap';
  readonly after: number;
  readonly before: number;
}

export type QueueEvent = RequestCompletedEvent | AttemptFailedEvent | QueueProgressEvent | GapEvent;

export interface QueueEventsOptions {
  /** The `cursor` of the last event that was processed: continues behind it, in any process. @default from now on */
  readonly cursor?: string | undefined;
  /** How often ends and failed attempts are read, in ms, from 100 to 3600000. @default 1000 */
  readonly everyMs?: number | undefined;
  /** Time between two `progress` events, in ms, from 100 to 3600000; 0: none. @default 5000 */
  readonly progressMs?: number | undefined;
  /** Whether failed attempts are read. @default true */
  readonly failures?: boolean | undefined;
  /** Ends the iteration with AbortError. */
  readonly signal?: AbortSignal | undefined;
}

export const queueEventsOptions: OptionTable = {
  cursor: option.custom(shape.text(1, 20_000), 'the cursor of an event of this queue'),
  everyMs: option.ms(100, 3_600_000, 1_000),
  progressMs: option.custom(
    shape.either(shape.word(0), shape.integer(100, 3_600_000)),
    '0, or a time between 100 and 3600000 (ms)',
    5_000,
  ),
  failures: option.boolean(true),
  signal: option.custom(shape.instance(AbortSignal), 'an AbortSignal'),
};

/** The options after the check, defaults filled in. */
export type CheckedQueueEventsOptions = Required<Omit<QueueEventsOptions, 'cursor' | 'signal'>> &
  Pick<QueueEventsOptions, 'cursor' | 'signal'>;
