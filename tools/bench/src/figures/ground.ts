import { nanoid } from 'nanoid';
import { Piecework } from 'piecework';
import { difference, type RedisFigures, redisFigures } from '../redis-figures.js';
import type { SeriesSettings, Server } from '../series.js';
import { type Deed, makeDeed, makeDeeds } from './deed.js';
import { WorkerProcess } from './worker-process.js';
import type { WorkerOrder } from './worker-report.js';

/** How much is measured: all of it, enough for a rough look, just enough to see that it works. */
export const SIZES = ['full', 'quick', 'tiny'] as const;
export type Size = (typeof SIZES)[number];

/** What a figure stands on: the Redis of this run, and processes on it that end with the figure. */
export class Ground implements AsyncDisposable {
  readonly #open: { close(): Promise<void> }[] = [];

  constructor(
    readonly server: Server,
    readonly settings: SeriesSettings,
    readonly size: Size,
    readonly say: (text: string) => void,
  ) {}

  /** One of three numbers, by size. */
  of(full: number, quick: number, tiny: number): number {
    return { full, quick, tiny }[this.size];
  }

  get url(): string {
    return `redis://${this.server.host}:${this.server.port}`;
  }

  newQueue(): string {
    return `bench-${nanoid(6)}`;
  }

  deed(n: number, rest: Partial<Deed> = {}): Deed {
    return makeDeed(n, this.settings.payloadBytes, rest);
  }

  deeds(count: number, rest: Partial<Deed> = {}): Iterable<Deed> {
    return makeDeeds(count, this.settings.payloadBytes, rest);
  }

  piecework(queue: string, redis: WorkerOrder['redis'] = this.url): Piecework {
    const pw = new Piecework({ redis, queue });
    this.#open.push(pw);
    return pw;
  }

  /** A worker process that waits for work. */
  async startWorker(order: Omit<WorkerOrder, 'redis'> & Partial<WorkerOrder>) {
    const worker = await WorkerProcess.start({ redis: this.url, ...order });
    this.#open.push(worker);
    return worker;
  }

  /** What the server counted while `work` ran. */
  async redisCost(work: () => Promise<unknown>): Promise<RedisFigures> {
    const before = await redisFigures(this.server.probe);
    await work();
    return difference(before, await redisFigures(this.server.probe));
  }

  /** All variants in turn, round after round; the first round begins with the first, the next with the second. */
  async inTurn<Name extends string, Result>(
    variants: Record<Name, () => Promise<Result>>,
  ): Promise<Record<Name, Result[]>> {
    const names = Object.keys(variants) as Name[];
    const results = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
      Name,
      Result[]
    >;
    for (let round = 0; round < this.settings.rounds; round += 1) {
      for (let i = 0; i < names.length; i += 1) {
        const name = names[(round + i) % names.length] as Name;
        await this.server.probe.flushall();
        results[name].push(await variants[name]());
        await this.clear();
      }
    }
    return results;
  }

  /** Ends what was opened, and forgets it. */
  async clear(): Promise<void> {
    const open = this.#open.splice(0).reverse();
    for (const each of open) await each.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.clear();
  }
}
