import {
  decode,
  decodeLimit,
  type EndReason,
  type Inspected,
  NotFoundError,
  placeOf,
  type QueueCommands,
  type RequestCommands,
  type RequestOutcome,
  type Shards,
} from '@piecework/protocol';
import { look } from './look.js';
import type { Counts } from './outcome.js';

/** Everything known about a request. Times are the Redis server's, in ms since 1970. */
export interface RequestStatus {
  readonly id: string;
  /** 'open', 'sealed', 'cancelling' or 'complete'. */
  readonly status: string;
  readonly generation: number;
  readonly counts: Counts;
  readonly priority: number;
  /** Greatest number in flight at once; null: no limit. */
  readonly limit: number | null;
  /** Name of its task, if it has one. */
  readonly task: string | undefined;
  /** What was given with it. */
  readonly metadata: unknown;
  readonly createdAt: number;
  readonly completedAt: number | undefined;
  readonly outcome: RequestOutcome | undefined;
  /** Why it ended before its work was done, if it did. */
  readonly endReason: EndReason | undefined;
  /** Until when it is held back, by a delay or by a handler. */
  readonly heldUntil: number | undefined;
  /** When it ends, done or not. */
  readonly deadline: number | undefined;
  /** Why it does not move, when that can be told, in words. */
  readonly waiting: string | undefined;
  /**
   * The same for programs: it waits for somebody to `resume` it, for its `queue`, which is paused, for a `worker`,
   * as there is none, for one that serves its `task`, or for a `time`: until `heldUntil`.
   */
  readonly waitingFor: WaitingFor | undefined;
  /** What running handlers last reported, by index. */
  readonly progress: Readonly<Record<number, number>>;
}

export type WaitingFor = 'resume' | 'queue' | 'worker' | 'task' | 'time';

/** What `countsOf` wants of the state, and what says how it stands. */
export const BOOKS = ['generation', 'status', 'total', 'succeeded', 'failed', 'cancelled'];
const FIELDS = [
  ...[...BOOKS, 'task', 'parked', 'heldUntil', 'priority', 'limit', 'metadata', 'createdAt'],
  ...['completedAt', 'outcome', 'endReason', 'deadline', 'paused'],
];

/**
 * `generation`: a life that is known to have begun, or 0.
 * @throws NotFoundError · ExpiredError · LostError · DroppedError · ConnectionError, ServerError
 */
export async function statusOf(
  request: RequestCommands,
  queue: Pick<Shards, 'whereabouts' | 'serves' | 'of'>,
  generation = 0,
): Promise<RequestStatus> {
  const { id } = request.keys;
  const seen = await inspectLiving(request, queue, generation);
  const { state } = seen;
  const task = state['task'] || undefined;
  const heldUntil = Number(state['heldUntil'] ?? 0);
  const held = heldUntil > seen.now && state['status'] !== 'complete';
  const { waiting, waitingFor } = (await standstillOf(seen, queue.of(id), queue, held)) ?? {};
  const reported = Object.entries(seen.progress).map(([index, n]) => [index, Number(n)]);
  return {
    id,
    status: state['status'] ?? '',
    generation: Number(state['generation']),
    counts: countsOf(seen),
    priority: placeOf(state['priority'] ?? '').priority,
    limit: decodeLimit(state['limit']),
    task,
    metadata: decode(state['metadata'] ?? ''),
    createdAt: Number(state['createdAt']),
    completedAt: state['completedAt'] ? Number(state['completedAt']) : undefined,
    outcome: (state['outcome'] as RequestOutcome | undefined) ?? undefined,
    endReason: (state['endReason'] as EndReason | undefined) ?? undefined,
    heldUntil: held ? heldUntil : undefined,
    deadline: state['deadline'] ? Number(state['deadline']) : undefined,
    waiting,
    waitingFor,
    progress: Object.fromEntries(reported),
  };
}

interface Standstill {
  readonly waiting: string;
  readonly waitingFor: WaitingFor;
}

/** Asks the queue only about a request of which nothing runs although something could: one round trip. */
async function standstillOf(
  seen: Inspected,
  shard: Pick<QueueCommands, 'standstill'>,
  queue: Pick<Shards, 'serves'>,
  held: boolean,
): Promise<Standstill | undefined> {
  const { state, now, ready, inFlight } = seen;
  const task = state['task'] ?? '';
  if (state['paused'] === '1') return { waiting: 'it is paused', waitingFor: 'resume' };
  const mayMove = ready > 0 && inFlight === 0 && ['open', 'sealed'].includes(state['status'] ?? '');
  const { pausedUntil, workers } = mayMove ? await shard.standstill() : GOES_ON;
  if (pausedUntil === 0) return { waiting: 'its queue is paused', waitingFor: 'queue' };
  if (pausedUntil !== undefined && pausedUntil > now)
    return { waiting: `its queue is paused until ${timeOf(pausedUntil)}`, waitingFor: 'queue' };
  if (state['parked'] === '1' && !(await queue.serves(task))) {
    const which = task ? `task ${task}` : 'requests without a task';
    return { waiting: `no worker serves ${which}`, waitingFor: 'task' };
  }
  if (held) {
    const until = timeOf(Number(state['heldUntil']));
    return { waiting: `held back until ${until}`, waitingFor: 'time' };
  }
  if (workers === 0) return { waiting: 'its queue has no worker', waitingFor: 'worker' };
  return undefined;
}

const GOES_ON = { pausedUntil: undefined, workers: 1 };

const timeOf = (ms: number) => new Date(ms).toISOString();

async function inspectLiving(
  request: RequestCommands,
  queue: Pick<Shards, 'whereabouts'>,
  generation: number,
): Promise<Inspected> {
  for (;;) {
    const seen = await request.inspect(FIELDS);
    const status = seen?.state['status'];
    if (seen && status !== 'dropped' && status !== 'void') return seen;
    const looked = await look(request, queue, generation);
    if (looked.kind === 'absent') throw looked.error;
    if (looked.kind === 'creating') throw new NotFoundError(request.keys.id);
    // It came into being between the two reads.
  }
}

/** The books of a request, as `inspect` shows them. */
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
