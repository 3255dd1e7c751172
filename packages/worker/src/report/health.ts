/**
 * The answer to a probe. `live`: the worker can do its work without being started anew; false asks for a restart,
 * as when handlers that do not stop occupy all slots. `ready`: it takes work now; false while it starts, drains,
 * cannot reach Redis (no answer for 5 s) or lacks a right there, which a restart would not cure, and while it runs
 * alone what ended workers before.
 */
export interface WorkerHealth {
  /** Boot id of the worker. */
  readonly worker: string;
  readonly queue: string;
  readonly state: WorkerState;
  readonly live: boolean;
  readonly ready: boolean;
  /**
   * Why it is not live or not ready, in words, and what else is wrong. A worker is ready without its renewal
   * thread, without an answer about some requests, or with a Redis that is nearly full. Empty when nothing is wrong.
   */
  readonly why: readonly string[];
  /** How many handlers run now, and how many slots there are. */
  readonly running: number;
  readonly concurrency: number;
}

/** new → starting → running → closing → closed; a start that fails leads to closing. */
export type WorkerState = 'new' | 'starting' | 'running' | 'closing' | 'closed';

/** What the verdict on a worker depends on. */
export interface Vitals {
  readonly state: WorkerState;
  /** Why the blocking connection is down; '' when it is up. */
  readonly intakeDown: string;
  /** Why no token can be taken although it is up; '' when one can. */
  readonly intakeMoving?: string;
  /** Why it runs nothing but suspects; '' when it takes other work, too. */
  readonly isolated?: string;
  /** Which right the Redis user lacks, as a call was told lately; '' when none was. */
  readonly refused?: string;
  /** Whether the loop that takes tokens has ended without a close. */
  readonly intakeEnded: boolean;
  /** Calls that have not been answered for long; '' when there are none. */
  readonly stalled?: string;
  /** Servers that are nearly full; '' when none is. */
  readonly full?: string;
  /** Why the renewal thread could not renew for a blocked event loop; '' when it could. */
  readonly renewalDown: string;
  /** How many slots are occupied by handlers that continue although they were asked to stop, and how many there are. */
  readonly leftovers?: number;
  readonly concurrency?: number;
  /** For how long Redis has answered no call, in ms; 0: it answers (pulse.ts). */
  readonly silentMs: number;
  /** Why the connection of the calls is down, as it reported it: the password was refused, for example; '' when it is up. */
  readonly trouble?: string;
  /** Ms since the last tick that Redis answered, and after how many the next one is late. */
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
  const broken = state === 'running' && seen.intakeEnded;
  if (broken) why.push('it takes no more work: the loop that fetches it has ended');
  if (state === 'running' && !broken) {
    if (seen.intakeDown !== '') why.push(`no blocking connection to Redis: ${seen.intakeDown}`);
    if (seen.intakeMoving) why.push(seen.intakeMoving);
    if (seen.isolated) why.push(seen.isolated);
    if (seen.refused && !seen.intakeDown.includes(seen.refused)) why.push(seen.refused);
    if (seen.silentMs > 0) {
      const trouble = (seen.trouble ?? '').replace(/^connect: /, '');
      const silent = `Redis has not answered for ${Math.round(seen.silentMs / 1_000)} s`;
      if (trouble === '') why.push(silent);
      else if (!seen.intakeDown.includes(trouble)) why.push(`no connection to Redis: ${trouble}`);
    } else if (seen.sinceTickMs > seen.tickLateMs) {
      why.push(
        `it has not looked after its queue for ${Math.round(seen.sinceTickMs / 1_000)} s: its calls fail`,
      );
    }
  }
  const { leftovers = 0, concurrency = Infinity } = seen;
  const stuck = leftovers >= concurrency;
  const stubborn = `${leftovers} of ${concurrency} slots are occupied by handlers that continue although they were asked to stop; they end with this process`;
  if (stuck) why.push(stubborn);
  const ready = why.length === 0;
  if (leftovers > 0 && !stuck) why.push(stubborn);
  if (seen.stalled) why.push(seen.stalled);
  if (seen.full) why.push(seen.full);
  if (seen.renewalDown !== '') why.push(`the renewal thread is down: ${seen.renewalDown}`);
  return { live: !broken && !stuck, ready, why };
}
