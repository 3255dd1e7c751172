import { type RedisInput, RetryQueue, Scheduler } from 'piecework';
import type { DashboardOptions } from '../shape/options.js';
import type { BesideQueue, BesideView } from '../shape/views.js';
import { EACH_ROUND_MS, Part } from './part.js';
import type { Privacy } from './private.js';
import type { OnProblem } from './problems.js';

/** Failures that are read of one queue, and those of them that are shown. */
const MOST = { read: 200, shown: 20 };
/** How long a read keeps trying, in ms. */
const PATIENCE_MS = 5_000;

/** One queue beside requests. */
interface Source {
  read(): Promise<BesideQueue>;
  close(): Promise<void>;
}

/** RetryQueues and Schedulers: their counts, what is due next, and the latest failures. */
export class Beside {
  readonly #sources: readonly Source[];
  readonly #view: Part<BesideView>;

  constructor(
    redis: RedisInput,
    names: NonNullable<DashboardOptions['beside']>,
    privacy: Privacy,
    onProblem: OnProblem,
  ) {
    const { retryQueues = [], schedulers = [] } = names;
    this.#sources = [
      ...retryQueues.map((name) => retrySource(redis, name, privacy, onProblem)),
      ...schedulers.map((name) => schedulerSource(redis, name, onProblem)),
    ];
    this.#view = new Part(EACH_ROUND_MS, async () => ({
      at: Date.now(),
      queues: await Promise.all(this.#sources.map((source) => source.read())),
    }));
  }

  view(): Promise<BesideView> {
    return this.#view.get();
  }

  async close(): Promise<void> {
    await Promise.all(this.#sources.map((source) => source.close()));
  }
}

function retrySource(
  redis: RedisInput,
  name: string,
  privacy: Privacy,
  onProblem: OnProblem,
): Source {
  const queue = new RetryQueue({ redis, name, unavailableMs: PATIENCE_MS });
  const about = { queue: name, requestId: '', task: '' };
  return {
    close: () => queue.close(),
    read: () =>
      readable('retry queue', name, onProblem, async () => {
        const { waiting, leased, failures, next } = await queue.counts();
        const last: BesideQueue['failures'][number][] = [];
        let read = 0;
        // The oldest come first: with more than can be read at a bounded cost, the latest are not known.
        if (failures > 0 && failures <= MOST.read)
          for await (const { key, at, message } of queue.failures()) {
            last.push({ key, at, message: privacy.message(message, about) });
            if (last.length > MOST.shown) last.shift();
            read += 1;
            if (read >= MOST.read) break;
          }
        return {
          counts: [
            { label: 'waiting', n: waiting },
            { label: 'taken', n: leased },
            { label: 'discarded', n: failures },
          ],
          next: next ?? null,
          failures: last.reverse(),
        };
      }),
  };
}

function schedulerSource(redis: RedisInput, name: string, onProblem: OnProblem): Source {
  const scheduler = new Scheduler({ redis, name, unavailableMs: PATIENCE_MS });
  return {
    close: () => scheduler.close(),
    read: () =>
      readable('scheduler', name, onProblem, async () => {
        const { waiting, locked, next } = await scheduler.counts();
        return {
          counts: [
            { label: 'waiting', n: waiting },
            { label: 'taken', n: locked },
          ],
          next: next ?? null,
          failures: [],
        };
      }),
  };
}

/** A queue that cannot be read does not hide the others. */
async function readable(
  kind: BesideQueue['kind'],
  name: string,
  onProblem: OnProblem,
  read: () => Promise<Pick<BesideQueue, 'counts' | 'next' | 'failures'>>,
): Promise<BesideQueue> {
  try {
    return { kind, name, ...(await read()), problem: '' };
  } catch (error) {
    onProblem(error, `${kind} ${name}`);
    const problem = 'It cannot be read now. The log of the dashboard says why.';
    return { kind, name, counts: [], next: null, failures: [], problem };
  }
}
