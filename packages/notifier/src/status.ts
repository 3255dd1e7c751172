import {
  decode,
  decodeLimit,
  type EndReason,
  type Inspected,
  NotFoundError,
  placeOf,
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
  /** Why it does not move, when that can be told. */
  readonly waiting: string | undefined;
  /** What running handlers last reported, by index. */
  readonly progress: Readonly<Record<number, number>>;
}

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
  queue: Pick<Shards, 'whereabouts' | 'serves'>,
  generation = 0,
): Promise<RequestStatus> {
  const { id } = request.keys;
  const seen = await inspectLiving(request, queue, generation);
  const { state } = seen;
  const task = state['task'] || undefined;
  const unserved = state['parked'] === '1' && !(await queue.serves(task ?? ''));
  const heldUntil = Number(state['heldUntil'] ?? 0);
  const held = heldUntil > seen.now && state['status'] !== 'complete';
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
    waiting:
      state['paused'] === '1'
        ? 'it is paused'
        : unserved
          ? `no worker serves ${task ? `task ${task}` : 'requests without a task'}`
          : held
            ? `held back until ${new Date(heldUntil).toISOString()}`
            : undefined,
    progress: Object.fromEntries(reported),
  };
}

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
