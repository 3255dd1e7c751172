import { type QueueKeys, queueKeys } from '../../contract/keys.js';
import { Lanes, laneKeys } from '../../contract/lanes.js';
import type { LongestRun } from '../../contract/run-times.js';
import type { Client } from '../../redis/client.js';
import type { Connection } from '../../redis/connection.js';
import { redisError } from '../../redis/redis-error.js';
import type { MemoryUse } from '../../redis/server-info.js';
import { run } from '../../scripts/run-script.js';
import { intervalOf, type Series } from './history.js';

/** A worker as the registry shows it. */
export interface RegisteredWorker {
  /** Boot id. */
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** How many slots it has, and how many handlers ran at its last sign of life. */
  readonly concurrency: number;
  readonly running: number;
  /** Names of the tasks that it serves; '*': all. */
  readonly tasks: '*' | readonly string[];
  /** When it was started, by its own clock, in ms since 1970. */
  readonly startedAt: number;
  /** Its last sign of life, by the Redis server's clock, in ms since 1970. */
  readonly seenAt: number;
  /** The longest time until its next sign of life, in ms. Undefined of another client that does not report it: 5000. */
  readonly restMs?: number;
  /** Whether it takes no more work and closes when its handlers have ended. */
  readonly draining: boolean;
  /** Its longest running handlers at its last sign of life, the longest first: one of each request, at most ten. */
  readonly longest: readonly LongestRun[];
  /** How many slots are occupied by handlers that still run after their signal was aborted. */
  readonly leftovers: number;
  /**
   * The delay of its event loop in ms, between its last two signs of life: 99 of 100 checks, one each 100 ms, came no
   * later than that. Undefined while it starts.
   */
  readonly eventLoopDelayMs?: number;
  /** Memory of its process in bytes (resident set size). Undefined of another client that does not report it. */
  readonly rssBytes?: number;
  /**
   * The requests, at most ten, whose sub-requests end workers and run alone there; `wait`: not yet, as other handlers
   * still run. Undefined: there are none.
   */
  readonly suspects?: { readonly requests: readonly string[]; readonly wait: boolean };
  /** Whether it takes work, as its `health()` said; true while it starts. */
  readonly ready: boolean;
  /** What its `health()` named as wrong, at most five sentences; empty when nothing is, and while it starts. */
  readonly why: readonly string[];
}

/** What the queue side knows of an id: its open generation, or when it ended, in ms of the server's clock. */
export interface Whereabouts {
  readonly open?: number;
  readonly endedAt?: number;
}

/** What is on the queue side at one moment. */
export interface QueueCounts {
  /**
   * Requests that have not ended. One that has ended is counted until the process that completed it has told the queue:
   * some ms after `completion` resolves, or up to a minute if that process dies or is cut off in between. So to wait
   * until a queue is empty, read again until this is 0.
   */
  readonly open: number;
  /** Open requests that wait for a worker that serves their task. */
  readonly parked: number;
  /** Registered workers. */
  readonly workers: number;
  /**
   * When the pause of the queue ends by itself, in ms since 1970 by the server's clock; 0: it ends only when the queue
   * is resumed; undefined: the queue is not paused. So compare with `!== undefined`.
   */
  readonly pausedUntil: number | undefined;
  /**
   * How many requests have ended, by outcome. Counted when they leave `open`, so a request that is dropped before that is
   * in none of these. The counts begin anew when the queue was unused for a week, or when nothing is left of it: no
   * request, no worker, no remembered end.
   */
  readonly ended: {
    readonly succeeded: number;
    readonly failed: number;
    readonly cancelled: number;
  };
  /** Tokens that wait, by priority; priorities without any are left out. */
  readonly tokens: Readonly<Record<number, number>>;
}

/** What may keep the requests of a queue from starting, at one moment. */
export interface QueueConditions {
  /** As in `QueueCounts`. */
  readonly pausedUntil: number | undefined;
  /** Since when, of a pause that ends by itself. */
  readonly pausedSince: number | undefined;
  /** As they are registered, also those without a sign of life. */
  readonly workers: readonly RegisteredWorker[];
  readonly memory: MemoryUse | undefined;
}

/** Ended requests that are read in one call. */
const ENDED_PAGE = 100;

/** Makes a read, and retries it: the function decides how often and for how long. */
export type Patiently = <T>(read: () => Promise<T>) => Promise<T>;
const once: Patiently = (read) => read();

/** A request that ended, and when, by the server's clock in ms since 1970. */
export interface QueueEnd {
  readonly id: string;
  readonly at: number;
}

/** Reads of one queue, which change nothing: what is open, what ended, who works. Hash slot of `{<queue>}`. */
export class QueueReads {
  readonly keys: QueueKeys;
  /** The lanes of expedited requests, as far as this process knows them. */
  readonly lanes: Lanes;
  protected readonly connection: Connection;

  constructor(connection: Connection, queue: string) {
    this.connection = connection;
    this.keys = queueKeys(queue);
    this.lanes = new Lanes(this.keys);
  }

  /** What the queue side knows of an id: its open generation, or when it ended (server ms). */
  async whereabouts(id: string): Promise<Whereabouts> {
    const [open, ended] = await this.read((client) =>
      Promise.all([client.hget(this.keys.open, id), client.zscore(this.keys.history, id)]),
    );
    return {
      ...(open ? { open: Number(open) } : {}),
      ...(ended ? { endedAt: Number(ended) } : {}),
    };
  }

  /**
   * Ids of all open requests, each once. Requests that are opened or end meanwhile may be missed. `patiently`: how each
   * page is read.
   */
  async *openIds(patiently: Patiently = once): AsyncGenerator<string> {
    for await (const page of this.openRequests(patiently)) for (const { id } of page) yield id;
  }

  /** The same with their generations, page by page. */
  async *openRequests(
    patiently: Patiently = once,
  ): AsyncGenerator<{ readonly id: string; readonly generation: number }[]> {
    const seen = new Set<string>();
    let cursor = '0';
    do {
      const from = cursor;
      const [next, fields] = await patiently(() =>
        this.read((client) => client.hscan(this.keys.open, from, 'COUNT', 500)),
      );
      cursor = next;
      const page: { readonly id: string; readonly generation: number }[] = [];
      for (let i = 0; i < fields.length; i += 2) {
        const id = fields[i] as string;
        if (seen.has(id)) continue;
        seen.add(id);
        page.push({ id, generation: Number(fields[i + 1]) });
      }
      yield page;
    } while (cursor !== '0');
  }

  /** Requests that ended, and when by the server's clock, the last one first. `patiently`: as above. */
  async *ended(patiently: Patiently = once): AsyncGenerator<QueueEnd> {
    for (let from = 0; ; from += ENDED_PAGE) {
      const to = String(from + ENDED_PAGE - 1);
      const page = await patiently(() =>
        this.read((client) =>
          client.zrange(this.keys.history, String(from), to, 'REV', 'WITHSCORES'),
        ),
      );
      for (let i = 0; i < page.length; i += 2)
        yield { id: page[i] as string, at: Number(page[i + 1]) };
      if (page.length < 2 * ENDED_PAGE) return;
    }
  }

  /**
   * At most `count` requests that ended at `at` or later, in the order of their ends and, in the same millisecond, of
   * their ids; leaves out the first `offset`. `oldest`: when the earliest end that is still known was.
   */
  async endedSince(
    at: number,
    offset: number,
    count: number,
  ): Promise<{ readonly ends: readonly QueueEnd[]; readonly oldest: number | undefined }> {
    const { history } = this.keys;
    const [page, first] = await this.read((client) =>
      Promise.all([
        client.zrange(history, at, '+inf', 'BYSCORE', 'LIMIT', offset, count, 'WITHSCORES'),
        client.zrange(history, '0', '0', 'WITHSCORES'),
      ]),
    );
    const ends: QueueEnd[] = [];
    for (let i = 0; i < page.length; i += 2)
      ends.push({ id: page[i] as string, at: Number(page[i + 1]) });
    return { ends, oldest: first[1] === undefined ? undefined : Number(first[1]) };
  }

  /** The request that ended last; undefined: none is known. */
  async lastEnd(): Promise<QueueEnd | undefined> {
    const [id, at] = await this.read((client) =>
      client.zrange(this.keys.history, '-1', '-1', 'WITHSCORES'),
    );
    return id === undefined ? undefined : { id, at: Number(at) };
  }

  /** The workers of this queue, in the order of their start. */
  async workers(): Promise<RegisteredWorker[]> {
    const { workers, workerInfo } = this.keys;
    const [seen, infos] = await this.read((client) =>
      Promise.all([client.zrange(workers, '0', '-1', 'WITHSCORES'), client.hgetall(workerInfo)]),
    );
    const found: RegisteredWorker[] = [];
    for (let i = 0; i < seen.length; i += 2) {
      const id = seen[i] as string;
      const info = infos[id];
      if (!info) continue;
      // The figures are for the history. Another client may leave out what is named here.
      const { figures: _, ...said } = JSON.parse(info);
      const unsaid = { draining: false, longest: [], leftovers: 0, ready: true, why: [] };
      found.push({ id, ...unsaid, ...said, seenAt: Number(seen[i + 1]) });
    }
    return found.sort((a, b) => a.startedAt - b.startedAt);
  }

  /** How the queue worked in the last `count` intervals that its workers reported. */
  async series(count: number): Promise<Series> {
    const read = await run(this.connection.client, 'read-series', this.keys, { count });
    return { ...read, intervals: read.intervals.map(intervalOf) };
  }

  async counts(): Promise<QueueCounts> {
    const { open, parked, workers, counters, paused, pushed, lists } = this.keys;
    const [opened, aside, alive, ended, until, time, used, ...lengths] = await this.read((client) =>
      Promise.all([
        client.hlen(open),
        client.hlen(parked),
        client.zcard(workers),
        client.hmget(counters, 'succeeded', 'failed', 'cancelled'),
        client.hget(paused, 'until'),
        client.time(),
        client.hget(pushed, 'lanes'),
        ...lists.map((list) => client.llen(list)),
      ]),
    );
    const [succeeded, failed, cancelled] = ended.map(Number) as [number, number, number];
    for (const lane of laneKeys(this.keys, used ?? '')) {
      const priority = Number(lane.split(':').at(-2));
      lengths[priority] =
        (lengths[priority] ?? 0) + (await this.read((client) => client.llen(lane)));
    }
    const waiting = lengths.map((tokens, priority) => [priority, tokens] as const);
    return {
      open: opened,
      parked: aside,
      workers: alive,
      pausedUntil: pauseIn(until, Number(time[0]) * 1_000),
      ended: { succeeded, failed, cancelled },
      tokens: Object.fromEntries(waiting.filter(([, tokens]) => tokens > 0)),
    };
  }

  /**
   * What may keep requests of this queue from starting: its pause (until when; 0: until it is resumed), its workers,
   * and the memory of its server, where that is known. `now`: the server's time.
   */
  async conditions(now: number): Promise<QueueConditions> {
    const { paused, open } = this.keys;
    const address = await this.connection.addressOf(open);
    const unknown = () => undefined;
    const [[until, length], workers, memory] = await Promise.all([
      this.read((client) => client.hmget(paused, 'until', 'length')),
      this.workers(),
      this.connection.memoryOf(address).catch(unknown),
    ]);
    const [of, ms] = (length ?? '').split(' ').map(Number);
    const pausedUntil = pauseIn(until ?? null, now);
    const pausedSince = of && ms && of === pausedUntil ? of - ms : undefined;
    return { pausedUntil, pausedSince, workers, memory };
  }

  /** Whether a registered worker of the queue serves `task`. */
  async serves(task: string): Promise<boolean> {
    const infos = await this.read((client) => client.hvals(this.keys.workerInfo));
    return infos.some((text) => {
      const { tasks } = JSON.parse(text) as { tasks: '*' | string[] };
      return tasks === '*' || tasks.includes(task);
    });
  }

  /** Learns which lanes are used. A tick does so too; this is for a caller that may have missed a message. */
  async learnLanes(): Promise<void> {
    const used = await this.read((client) => client.hget(this.keys.pushed, 'lanes'));
    this.lanes.learn(used ?? '');
  }

  protected async read<T>(read: (client: Client) => Promise<T>): Promise<T> {
    try {
      return await read(this.connection.client);
    } catch (error) {
      throw redisError(error, 'read the queue');
    }
  }
}

/** A pause that is over stays in its key until the next tick. */
function pauseIn(until: string | null, now: number): number | undefined {
  const ends = Number(until);
  return until === null || (ends > 0 && ends <= now) ? undefined : ends;
}
