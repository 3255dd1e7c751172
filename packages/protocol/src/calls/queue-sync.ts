import type { QueueCommands } from './queue/queue-commands.js';
import type { Patiently } from './queue/queue-reads.js';
import { hasNotEnded } from './request/request-outcome.js';
import type { RequestReads } from './request/request-reads.js';

/*
 * A server may lose its last writes (a failover to a replica that is behind, a restart from a snapshot). The queue side
 * may then have lost an id whose request still exists, and no tick would ever tend that request. So a caller that knows
 * of the request does not rely on 'closed': it reads the state on the request side. If that generation has ended,
 * 'closed' is right. If not, the queue side has lost the id, and the caller opens it again.
 */

const once: Patiently = (call) => call();

/** Whether a request, of which `of` is the field `queue`, is of another queue. An id exists once, whatever the queue. */
export const isElsewhere = (queue: QueueCommands, of = ''): boolean =>
  of !== '' && of !== queue.keys.queue;

/** The generation of a request that has not ended and belongs to this queue; 0: there is none. */
async function unendedIn(queue: QueueCommands, request: RequestReads): Promise<number> {
  const { status, generation } = await request.fields('status', 'generation');
  if (!hasNotEnded(status)) return 0;
  const { queue: of } = await request.fields('queue');
  return isElsewhere(queue, of) ? 0 : Number(generation);
}

/**
 * Calls the queue side about a request. When `call` answers 'closed' although this generation has not ended, opens the
 * request there again and repeats `call`. `patiently`: how each call is retried.
 * @returns the last answer of `call`: 'closed' when the generation has ended or never existed
 */
export async function reopenIfClosed<Answer>(
  queue: QueueCommands,
  request: RequestReads,
  generation: number,
  call: () => Promise<Answer | 'closed'>,
  patiently: Patiently = once,
): Promise<Answer | 'closed'> {
  const reply = await patiently(call);
  if (reply !== 'closed') return reply;
  // cure: a request that the queue side lost is opened again
  if ((await patiently(() => unendedIn(queue, request))) !== generation) return reply;
  await patiently(() => queue.reopen(request.keys.id, generation));
  return patiently(call);
}

/** Whether the queue side has the request open. If it lost a request that has not ended, opens it again. */
export const isOpen = async (
  queue: QueueCommands,
  request: RequestReads,
  generation: number,
  patiently: Patiently = once,
): Promise<boolean> => {
  const none = { id: request.keys.id, generation, mint: 0, epoch: 0, priority: 0 };
  return (
    (await reopenIfClosed(queue, request, generation, () => queue.push(none), patiently)) === 'done'
  );
};

/** How a generation ended; `spentAt`: as the reply that completed it said. */
export interface Ended {
  readonly generation: number;
  readonly outcome: string;
  readonly spentAt?: number;
}

/**
 * Removes an ended request from the queue side. A server that lost the end would keep a request that no tick tends. So the
 * state of the request is read behind the `finish`, and an unended request is opened again: the server may have gone back
 * without breaking the connection. `since`: the epoch of the connection before the call that reported the end.
 */
export async function finishOnQueue(
  since: number,
  queue: QueueCommands,
  request: RequestReads,
  { generation, outcome, spentAt }: Ended,
  patiently: Patiently = once,
): Promise<void> {
  const { id } = request.keys;
  for (let seen = since; ; ) {
    const finished = await patiently(() => queue.finish(id, generation, outcome, spentAt, seen));
    seen = queue.epoch;
    // cure: a completion that the server lost removes nothing from the queue side
    if ((await patiently(() => unendedIn(queue, request))) === generation) {
      await patiently(() => queue.reopen(id, generation));
      return;
    }
    if (finished) return;
  }
}

/**
 * Removes from the queue side a generation that the request side refused or never created. If the reason is an earlier
 * generation that has not ended, the queue side had lost that one: it is opened again in its place.
 */
export async function withdrawGeneration(
  queue: QueueCommands,
  request: RequestReads,
  generation: number,
  patiently: Patiently = once,
): Promise<void> {
  const { id } = request.keys;
  for (let finished = false; !finished; ) {
    const { epoch } = queue;
    const unended = await patiently(() => unendedIn(queue, request));
    if (unended === 0)
      finished = await patiently(() => queue.finish(id, generation, 'gone', 0, epoch));
    else {
      if (unended !== generation) await patiently(() => queue.reopen(id, unended, generation));
      return;
    }
  }
}
