import {
  type Inspected,
  leaseCheckMs,
  type RequestReads,
  renewAfterMs,
  type Shards,
  type WorkerLease,
} from '@piecework/protocol';

/** Why a request, or a part of it, waits. */
export interface Standstill {
  readonly waiting: string;
  readonly waitingFor: WaitingFor;
}

/** What a request waits for; see `RequestStatus`. */
export type WaitingFor = 'resume' | 'queue' | 'worker' | 'task' | 'time' | 'lease' | 'producer';

/** A worker that has sub-requests of a request and has missed the renewal of its lease. It may have ended. */
export interface SilentWorker {
  /** Boot id, `<host>-<pid>-…`. */
  readonly worker: string;
  /** How many sub-requests it has. */
  readonly inFlight: number;
  /** When it last renewed its lease. */
  readonly seenAt: number;
  /** When its lease ends: then other workers take these sub-requests over. */
  readonly leaseEndsAt: number;
}

/** The producers of an open request. */
export interface ProducerSigns {
  /** When one of them last added items or renewed their lease. */
  readonly seenAt: number;
  /** When the lease ends if they stay silent. */
  readonly leaseEndsAt: number;
  /** What becomes of the request then: its `onProducerLost`. */
  readonly ifLost: 'cancel' | 'seal';
}

/** What to read of the state for `standstillOf` and `producerOf`. */
export const STANDSTILL_FIELDS = [
  ...['queue', 'task', 'parked', 'paused', 'heldUntil', 'granted'],
  ...['producerUntil', 'leaseMs', 'onProducerLost'],
];

/** A holder that has not renewed for longer than this has missed a renewal; in ms. */
const silentAfterMs = (leaseMs: number) => renewAfterMs(leaseMs) + 2 * leaseCheckMs(leaseMs);

const isActive = ({ state }: Inspected) => ['open', 'sealed'].includes(state['status'] ?? '');

/** The silent workers of a request, the one whose lease ends last at the end. Reads nothing if nothing is in flight. */
export async function silentWorkersOf(
  request: Pick<RequestReads, 'leases'>,
  { now, inFlight }: Inspected,
): Promise<SilentWorker[]> {
  const leases: WorkerLease[] = inFlight > 0 ? await request.leases() : [];
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

/** What the cause of a standstill is asked of. */
export type StandstillQueue = Pick<Shards, 'serves' | 'of' | 'named' | 'has'>;

/**
 * Asks the queue of the request, which may be another than `shards`, and only if nothing of the request runs although
 * something could: one round trip.
 */
export async function standstillOf(
  id: string,
  seen: Inspected,
  shards: StandstillQueue,
  silent: readonly SilentWorker[],
): Promise<Standstill | undefined> {
  const { state, now, ready, inFlight, delayed } = seen;
  if (state['status'] === 'complete') return undefined;
  const task = state['task'] ?? '';
  const own = state['queue'] ?? '';
  const shard = own === '' ? shards.of(id) : shards.named(own);
  const queue = own === '' || shards.has(own) ? shards : shard;
  if (state['paused'] === '1') return { waiting: 'it is paused', waitingFor: 'resume' };
  const mayMove = ready > 0 && inFlight === 0 && isActive(seen);
  const { pausedUntil, workers } = mayMove ? await shard.standstill(now) : MOVES;
  if (pausedUntil === 0) return { waiting: 'its queue is paused', waitingFor: 'queue' };
  if (pausedUntil !== undefined && pausedUntil > now)
    return { waiting: `its queue is paused until ${timeOf(pausedUntil)}`, waitingFor: 'queue' };
  if (state['parked'] === '1' && !(await queue.serves(task))) {
    const which = task ? `task ${task}` : 'requests without a task';
    return { waiting: `no worker serves ${which}`, waitingFor: 'task' };
  }
  const heldUntil = heldUntilOf(seen);
  if (heldUntil !== undefined)
    return { waiting: `it is held until ${timeOf(heldUntil)}`, waitingFor: 'time' };
  if (workers === 0) return { waiting: 'its queue has no worker', waitingFor: 'worker' };
  const last = silent.at(-1);
  // Somebody would have taken over by now.
  if (last && last.leaseEndsAt <= now && (await shard.standstill(now)).workers === 0)
    return { waiting: `${onSilent(silent, now)}; its queue has no worker`, waitingFor: 'worker' };
  if (last) return { waiting: silenceOf(silent, now), waitingFor: 'lease' };
  const producer = producerOf(seen);
  if (producer && ready + inFlight + delayed === 0)
    return { waiting: openOf(producer, now), waitingFor: 'producer' };
  return undefined;
}

/** Until when the request is held; undefined: it is not. */
export function heldUntilOf({ state, now }: Inspected): number | undefined {
  const heldUntil = Number(state['heldUntil'] ?? 0);
  return heldUntil > now && state['status'] !== 'complete' ? heldUntil : undefined;
}

const MOVES = { pausedUntil: undefined, workers: 1 };

const timeOf = (ms: number) => new Date(ms).toISOString();

const seconds = (ms: number) => `${Math.max(0, Math.round(ms / 1_000))} s`;

const ADVICE: Readonly<Partial<Record<WaitingFor, string>>> = {
  worker: 'start one, as `new Worker` or `piecework worker`: it will run then',
  task: 'start one that does, or cancel the request if the name is wrong',
  resume: 'resume it',
  queue: 'resume the queue',
};

/** Why a request waits, and what its user can do. */
export function withAdvice(status: Partial<Standstill>): string | undefined {
  const { waiting, waitingFor } = status;
  const advice = waitingFor && ADVICE[waitingFor];
  return advice ? `${waiting}: ${advice}` : waiting;
}

/** '12 are on a worker last seen 8 s ago; taken over in about 22 s' */
function silenceOf(silent: readonly SilentWorker[], now: number): string {
  const leftMs = Math.max(...silent.map(({ leaseEndsAt }) => leaseEndsAt)) - now;
  const when = leftMs > 0 ? `in about ${seconds(leftMs)}` : 'soon';
  return `${onSilent(silent, now)}; taken over ${when}`;
}

/** '12 are on a worker last seen 8 s ago' */
function onSilent(silent: readonly SilentWorker[], now: number): string {
  const owned = silent.reduce((sum, { inFlight }) => sum + inFlight, 0);
  const on = silent.length === 1 ? 'a worker' : `${silent.length} workers`;
  const seenAt = Math.max(...silent.map((one) => one.seenAt));
  const verb = owned === 1 ? 'is' : 'are';
  return `${owned} ${verb} on ${on} last seen ${seconds(now - seenAt)} ago`;
}

function openOf({ seenAt, leaseEndsAt, ifLost }: ProducerSigns, now: number): string {
  const seen = `its producer was last seen ${seconds(now - seenAt)} ago`;
  if (now - seenAt <= silentAfterMs(leaseEndsAt - seenAt))
    return `all that was added is done; ${seen}`;
  const end = ifLost === 'seal' ? 'sealed' : 'cancelled';
  if (leaseEndsAt <= now) return `${seen}; ${end} when a worker runs, or somebody waits for it`;
  return `${seen}; ${end} in about ${seconds(leaseEndsAt - now)}`;
}
