/**
 * What a probe asks of a worker. `live`: it can do its work without being started anew; false asks
 * for a restart, as when all slots are held by handlers that do not stop. `ready`: it takes work now; false while it starts, drains, or cannot reach Redis
 * (nothing was answered for 5 s), which a restart would not cure.
 */
export interface WorkerHealth {
  /** Boot id of the worker. */
  readonly worker: string;
  readonly queue: string;
  readonly state: WorkerState;
  readonly live: boolean;
  readonly ready: boolean;
  /**
   * Why it is not live or not ready, in words, and what else is amiss: a worker without its renewal
   * thread, or that gets no answer about some requests, or whose Redis is nearly full, is ready. Empty when
   * all is well.
   */
  readonly why: readonly string[];
  /** How many handlers run now, and how many slots there are. */
  readonly running: number;
  readonly concurrency: number;
}

/** new → starting → running → closing → closed; a start that fails leads back to new. */
export type WorkerState = 'new' | 'starting' | 'running' | 'closing' | 'closed';

/** What a worker knows of itself. */
export interface Vitals {
  readonly state: WorkerState;
  /** Why the blocking connection is down; '' when it is up. */
  readonly intakeDown: string;
  /** What keeps it from taking tokens although it is up; '' when nothing does. */
  readonly intakeHeld?: string;
  /** Whether the loop that takes tokens ended although nobody asked it to. */
  readonly intakeOver: boolean;
  /** Which calls are not answered for long; '' when all are. */
  readonly stalled?: string;
  /** Which servers are nearly full; '' when none is. */
  readonly full?: string;
  /** Why nobody could renew for a busy event loop; '' when somebody could. */
  readonly renewalDown: string;
  /** How many slots are held by handlers that go on although they were told to stop, and how many there are. */
  readonly leftovers?: number;
  readonly concurrency?: number;
  /** For how long Redis has answered nothing that it was asked, in ms; 0: it answers (pulse.ts). */
  readonly silentMs: number;
  /** Ms since the last look at the agenda that Redis answered, and after how many it is late. */
  readonly sinceTickMs: number;
  readonly tickLateMs: number;
}

/** The verdict on a worker, and the reasons for it. */
export function judge(seen: Vitals): Pick<WorkerHealth, 'live' | 'ready' | 'why'> {
  const { state } = seen;
  if (state === 'closed') return { live: false, ready: false, why: ['the worker is closed'] };
  const why: string[] = [];
  if (state === 'new') why.push('the worker was not started');
  if (state === 'starting') why.push('the worker is starting');
  if (state === 'closing') why.push('the worker is closing: running sub-requests end');
  const broken = state === 'running' && seen.intakeOver;
  if (broken) why.push('the loop that takes tokens has ended');
  if (state === 'running' && !broken) {
    if (seen.intakeDown !== '') why.push(`no blocking connection to Redis: ${seen.intakeDown}`);
    if (seen.intakeHeld) why.push(seen.intakeHeld);
    if (seen.silentMs > 0) {
      why.push(`Redis has not answered for ${Math.round(seen.silentMs / 1_000)} s`);
    } else if (seen.sinceTickMs > seen.tickLateMs) {
      why.push(`no look at the agenda has succeeded for ${Math.round(seen.sinceTickMs / 1_000)} s`);
    }
  }
  const { leftovers = 0, concurrency = Infinity } = seen;
  const stuck = leftovers >= concurrency;
  const held = `${leftovers} of ${concurrency} slots are held by handlers that go on although they were told to stop; they end with this process`;
  if (stuck) why.push(held);
  const ready = why.length === 0;
  if (leftovers > 0 && !stuck) why.push(held);
  if (seen.stalled) why.push(seen.stalled);
  if (seen.full) why.push(seen.full);
  if (seen.renewalDown !== '') why.push(`the renewal thread is down: ${seen.renewalDown}`);
  return { live: !broken && !stuck, ready, why };
}
