import type { ServerEvent } from '../contract/history.js';
import type { Interval } from './processes.js';

/** A reply may have been on its way for so long. */
export const LATE_MS = 2_000;

/** Whether this loss of writes may undo what was asked for and acknowledged in that interval. */
export const undoes = (loss: Interval, { fromMs, toMs }: Interval): boolean =>
  fromMs < loss.toMs && toMs > loss.fromMs;

/*
 * What the server did that no user can undo: it lost its last writes, or its clock was stepped.
 *
 * Lost writes. What was acknowledged before `sureNs` its successor has; what was asked for after `goneNs` the
 * successor has acknowledged itself, and that counts in full. What lies between may be undone: settled
 * sub-requests run again, a request completes again, an acknowledged submission, step or drop is not there. So an
 * acknowledgement is in doubt when it was asked for before the one time and heard of after the other.
 *
 * A step of the clock undoes nothing. But leases may end early, so the cap is in doubt for a lease, as it is
 * after lost writes, which take permits along.
 */
export class Upheavals {
  readonly losses: Interval[] = [];
  readonly steps: { readonly ms: number; readonly offsetMs: number }[] = [];

  take(event: ServerEvent, ms: number): void {
    if (event.did === 'step clock') this.steps.push({ ms, offsetMs: event.offsetMs });
    else this.losses.push({ fromMs: Number(event.sureNs) / 1e6, toMs: Number(event.goneNs) / 1e6 });
  }

  /** Whether what was asked for at `fromMs` and heard of at `toMs` may be undone by now. */
  mayUndo(fromMs: number, toMs: number): boolean {
    return this.losses.some((loss) => undoes(loss, { fromMs, toMs }));
  }

  /** Of something that was heard at `ms`, or at `sinceMs` and written down then. */
  mayUndoHeard({ ms, sinceMs = ms }: { readonly ms: number; readonly sinceMs?: number }): boolean {
    return this.mayUndo(sinceMs - LATE_MS, ms);
  }

  /** Whether anything happened between the two. */
  between(fromMs: number, toMs: number): boolean {
    return this.mayUndo(fromMs, toMs) || this.steppedBetween(fromMs, toMs);
  }

  steppedBetween(fromMs: number, toMs: number): boolean {
    return this.steps.some(({ ms }) => ms >= fromMs - LATE_MS && ms <= toMs + LATE_MS);
  }

  /** From each upheaval on, until the server may be asked again. */
  times(): Interval[] {
    const steps = this.steps.map(({ ms }) => ({ fromMs: ms, toMs: ms }));
    return [...this.losses.map(({ toMs }) => ({ fromMs: toMs, toMs })), ...steps];
  }
}
