import {
  AbortError,
  ClosedError,
  type Connection,
  PieceworkError,
  pause,
  type QueueCounts,
  type QueueEnd,
  type QueueError,
  type Shards,
} from '@piecework/protocol';
import { type Patiently, presentAmong } from '../present.js';
import { decodeQueueCursor, encodeQueueCursor } from './queue-cursor.js';
import type { CheckedQueueEventsOptions, QueueEvent } from './queue-event.js';
import { ShardEnds } from './shard-ends.js';

/** How many requests are read in one round trip. */
const PAGE = 50;
/** When ends of the latest millisecond are read again, in ms. */
const AGAIN_MS = 20;

/** What the events of a queue are read from. */
export interface QueueEventSources {
  readonly connection: Connection;
  readonly shards: Shards;
  readonly patiently: Patiently;
  readonly counts: () => Promise<QueueCounts>;
  readonly errors: () => Promise<QueueError[]>;
  /** Aborts when what the caller uses is closed. */
  readonly closing: AbortSignal;
}

/**
 * The events of a queue, polled: the ends that the queue remembers, whose times are the cursor; its last failed
 * attempts; its counts. Nothing is written for it. It continues when Redis is back after an outage.
 * @throws InvalidOptionError at once, when the cursor is of another queue
 */
export function queueEvents(
  { connection, shards, patiently, counts, errors, closing }: QueueEventSources,
  options: CheckedQueueEventsOptions,
): AsyncGenerator<QueueEvent> {
  const { everyMs, progressMs, signal } = options;
  const positions = decodeQueueCursor(options.cursor, shards.all.length);
  const ends = shards.all.map((queue, i) => new ShardEnds(queue, positions[i]));
  const cursor = () => encodeQueueCursor(ends.map(({ position }) => position));
  const signals = signal ? [closing, signal] : [closing];
  const what = `events of queue ${shards.queue}`;
  let known: ReadonlySet<string> | undefined;
  let isReached = false;
  let progressAt = performance.now();
  return events();

  async function* events(): AsyncGenerator<QueueEvent> {
    throwIfEnded();
    await persist(() => Promise.all(ends.map((one) => patiently(() => one.begin()))));
    isReached = true;
    await newErrors();
    for (;;) {
      let waitMs = everyMs;
      for (const one of ends) {
        const {
          ends: found,
          more,
          missedBefore,
        } = await persist(() => patiently(() => one.read()));
        if (more) waitMs = AGAIN_MS;
        if (missedBefore !== undefined)
          yield { type: 'gap', after: one.position.at, before: missedBefore, cursor: cursor() };
        yield* completed(one, found);
      }
      for (const error of await newErrors())
        yield { type: 'attemptFailed', ...error, cursor: cursor() };
      if (progressMs > 0 && performance.now() >= progressAt) {
        progressAt = performance.now() + progressMs;
        yield { type: 'progress', counts: await persist(counts), cursor: cursor() };
      }
      await pause(waitMs, ...signals);
      throwIfEnded();
    }
  }

  /** The ends of requests that are still there and complete. One that runs again will end once more. */
  async function* completed(
    one: ShardEnds,
    found: readonly QueueEnd[],
  ): AsyncGenerator<QueueEvent> {
    for (let i = 0; i < found.length; i += PAGE) {
      const page = found.slice(i, i + PAGE);
      const ids = page.map(({ id }) => id);
      const present = await persist(() => presentAmong(connection, shards, ids, patiently));
      for (const [n, end] of page.entries()) {
        throwIfEnded();
        one.processed(end);
        const status = present[n];
        if (status?.status !== 'complete' || status.outcome === undefined) continue;
        const { id: requestId, generation, task, outcome, endReason, counts } = status;
        const about = { requestId, generation, task, outcome, endReason, counts };
        yield { type: 'completed', ...about, at: end.at, cursor: cursor() };
      }
    }
  }

  /** Those of the last failed attempts that an earlier read did not find, the oldest first. */
  async function newErrors(): Promise<QueueError[]> {
    if (!options.failures) return [];
    const last = await persist(errors);
    const texts = last.map((error) => JSON.stringify(error));
    const before = known;
    known = new Set(texts);
    return before ? last.filter((_, i) => !before.has(texts[i] as string)).reverse() : [];
  }

  /** Repeats a read for as long as Redis is away, once it was reached. */
  async function persist<T>(read: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await read();
      } catch (error) {
        throwIfEnded();
        if (!isReached || !(error instanceof PieceworkError && error.retryable)) throw error;
        await pause(everyMs, ...signals);
        throwIfEnded();
      }
    }
  }

  function throwIfEnded(): void {
    if (closing.aborted) throw new ClosedError(String(closing.reason));
    if (signal?.aborted) throw new AbortError(what, signal.reason);
  }
}
