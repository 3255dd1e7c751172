import { createHash } from 'node:crypto';
import {
  type Patiently,
  QueueCommands,
  type QueueCounts,
  type RegisteredWorker,
  type Whereabouts,
} from '../calls/queue-commands.js';
import { InvalidOptionError } from '../contract/errors.js';
import { type OptionSpec, option } from '../contract/options.js';
import type { Connection } from '../redis/connection.js';

/** Most shards of one queue: a worker has a blocking connection for each. */
const SHARDS_MAX = 64;
/** Longest name of a queue, and of one that is followed by the number of a shard. */
const NAME_MAX = 128;

/** How many shards a queue has; the same for everybody who uses it. */
export const shardsOption: OptionSpec = option.integer(1, SHARDS_MAX, 1);

/** Which shard an id is of: the first four bytes of its SHA-256, as a big-endian number, modulo `shards`. */
export function shardOf(id: string, shards: number): number {
  return shards === 1 ? 0 : createHash('sha256').update(id).digest().readUInt32BE(0) % shards;
}

/**
 * The queues that the shards of a queue are: `req.0`, `req.1`, …; a queue of one shard is itself.
 * @throws InvalidOptionError when the name is too long to have a number behind it
 */
export function shardNames(queue: string, shards: number): readonly string[] {
  if (shards === 1) return [queue];
  const names = Array.from({ length: shards }, (_, shard) => `${queue}.${shard}`);
  if (names.some(({ length }) => length > NAME_MAX)) {
    const most = NAME_MAX - String(shards - 1).length - 1;
    throw new InvalidOptionError('queue', queue, `with so many shards, at most ${most} characters`);
  }
  return names;
}

/**
 * A queue, or all shards of one, each of which is a queue of its own in its own hash slot. What is about
 * one request goes to the shard of its id, or, where its state was read, to the queue that it names: so
 * a request stays where it is while the number of shards changes. What is about the queue is asked of
 * all shards, and joined.
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

  /** The shard of an id, also of a key of deduplication. */
  of(id: string): QueueCommands {
    return this.all[this.indexOf(id)] as QueueCommands;
  }

  /** Whether a request whose state names `queue` is of this one. */
  has(queue: string): boolean {
    return this.all.some(({ keys }) => keys.queue === queue);
  }

  /** The queue that the state of a request names, be it another one. */
  named(queue: string): QueueCommands {
    const known = this.all.find(({ keys }) => keys.queue === queue);
    return known ?? new QueueCommands(this.#connection, queue);
  }

  /** As of a queue. All are asked: it may be of another shard since the number of shards was changed. */
  async whereabouts(id: string): Promise<Whereabouts> {
    const found = await this.#ask((queue) => queue.whereabouts(id));
    return Object.assign({}, ...found);
  }

  /** Whether a live worker of the queue says that it serves `task`. */
  async serves(task: string): Promise<boolean> {
    return (await this.#ask((queue) => queue.serves(task))).includes(true);
  }

  /** Ids of all open requests. `patiently`: how each look is tried. */
  async *openIds(patiently?: Patiently): AsyncGenerator<string> {
    for (const queue of this.all) yield* queue.openIds(patiently);
  }

  /** Ids of requests that ended, the last one first. `patiently`: how each look is tried. */
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

  /** Each worker once, as it was seen last, in the order of their start. */
  async workers(): Promise<RegisteredWorker[]> {
    const found = new Map<string, RegisteredWorker>();
    for (const worker of (await this.#ask((queue) => queue.workers())).flat()) {
      const known = found.get(worker.id);
      if (!known || known.seenAt < worker.seenAt) found.set(worker.id, worker);
    }
    return [...found.values()].sort((a, b) => a.startedAt - b.startedAt);
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

/** When the last of the paused shards goes on; 0: when it is resumed. */
function pausedUntil(counts: readonly QueueCounts[]): number | undefined {
  const until = counts.flatMap(({ pausedUntil }) => pausedUntil ?? []);
  if (until.length === 0) return undefined;
  return until.includes(0) ? 0 : Math.max(...until);
}
