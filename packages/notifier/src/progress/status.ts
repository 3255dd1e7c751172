import {
  decode,
  decodeCost,
  decodeLimit,
  type EndReason,
  type Inspected,
  isOfLife,
  NotFoundError,
  type PresentState,
  placeOf,
  type RequestCost,
  type RequestOutcome,
  type RequestReads,
  type Shards,
} from '@piecework/protocol';
import type { Counts } from '../waiting/outcome.js';
import { readState } from '../waiting/read-state.js';
import type { ProducerSigns, RetrySigns, SilentWorker, WaitingFor } from './snapshot.js';
import {
  heldSinceOf,
  heldUntilOf,
  isHeldForMemory,
  leasesOf,
  producerOf,
  QueueSigns,
  retryOf,
  STANDSTILL_FIELDS,
  silentAmong,
} from './standstill.js';
import { whyOf } from './why.js';

/** Everything known about a request. Times are the Redis server's, in ms since 1970. */
export interface RequestStatus {
  readonly id: string;
  readonly status: RequestPhase;
  /** Rises with every redrive, and when the id is used for a new request. */
  readonly generation: number;
  readonly counts: Counts;
  /**
   * How many of `counts.inFlight` run, at most: so many permits its workers have. It never exceeds `limit`, unless the
   * limit was just lowered. The rest of those in flight is read ahead, or has ended and is about to be settled.
   */
  readonly running: number;
  /** What its attempts have cost so far; redrives add to it. */
  readonly cost: RequestCost;
  /** When this was read. */
  readonly readAt: number;
  /** 0 (served first) to 99. */
  readonly priority: number;
  /** Greatest number that runs at once; null: no limit. */
  readonly limit: number | null;
  /** Name of its task, if it has one. */
  readonly task: string | undefined;
  /** The `metadata` that it was submitted with. */
  readonly metadata: unknown;
  readonly createdAt: number;
  readonly completedAt: number | undefined;
  readonly outcome: RequestOutcome | undefined;
  /** Why it ended before all its work was done, if it did. */
  readonly endReason: EndReason | undefined;
  /** Until when nothing of it starts, because of its delay or of a handler's `holdRequest`. */
  readonly heldUntil: number | undefined;
  /** When it ends, whether all its work is done or not. */
  readonly deadline: number | undefined;
  /**
   * Why it is not further, or why it ended so: a sentence with the cause, and one with what to do if there is anything
   * to do. It begins in small letters and has no full stop at its end. For people; its words may change with any version.
   */
  readonly why: string;
  /**
   * The same for programs, where the request waits. 'resume': the request is paused; 'queue': its queue is paused;
   * 'worker': its queue has no worker, or those take no work; 'task': no worker serves its task; 'time': a handler holds it, or its start is delayed, until `heldUntil`;
   * 'lease': `silentWorkers` have some of it; 'producer': it is open, and all that was added is settled; 'handler': a
   * handler of it runs far longer than usual, or blocks its worker; 'memory': Redis has no room for its results, and workers may hold it meanwhile;
   * 'retry': only the sub-requests of `retry` are left; 'slots': other requests have all slots that it could use.
   */
  readonly waitingFor: WaitingFor | undefined;
  /** Workers that have sub-requests of it and have missed the renewal of their lease. */
  readonly silentWorkers: readonly SilentWorker[];
  /** The producers of an open request; otherwise undefined. */
  readonly producer: ProducerSigns | undefined;
  /** When the first of its delayed sub-requests is due; undefined: it has none. */
  readonly retry: RetrySigns | undefined;
  /** The last number that each running handler passed to `context.progress`, by index. */
  readonly progress: Readonly<Record<number, number>>;
}

/**
 * How far a request is. 'open': producers add items; 'sealed': all items are in; 'cancelling': what runs is
 * being ended; 'complete': everything is settled.
 */
export type RequestPhase = 'open' | 'sealed' | 'cancelling' | 'complete';

/** The fields of the state that `countsOf`, `runningOf` and a progress report read. */
export const COUNT_FIELDS = [
  ...['generation', 'first', 'status', 'total', 'succeeded', 'failed', 'cancelled', 'granted'],
];

/** The generations of the request, from an answer of `inspect` with these fields. */
export const lifeOf = ({ state }: Inspected): Pick<PresentState, 'generation' | 'first'> => {
  const generation = Number(state['generation']);
  return { generation, first: Number(state['first'] ?? generation) };
};
export const STATUS_FIELDS = [
  ...new Set([...COUNT_FIELDS, ...STANDSTILL_FIELDS]),
  ...[
    'cost',
    'priority',
    'limit',
    'metadata',
    'createdAt',
    'completedAt',
    'outcome',
    'endReason',
    'deadline',
  ],
];

/** What reading a status asks of the queue. */
export type StatusQueue = Pick<Shards, 'whereabouts' | 'of' | 'named'>;

/**
 * @param generation one that is known to have begun, or 0
 * @param signs shared by statuses that are read together
 * @throws NotFoundError · ExpiredError · LostError · DroppedError · ConnectionError, ServerError
 */
export async function statusOf(
  request: RequestReads,
  queue: StatusQueue,
  generation = 0,
  signs = new QueueSigns(queue),
): Promise<RequestStatus> {
  return statusIn(request, signs, await inspectPresent(request, queue, STATUS_FIELDS, generation));
}

/** From an answer of `inspect` that has the fields above. */
export async function statusIn(
  request: RequestReads,
  signs: QueueSigns,
  seen: Inspected,
): Promise<RequestStatus> {
  const { state } = seen;
  const task = state['task'] || undefined;
  const isOver = state['status'] === 'complete';
  const [leases, retry, queue] = await Promise.all([
    leasesOf(request, seen),
    isOver ? undefined : retryOf(request, signs, seen),
    isOver ? NO_QUEUE : signs.conditions(request.keys.id, seen),
  ]);
  const reported = Object.entries(seen.progress).map(([index, n]) => [index, Number(n)]);
  const status = {
    id: request.keys.id,
    status: state['status'] as RequestPhase,
    generation: Number(state['generation']),
    counts: countsOf(seen),
    running: runningOf(seen),
    cost: decodeCost(state['cost']),
    readAt: seen.now,
    priority: placeOf(state['priority'] ?? '').priority,
    limit: decodeLimit(state['limit']),
    task,
    metadata: decode(state['metadata'] ?? ''),
    createdAt: Number(state['createdAt']),
    completedAt: state['completedAt'] ? Number(state['completedAt']) : undefined,
    outcome: (state['outcome'] as RequestOutcome | undefined) ?? undefined,
    endReason: (state['endReason'] as EndReason | undefined) ?? undefined,
    heldUntil: heldUntilOf(seen),
    deadline: state['deadline'] ? Number(state['deadline']) : undefined,
    silentWorkers: silentAmong(leases, seen),
    producer: producerOf(seen),
    retry,
    progress: Object.fromEntries(reported),
  };
  // Only what could run, and does not, may wait for others.
  const mayWait = status.running === 0 && seen.ready + seen.inFlight > 0;
  const { why, waitingFor } = whyOf({
    ...status,
    heldSince: heldSinceOf(seen),
    heldForMemory: isHeldForMemory(seen),
    paused: state['paused'] === '1',
    parked: state['parked'] === '1',
    keepsResults: state['results'] !== 'discard',
    toleratedFailures: state['toleratedFailures'] ?? '0',
    holders: leases.map(({ worker, endsAt, leaseMs }) => ({ worker, renewedAt: endsAt - leaseMs })),
    queue,
    others: mayWait ? await signs.others(request, queue) : [],
  });
  return { ...status, why, waitingFor };
}

const NO_QUEUE = { pausedUntil: undefined, pausedSince: undefined, workers: [], memory: undefined };

/** The state of a request that exists. @throws what `statusOf` throws */
export async function inspectPresent(
  request: RequestReads,
  queue: Pick<Shards, 'whereabouts'>,
  fields: readonly string[],
  generation: number,
): Promise<Inspected> {
  for (;;) {
    const seen = await request.inspect(fields);
    const status = seen?.state['status'];
    const isThere = seen && status !== 'dropped' && status !== 'void';
    // cure: a status is not that of another life of the id
    if (isThere && isOfLife(generation, lifeOf(seen))) return seen;
    const read = await readState(request, queue, generation);
    if (read.kind === 'absent') throw read.error;
    if (read.kind === 'creating') throw new NotFoundError(request.keys.id);
    // It was created between the two reads.
  }
}

/** The counts of a request, from the answer of `inspect`. */
export function countsOf({ state, ready, inFlight, delayed }: Inspected): Counts {
  const number = (field: string) => Number(state[field] ?? 0);
  return {
    total: number('total'),
    ready,
    inFlight,
    delayed,
    succeeded: number('succeeded'),
    failed: number('failed'),
    cancelled: number('cancelled'),
  };
}

/** How many run at most: so many permits its workers have. */
export function runningOf({ state, inFlight }: Inspected): number {
  // A script that lacks a right may have counted a part.
  return Math.max(0, Math.min(inFlight, Number(state['granted'] ?? 0)));
}
