import type { Patiently, QueueCommands } from './queue-commands.js';
import type { RequestCommands } from './request-commands.js';

/*
 * A server that loses its last writes (a failover to a replica that is behind, a restart from a snapshot) may
 * lose an id of its queue side and be given the request behind it all the same: nobody would ever look at
 * that. So 'closed' is not believed by whoever knows that the request lives, or did a moment ago. The state on
 * the request side decides: of a life that is over, 'closed' is the truth; of one that is not, the queue side
 * has lost the id, which is opened again.
 */

const LIVING = new Set(['open', 'sealed', 'cancelling']);
const once: Patiently = (call) => call();

/** The life that a request is in, if it is not over and belongs to this queue. */
async function livingIn(queue: QueueCommands, request: RequestCommands): Promise<number> {
  const names = ['queue', 'status', 'generation'] as const;
  const { queue: of, status, generation } = await request.fields(...names);
  // An id lives once, whatever the queue: one of another queue is not to be opened here.
  const ours = of === '' || of === queue.keys.queue;
  return ours && LIVING.has(status ?? '') ? Number(generation) : 0;
}

/**
 * Tells the queue side something of a request: `tell` answers 'closed' when it is not open there. If it lives
 * all the same, it is opened again, and told once more. `patiently`: how each call is tried.
 * @returns what `tell` answered last: 'closed' of a life that is over, or was never there
 */
export async function tellOpen<Answer>(
  queue: QueueCommands,
  request: RequestCommands,
  generation: number,
  tell: () => Promise<Answer | 'closed'>,
  patiently: Patiently = once,
): Promise<Answer | 'closed'> {
  const told = await patiently(tell);
  if (told !== 'closed') return told;
  if ((await patiently(() => livingIn(queue, request))) !== generation) return told;
  await patiently(() => queue.reopen(request.keys.id, generation));
  return patiently(tell);
}

/** Whether a request is open on the queue side, which is asked; opened there again if it lives. */
export const isOpen = async (
  queue: QueueCommands,
  request: RequestCommands,
  generation: number,
  patiently: Patiently = once,
): Promise<boolean> => {
  const none = { id: request.keys.id, generation, mint: 0, epoch: 0, priority: 0 };
  return (await tellOpen(queue, request, generation, () => queue.push(none), patiently)) === 'done';
};

/** How a life ended; `spentAt`: as its completion was answered. */
export interface Ended {
  readonly generation: number;
  readonly outcome: string;
  readonly spentAt?: number;
}

/**
 * Takes a request that ended off the queue side. A server that lost the end would be left with a request that
 * lives and that nobody looks at: so behind a new connection the request is looked at before anything is told.
 * `since`: the epoch of the connection before it was asked whether the request ended.
 */
export async function tellOver(
  since: number,
  queue: QueueCommands,
  request: RequestCommands,
  { generation, outcome, spentAt }: Ended,
  patiently: Patiently = once,
): Promise<void> {
  const { id } = request.keys;
  for (let seen = since; ; ) {
    const { epoch } = queue;
    if (epoch !== seen) {
      seen = epoch;
      if ((await patiently(() => livingIn(queue, request))) === generation) {
        await patiently(() => queue.reopen(id, generation));
        return;
      }
    }
    const told = await patiently(() => queue.finish(id, generation, outcome, spentAt, seen));
    if (told && queue.epoch === seen) return;
  }
}

/**
 * Takes a generation off the queue side that the request side refused, or that never came into being. If that
 * is because an earlier life goes on, this side had lost it, and opens it again in its place.
 */
export async function giveUp(
  queue: QueueCommands,
  request: RequestCommands,
  generation: number,
  patiently: Patiently = once,
): Promise<void> {
  const { id } = request.keys;
  for (let told = false; !told; ) {
    const { epoch } = queue;
    const living = await patiently(() => livingIn(queue, request));
    if (living === 0) told = await patiently(() => queue.finish(id, generation, 'gone', 0, epoch));
    else {
      if (living !== generation) await patiently(() => queue.reopen(id, living, generation));
      return;
    }
  }
}
