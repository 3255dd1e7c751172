import {
  type Inspected,
  placeOf,
  type QueueConditions,
  type QueueErrors,
  type RequestReads,
  type Shards,
  type WorkerLease,
} from '@piecework/protocol';
import type { ProducerSigns, RetrySigns, SilentWorker } from './snapshot.js';
import { silentAfterMs } from './why-words.js';

/*
 * What is read to say why a request is not further: `why.ts` makes the sentence of it.
 */

/** What to read of the state for it. */
export const STANDSTILL_FIELDS = [
  ...['queue', 'task', 'parked', 'paused', 'heldUntil', 'heldFor', 'granted', 'delayMs', 'runAt'],
  ...['producerUntil', 'leaseMs', 'onProducerLost', 'toleratedFailures', 'results', 'createdAt'],
];

/** Most other requests whose priorities are read. */
const OTHERS = 10;

/** What statuses ask of queues. Those that are read at the same time share the reads that are under way. */
export class QueueSigns {
  readonly #shards: Pick<Shards, 'of' | 'named'>;
  readonly #conditions = new Map<string, Promise<QueueConditions>>();
  readonly #errors = new Map<string, ReturnType<QueueErrors['last']>>();
  readonly #priorities = new Map<string, Promise<number | undefined>>();

  constructor(shards: Pick<Shards, 'of' | 'named'>) {
    this.#shards = shards;
  }

  /** Of the queue of the request, which may be another than that of the caller. */
  conditions(id: string, { state, now }: Inspected): Promise<QueueConditions> {
    const queue = this.#queue(id, state);
    return shared(this.#conditions, queue.keys.queue, () => queue.conditions(now));
  }

  /** The last error of the request among the last ones of its queue. */
  async lastError(request: RequestReads, { state }: Inspected): Promise<RetrySigns['lastError']> {
    const { id } = request.keys;
    const { queue } = this.#queue(id, state).keys;
    const all = await shared(this.#errors, queue, () => request.errorsOf(queue).last());
    return all.find(({ requestId }) => requestId === id);
  }

  /** The requests, but `id`, with the longest running handlers. */
  async others(request: RequestReads, { workers }: QueueConditions) {
    const runs = workers.flatMap(({ longest }) => longest);
    runs.sort((a, b) => a.startedAt - b.startedAt);
    const ids = new Set(runs.map(({ requestId }) => requestId));
    ids.delete(request.keys.id);
    const read = [...ids].slice(0, OTHERS).map(async (id) => {
      const priority = await shared(this.#priorities, id, async () => {
        const { priority } = await request.of(id).fields('priority');
        return priority === '' ? undefined : placeOf(priority).priority;
      });
      return priority === undefined ? [] : [{ id, priority }];
    });
    return (await Promise.all(read)).flat();
  }

  #queue(id: string, state: Inspected['state']) {
    const own = state['queue'] ?? '';
    return own === '' ? this.#shards.of(id) : this.#shards.named(own);
  }
}

function shared<T>(
  underWay: Map<string, Promise<T>>,
  key: string,
  read: () => Promise<T>,
): Promise<T> {
  const found = underWay.get(key);
  if (found) return found;
  const reading = read().finally(() => underWay.delete(key));
  underWay.set(key, reading);
  return reading;
}

/** The workers that have sub-requests of it, with their leases. Reads nothing if nothing is in flight. */
export async function leasesOf(
  request: Pick<RequestReads, 'leases'>,
  { inFlight }: Inspected,
): Promise<WorkerLease[]> {
  return inFlight > 0 ? await request.leases() : [];
}

/** Those that have missed a renewal; the one whose lease ends last at the end. */
export function silentAmong(leases: readonly WorkerLease[], { now }: Inspected): SilentWorker[] {
  return leases
    .map(({ worker, pending, endsAt, leaseMs }) => {
      return { worker, inFlight: pending, seenAt: endsAt - leaseMs, leaseEndsAt: endsAt, leaseMs };
    })
    .filter(({ seenAt, leaseMs }) => now - seenAt > silentAfterMs(leaseMs))
    .sort((a, b) => a.leaseEndsAt - b.leaseEndsAt)
    .map(({ leaseMs: _, ...silent }) => silent);
}

/** Undefined unless the request is open. */
export function producerOf({ state }: Inspected): ProducerSigns | undefined {
  const leaseEndsAt = Number(state['producerUntil']);
  const leaseMs = Number(state['leaseMs']);
  if (state['status'] !== 'open' || !(leaseEndsAt > 0) || !(leaseMs > 0)) return undefined;
  const ifLost = state['onProducerLost'] === 'seal' ? 'seal' : 'cancel';
  return { seenAt: leaseEndsAt - leaseMs, leaseEndsAt, ifLost };
}

/** When the first of the delayed sub-requests is due, and the last error if nothing else is left. */
export async function retryOf(
  request: RequestReads,
  signs: QueueSigns,
  seen: Inspected,
): Promise<RetrySigns | undefined> {
  const { ready, inFlight, delayed, now } = seen;
  if (delayed === 0) return undefined;
  const [dueAt, lastError] = await Promise.all([
    request.nextDue(now),
    ready + inFlight > 0 ? undefined : signs.lastError(request, seen),
  ]);
  // It was due since.
  if (dueAt === undefined) return undefined;
  const { index, name, message } = lastError ?? {};
  const error = lastError && { index, name, message };
  return { dueAt, lastError: error as RetrySigns['lastError'] };
}

/** Until when the request is held; undefined: it is not. */
export function heldUntilOf({ state, now }: Inspected): number | undefined {
  const heldUntil = Number(state['heldUntil'] ?? 0);
  return heldUntil > now && state['status'] !== 'complete' ? heldUntil : undefined;
}

/** Since when it is held; 'created': by its `delayMs` or `runAt`; undefined: not known. */
export function heldSinceOf({ state }: Inspected): number | 'created' | undefined {
  const heldUntil = Number(state['heldUntil'] ?? 0);
  const [until, ms] = (state['heldFor'] ?? '').split(' ').map(Number);
  const start = state['runAt']
    ? Number(state['runAt'])
    : Number(state['createdAt']) + Number(state['delayMs'] ?? 0);
  if (heldUntil <= start) return 'created';
  return until === heldUntil && ms ? heldUntil - ms : undefined;
}

/** Whether workers hold it back as its results lack room. */
export const isHeldForMemory = ({ state }: Inspected): boolean =>
  (state['heldFor'] ?? '').split(' ')[2] === 'memory';
