import { LONGEST_RUNS, type RegisteredWorker } from '@piecework/protocol';
import type { Shard } from './fetch/shard.js';
import { ProcessLoad } from './report/process-load.js';
import type { RequestSession } from './request/request-session.js';
import type { WorkerContext } from './shared/worker-context.js';

/** Most sentences of its health that the registry contains, and the most characters of each. */
const SENTENCES = 5;
const SENTENCE = 300;

type Fixed = Pick<RegisteredWorker, 'pid' | 'host' | 'concurrency' | 'tasks' | 'startedAt'>;

interface Watched {
  readonly shards: () => readonly Shard[];
  readonly sessions: () => Iterable<RequestSession>;
  /** Whether its health says that it takes work, and what it names as wrong. */
  readonly health: () => Pick<RegisteredWorker, 'ready' | 'why'>;
}

/** What the registry contains of a worker; renewed at each tick. */
export class Registration {
  readonly #context: WorkerContext;
  readonly #about: Fixed;
  readonly #watched: Watched;
  readonly #load = new ProcessLoad();

  constructor(context: WorkerContext, about: Fixed, watched: Watched) {
    this.#context = context;
    this.#about = about;
    this.#watched = watched;
  }

  start(): void {
    this.#load.start();
  }

  close(): void {
    this.#load.close();
  }

  /** The JSON for one shard. It begins with the figures, which the scripts read. */
  infoOf(shard: Shard): string {
    const figures = shard.figures.report(this.#runningOf(shard), this.#about.concurrency);
    const { restMs } = shard;
    return JSON.stringify({ figures, ...this.#about, restMs, ...this.#now, ...this.#load.now });
  }

  /** Handlers that it runs for one shard. */
  #runningOf(shard: Shard): number {
    if (this.#watched.shards().length === 1) return this.#context.running;
    let running = 0;
    for (const session of this.#watched.sessions())
      if (session.shard === shard) running += session.attempts.size;
    return running;
  }

  get #now(): Pick<
    RegisteredWorker,
    'running' | 'draining' | 'longest' | 'leftovers' | 'suspects' | 'ready' | 'why'
  > {
    const busy = Array.from(this.#watched.sessions(), ({ attempts }) => attempts);
    const oldest = busy.filter(({ oldest }) => oldest < Infinity);
    oldest.sort((a, b) => a.oldest - b.oldest);
    const longest = oldest.slice(0, LONGEST_RUNS).flatMap(({ longest }) => longest ?? []);
    const { running, closing: draining, leftovers, isolation } = this.#context;
    const { ready, why } = this.#watched.health();
    return {
      ...{
        running,
        draining,
        longest,
        leftovers: leftovers.count,
        suspects: isolation.report,
        ready,
      },
      why: why.slice(0, SENTENCES).map((sentence) => sentence.slice(0, SENTENCE)),
    };
  }
}
