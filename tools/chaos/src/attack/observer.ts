import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Connection,
  DroppedError,
  ExpiredError,
  NotFoundError,
  PieceworkError,
  QueueCommands,
  shardNames,
} from '@piecework/protocol';
import { IdQueue, Piecework, RetryQueue, Scheduler } from 'piecework';
import type { Crew } from '../attacked/crew.js';
import { keysOf, usedMemory, type Watched } from '../attacked/server.js';
import type { Journal } from '../contract/journal.js';

const PAGE_BYTES = 4_096;

/** Samples the server and the processes, past the proxies, and writes the samples down. */
export class Observer {
  readonly #server: Watched;
  readonly #crew: Crew;
  readonly #journal: Journal;
  readonly #piecework: Piecework;
  readonly #queues: readonly QueueCommands[];
  readonly #queue: string;
  readonly #takers: boolean;
  /** Ids of requests that were inspected, and may be dropped by now. */
  readonly #inspected = new Set<string>();
  #settledBefore = 0;
  #settled = 0;
  #timer: NodeJS.Timeout | undefined;
  #sampling: Promise<void> | undefined;

  /** Whether the server has lost writes: a request that was reported as complete may run again. */
  mayGoBack = false;

  constructor(
    server: Watched,
    crew: Crew,
    journal: Journal,
    { queue, shards, takers }: { queue: string; shards: number; takers: boolean },
  ) {
    this.#server = server;
    this.#crew = crew;
    this.#journal = journal;
    this.#queue = queue;
    this.#takers = takers;
    this.#piecework = new Piecework({ redis: server.client, queue, shards });
    const connection = Connection.open(server.client);
    const names = [...shardNames(queue, shards), ...(takers ? [`${queue}-delayed`] : [])];
    this.#queues = names.map((name) => new QueueCommands(connection, name));
  }

  /** Number of settled sub-requests, as of the last sample. */
  get settled(): number {
    return this.#settled;
  }

  /** Takes a sample every second. */
  start(): void {
    this.#timer = setInterval(() => {
      this.#sampling ??= this.#sample()
        // Redis is away, or a process ended just now.
        .catch(() => {})
        .finally(() => {
          this.#sampling = undefined;
        });
    }, 1_000);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sampling;
    await this.#piecework.close();
  }

  async #sample(): Promise<void> {
    let settled = 0;
    for await (const { id, counts } of this.#piecework.admin.list({ state: 'all' })) {
      const { succeeded, failed, cancelled } = counts;
      if (!this.#inspected.has(id)) settled += succeeded + failed + cancelled;
    }
    this.#settled = Math.max(this.#settled, this.#settledBefore + settled);
    const processes: Record<string, number> = {};
    for (const { name, child } of this.#crew.members) {
      if (child.pid !== undefined && child.exitCode === null)
        processes[name] = residentBytes(child.pid);
    }
    const redis = await usedMemory(this.#server);
    this.#journal.write({ did: 'sample', redis, processes, settled: this.#settled });
  }

  /** Writes down the counts of a request that is complete, before it is dropped. */
  async inspect({ id, size }: { id: string; size: number }): Promise<void> {
    for (;;) {
      try {
        const { status, generation, counts } = await this.#piecework.request(id).status();
        if (this.mayGoBack && status !== 'complete') {
          await sleep(100);
          continue;
        }
        this.#journal.write({ did: 'inspect', request: id, generation, counts: { ...counts } });
        const { succeeded, failed, cancelled } = counts;
        this.#isOver(id, succeeded + failed + cancelled);
        return;
      } catch (error) {
        const gone = [NotFoundError, DroppedError, ExpiredError];
        // Dropped before it was complete: nothing of it remains.
        const lost = error instanceof PieceworkError && error.code === 'LOST';
        if (lost || gone.some((kind) => error instanceof kind)) return this.#isOver(id, size);
        await sleep(100);
      }
    }
  }

  /** Counts a request once; a redriven one is inspected again. */
  #isOver(id: string, settled: number): void {
    if (!this.#inspected.has(id)) this.#settledBefore += settled;
    this.#inspected.add(id);
  }

  /** Status and counts of requests that are still open. */
  async describe(ids: readonly string[]): Promise<string[]> {
    const statusOf = (id: string) =>
      this.#piecework
        .request(id)
        .status()
        .then(
          ({ status, counts }) => `${id}: ${status} ${JSON.stringify(counts)}`,
          (error: unknown) => `${id}: ${error}`,
        );
    return Promise.all(ids.map(statusOf));
  }

  /** Repairs the queue after a shard rolled back alone: requests may be missing from the agenda. Returns how many. */
  async repair(): Promise<number> {
    return (await this.#piecework.admin.repair()).length;
  }

  /** Waits until the other queues are empty; returns the counts of those that are not. */
  async untilTaken(withinMs: number): Promise<string[]> {
    const endMs = performance.now() + withinMs;
    for (;;) {
      const left = await this.#left().catch((error: unknown) => [String(error)]);
      if (left.length === 0 || performance.now() > endMs) return left;
      await sleep(200);
    }
  }

  async #left(): Promise<string[]> {
    if (!this.#takers) return [];
    const redis = this.#server.client;
    await using ids = await IdQueue.join(`${this.#queue}-ids`, { redis });
    await using retry = new RetryQueue({ redis, name: `${this.#queue}-retry` });
    await using scheduler = new Scheduler({ redis, name: `${this.#queue}-scheduler` });
    await using delayed = new Piecework({ redis, queue: `${this.#queue}-delayed` });
    const counts = {
      ids: await ids.counts(),
      retry: await retry.counts(),
      scheduler: await scheduler.counts(),
      delayed: await delayed.admin.counts(),
    };
    const busy = {
      ids: counts.ids.pending + counts.ids.running,
      retry: counts.retry.waiting + counts.retry.leased,
      scheduler: counts.scheduler.waiting + counts.scheduler.locked,
      delayed: counts.delayed.open,
    };
    return Object.entries(counts).flatMap(([name, each]) =>
      busy[name as keyof typeof busy] > 0 ? [`${name}: ${JSON.stringify(each)}`] : [],
    );
  }

  /** Drops the other queues, which are empty by now. */
  async dropQueues(): Promise<void> {
    if (!this.#takers) return;
    const redis = this.#server.client;
    await (await IdQueue.join(`${this.#queue}-ids`, { redis })).drop();
    await new RetryQueue({ redis, name: `${this.#queue}-retry` }).drop();
    await new Scheduler({ redis, name: `${this.#queue}-scheduler` }).drop();
  }

  /** Deregisters the killed workers, and lists the keys that are left after everything was dropped. */
  async findKeysLeft(): Promise<string[]> {
    for (const queue of this.#queues)
      for (const { id } of await queue.workers()) await queue.deregister(id);
    const left: string[] = [];
    for await (const keys of keysOf(this.#server)) {
      for (const key of keys) if (await this.#stays(key)) left.push(key);
    }
    this.#journal.write({ did: 'look for keys', left });
    return left;
  }

  /** Whether the key is a leak: not a tombstone, and not one that expires. */
  async #stays(key: string): Promise<boolean> {
    const { client } = this.#server;
    const isState = key.startsWith('request:') && (await client.type(key)) === 'hash';
    const status = isState ? await client.hget(key, 'status') : 'none';
    const ttl = await client.pttl(key);
    if (ttl === -2) return false;
    // The other queues remember items and callers for a while, even after a drop.
    if (ttl >= 0 && (key.includes('{delayed-') || key.includes(`{${this.#queue}-`))) return false;
    return ttl < 0 || (status !== 'dropped' && status !== 'void');
  }
}

function residentBytes(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES;
}
