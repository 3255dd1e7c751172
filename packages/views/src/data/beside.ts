import { IdQueueView, NoQueueError, type RedisInput, RetryQueue, Scheduler } from 'piecework';
import type { BesideQueue, BesideView } from '../shape/views.js';
import { EACH_ROUND_MS, Part } from './part.js';
import type { Privacy } from './private.js';
import type { OnProblem } from './problems.js';

/** The latest failures of each queue that are shown. */
const MOST_FAILURES = 20;
/** How long a read keeps trying, in ms. */
const PATIENCE_MS = 5_000;

/** Names of queues beside requests. */
export interface BesideQueues {
  readonly retryQueues?: readonly string[] | undefined;
  readonly schedulers?: readonly string[] | undefined;
  readonly idQueues?: readonly string[] | undefined;
}

/** One queue beside requests. */
interface Source {
  read(): Promise<BesideQueue>;
  close(): Promise<void>;
}

/** RetryQueues, Schedulers and IdQueues: their counts, what is due next, and the latest failures. */
export class Beside {
  readonly #sources: readonly Source[];
  readonly #view: Part<BesideView>;

  constructor(redis: RedisInput, names: BesideQueues, privacy: Privacy, onProblem: OnProblem) {
    const { retryQueues = [], schedulers = [], idQueues = [] } = names;
    this.#sources = [
      ...retryQueues.map((name) => retrySource(redis, name, privacy, onProblem)),
      ...schedulers.map((name) => schedulerSource(redis, name, onProblem)),
      ...idQueues.map((name) => idQueueSource(redis, name, privacy, onProblem)),
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
        const latest: BesideQueue['failures'][number][] = [];
        const asked = { order: 'newest', page: MOST_FAILURES } as const;
        if (failures > 0)
          for await (const { key, at, message } of queue.failures(asked)) {
            latest.push({ key, at, message: privacy.message(message, about) });
            if (latest.length >= MOST_FAILURES) break;
          }
        return {
          counts: [
            { label: 'waiting', n: waiting },
            { label: 'handed out', n: leased },
            { label: 'discarded', n: failures },
          ],
          nextIs: 'next due',
          next: next ?? null,
          failures: latest,
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
            { label: 'handed out', n: locked },
          ],
          nextIs: 'next due',
          next: next ?? null,
          failures: [],
        };
      }),
  };
}

function idQueueSource(
  redis: RedisInput,
  name: string,
  privacy: Privacy,
  onProblem: OnProblem,
): Source {
  const view = new IdQueueView(name, { redis, unavailableMs: PATIENCE_MS });
  const about = { queue: name, requestId: '', task: '' };
  return {
    close: () => view.close(),
    read: () =>
      readable('id queue', name, onProblem, async () => {
        const { counts, next, failures } = await view.look({ failures: MOST_FAILURES });
        return {
          counts: [
            { label: 'pending', n: counts.pending },
            { label: 'handed out', n: counts.running },
            { label: 'succeeded', n: counts.completed - counts.failures },
            { label: 'failed', n: counts.failures },
          ],
          nextIs: 'next time-out',
          next: next ?? null,
          failures: failures.map(({ id, at, message }) => ({
            ...{ key: id, at, message: privacy.message(message, about) },
          })),
        };
      }),
  };
}

/** A queue that cannot be read does not hide the others. */
async function readable(
  kind: BesideQueue['kind'],
  name: string,
  onProblem: OnProblem,
  read: () => Promise<Pick<BesideQueue, 'counts' | 'nextIs' | 'next' | 'failures'>>,
): Promise<BesideQueue> {
  try {
    return { kind, name, ...(await read()), problem: '' };
  } catch (error) {
    const isAbsent = error instanceof NoQueueError;
    if (!isAbsent) onProblem(error, `${kind} ${name}`);
    const problem = isAbsent
      ? 'There is no queue of this name, or it no longer exists. It appears when a program joins it.'
      : 'It cannot be read now. The log of the dashboard says why.';
    return { kind, name, counts: [], nextIs: '', next: null, failures: [], problem };
  }
}
