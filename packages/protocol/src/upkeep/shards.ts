import { createHash } from 'node:crypto';
import { type HistoryPoint, historyOf, intervalsIn } from '../calls/queue/history.js';
import { QueueCommands } from '../calls/queue/queue-commands.js';
import type {
  Patiently,
  QueueCounts,
  RegisteredWorker,
  Whereabouts,
} from '../calls/queue/queue-reads.js';
import { shardNames } from '../contract/shard-names.js';
import type { Connection } from '../redis/connection.js';

/** The shard of an id: the first four bytes of its SHA-256, as a big-endian number, modulo `shards`. */
export function shardOf(id: string, shards: number): number {
  return shards === 1 ? 0 : createHash('sha256').update(id).digest().readUInt32BE(0) % shards;
}

/**
 * A queue, or all shards of one. Each shard is a queue in its own hash slot. Calls about one request go to the shard of
 * its id, or, when its state was read, to the queue named there: so a request stays where it is when the number of
 * shards changes. Reads of the whole queue ask all shards and combine the answers.
 */
export class Shards {
  /** Name of the queue. */
  readonly queue: string;
  readonly all: readonly QueueCommands[];
  readonly #connection: Connection;

  /** @throws InvalidOptionError */
  constructor(connection: Connection, queue: string, shards = 1) {
    this.queue = queue;
    this.#connection = connection;
    this.all = shardNames(queue, shards).map((name) => new QueueCommands(connection, name));
  }

  indexOf(id: string): number {
    return shardOf(id, this.all.length);
  }

  /** The shard of an id, or of a key of deduplication. */
  of(id: string): QueueCommands {
    return this.all[this.indexOf(id)] as QueueCommands;
  }

  /** Whether `queue`, as the state of a request names it, is one of these. */
  has(queue: string): boolean {
    return this.all.some(({ keys }) => keys.queue === queue);
  }

  /** The queue that the state of a request names, even if it is none of these. */
  named(queue: string): QueueCommands {
    const known = this.all.find(({ keys }) => keys.queue === queue);
    return known ?? new QueueCommands(this.#connection, queue);
  }

  /** As of one queue. Asks all shards: the id may be in another one since the number of shards was changed. */
  async whereabouts(id: string): Promise<Whereabouts> {
    const found = await this.#ask((queue) => queue.whereabouts(id));
    return Object.assign({}, ...found);
  }

  /** Whether a registered worker of the queue serves `task`. */
  async serves(task: string): Promise<boolean> {
    return (await this.#ask((queue) => queue.serves(task))).includes(true);
  }

  /** Ids of all open requests. `patiently`: how each page is read. */
  async *openIds(patiently?: Patiently): AsyncGenerator<string> {
    for (const queue of this.all) yield* queue.openIds(patiently);
  }

  /** Ids of requests that ended, the last one first. `patiently`: how each page is read. */
  async *endedIds(patiently?: Patiently): AsyncGenerator<string> {
    const lists = this.all.map((queue) => queue.ended(patiently));
    const heads = await Promise.all(lists.map((list) => list.next()));
    for (;;) {
      let last = -1;
      for (const [i, head] of heads.entries()) {
        const other = heads[last];
        if (!head.done && (!other || other.done || head.value.at > other.value.at)) last = i;
      }
      const head = heads[last];
      if (!head || head.done) return;
      yield head.value.id;
      heads[last] = await (lists[last] as (typeof lists)[number]).next();
    }
  }

  /** Each worker once, with its latest sign of life, in the order of their start. */
  async workers(): Promise<RegisteredWorker[]> {
    const found = new Map<string, RegisteredWorker>();
    for (const worker of (await this.#ask((queue) => queue.workers())).flat()) {
      const known = found.get(worker.id);
      if (!known || known.seenAt < worker.seenAt) found.set(worker.id, worker);
    }
    return [...found.values()].sort((a, b) => a.startedAt - b.startedAt);
  }

  /** How the queue worked in the last `sinceMs`, the oldest first. */
  async history(sinceMs: number): Promise<HistoryPoint[]> {
    return historyOf(await this.#ask((queue) => queue.series(intervalsIn(sinceMs))), sinceMs);
  }

  async counts(): Promise<QueueCounts> {
    const counts = await this.#ask((queue) => queue.counts());
    const [first] = counts as [QueueCounts];
    if (counts.length === 1) return first;
    const sum = (of: (one: QueueCounts) => number) => counts.reduce((n, one) => n + of(one), 0);
    const tokens: Record<number, number> = {};
    for (const one of counts) {
      for (const [priority, n] of Object.entries(one.tokens))
        tokens[Number(priority)] = (tokens[Number(priority)] ?? 0) + n;
    }
    return {
      open: sum(({ open }) => open),
      parked: sum(({ parked }) => parked),
      workers: (await this.workers()).length,
      pausedUntil: pausedUntil(counts),
      ended: {
        succeeded: sum(({ ended }) => ended.succeeded),
        failed: sum(({ ended }) => ended.failed),
        cancelled: sum(({ ended }) => ended.cancelled),
      },
      tokens,
    };
  }

  #ask<T>(ask: (queue: QueueCommands) => Promise<T>): Promise<T[]> {
    return Promise.all(this.all.map(ask));
  }
}

/** When the pause of the last shard ends; 0: when it is resumed; undefined: no shard is paused. */
function pausedUntil(counts: readonly QueueCounts[]): number | undefined {
  const until = counts.flatMap(({ pausedUntil }) => pausedUntil ?? []);
  if (until.length === 0) return undefined;
  return until.includes(0) ? 0 : Math.max(...until);
}
