import {
  type Connection,
  lasting,
  medianOf,
  type RegisteredWorker,
  slowAfterMs,
} from '@piecework/protocol';
import { type RunningSubRequest, runningOf } from '../../running.js';
import { many } from '../finding.js';

/** Requests that are read in one round. */
const AT_ONCE = 20;
/** Sub-requests of one request that are counted at most, and named. */
const COUNTED = 1_000;
const NAMED = 3;

/** A request with handlers that run far longer than usual, or a worker with stuck ones; and details in words. */
export interface Slow {
  readonly id: string;
  readonly why: string;
}

/**
 * Which of these requests have handlers that run longer than `slowMs`, or far longer than the medians that
 * `workers` report.
 */
export async function slowOnes(
  connection: Connection,
  workers: readonly RegisteredWorker[],
  ids: readonly string[],
  slowMs: number | undefined,
): Promise<Slow[]> {
  if (ids.length === 0) return [];
  const medians = mediansOf(workers);
  const found: Slow[] = [];
  for (let i = 0; i < ids.length; i += AT_ONCE) {
    const some = ids.slice(i, i + AT_ONCE).map(async (id) => {
      // cure: the usual duration says which handlers are slow
      const longerThanMs = Math.ceil(slowMs ?? slowAfterMs(medians.get(id)));
      const slow = await runningOf(connection, id, { limit: COUNTED, longerThanMs });
      return slow === 'gone' || slow.length === 0
        ? []
        : [{ id, why: said(slow, longerThanMs, medians.get(id)) }];
    });
    found.push(...(await Promise.all(some)).flat());
  }
  return found;
}

/** Workers with slots that are occupied by handlers which ignore that they were aborted. */
export function stuckOnes(workers: readonly RegisteredWorker[]): Slow[] {
  return workers
    .filter(({ leftovers }) => leftovers > 0)
    .map(({ id, leftovers, concurrency, host, pid }) => ({
      id,
      why: `${leftovers} of ${concurrency} slots are occupied by handlers that were aborted and still run: end process ${pid} on ${host}`,
    }));
}

/** By request: the median of the medians that its workers report. */
function mediansOf(workers: readonly RegisteredWorker[]): Map<string, number> {
  const said = new Map<string, number[]>();
  for (const { requestId, medianMs } of workers.flatMap(({ longest }) => longest)) {
    if (medianMs === undefined) continue;
    said.set(requestId, [...(said.get(requestId) ?? []), medianMs]);
  }
  return new Map([...said].map(([id, medians]) => [id, medianOf(medians) as number]));
}

/** '2 sub-requests run for more than 60 s (usual: 20 ms): 4 for 12 min on vm-1-x, …' */
function said(
  slow: readonly RunningSubRequest[],
  longerThanMs: number,
  medianMs: number | undefined,
): string {
  const named = slow
    .slice(0, NAMED)
    .map(({ index, forMs, worker }) => `index ${index} for ${lasting(forMs)} on ${worker}`);
  const more = slow.length - named.length;
  const usual = medianMs === undefined ? '' : ` (usual: ${lasting(medianMs)})`;
  const count = slow.length < COUNTED ? many(slow.length, 'sub-request') : `${COUNTED} or more`;
  const rest = more > 0 ? ` and ${more} more` : '';
  return `${count} running for more than ${lasting(longerThanMs)}${usual}: ${named.join(', ')}${rest}`;
}
