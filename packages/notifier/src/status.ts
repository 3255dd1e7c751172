import {
  DroppedError,
  ExpiredError,
  type Inspected,
  NotFoundError,
  type QueueCommands,
  type RequestCommands,
  type RequestOutcome,
} from '@piecework/protocol';
import type { Counts } from './outcome.js';

/** Everything known about a request now. */
export interface RequestStatus {
  readonly id: string;
  readonly status: string;
  /** How it ended, once it is complete. */
  readonly outcome: RequestOutcome | undefined;
  readonly generation: number;
  readonly counts: Counts;
  readonly priority: number;
  readonly limit: number;
  readonly task: string | undefined;
  readonly metadata: unknown;
  /** Server times, in ms. */
  readonly createdAt: number;
  readonly completedAt: number | undefined;
  /** Why nothing happens, when something is missing. */
  readonly waiting: string | undefined;
  /** What running handlers last reported, by index. */
  readonly progress: Readonly<Record<number, number>>;
}

export function countsOf({ state, ready, inFlight, delayed }: Inspected): Counts {
  const of = (field: string) => Number(state[field] ?? 0);
  return {
    total: of('total'),
    ready,
    inFlight,
    delayed,
    succeeded: of('succeeded'),
    failed: of('failed'),
    cancelled: of('cancelled'),
  };
}

/** @throws NotFoundError · ExpiredError · DroppedError */
export async function readStatus(
  id: string,
  commands: RequestCommands,
  queue: QueueCommands,
): Promise<RequestStatus> {
  const seen = await commands.inspect();
  const status = seen?.state['status'];
  if (!seen || !status || status === 'void') {
    const { endedAt } = await queue.whereabouts(id);
    throw endedAt === undefined ? new NotFoundError(id) : new ExpiredError(id);
  }
  if (status === 'dropped') throw new DroppedError(id);
  const { state } = seen;
  const task = state['task'] || undefined;
  const unserved = state['parked'] === '1' && !(await queue.serves(task ?? ''));
  return {
    id,
    status,
    outcome: (state['outcome'] as RequestOutcome | undefined) ?? undefined,
    generation: Number(state['generation']),
    counts: countsOf(seen),
    priority: Number(state['priority']),
    limit: Number(state['limit']),
    task,
    metadata: state['metadata'] ? JSON.parse(state['metadata']) : undefined,
    createdAt: Number(state['createdAt']),
    completedAt: state['completedAt'] ? Number(state['completedAt']) : undefined,
    waiting: unserved
      ? `no worker serves ${task ? `task ${task}` : 'requests without a task'}`
      : undefined,
    progress: Object.fromEntries(
      Object.entries(seen.progress).map(([index, n]) => [index, Number(n)]),
    ),
  };
}
