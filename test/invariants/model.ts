/*
 * One request as docs/protocol.md describes it, in a few lines of TypeScript: no Redis, no tokens.
 * Times are the test's own, in ms from the start.
 */

export type Kind = 's' | 'f' | 'b';
export interface Report {
  readonly index: number;
  readonly kind: Kind;
}

export const LEASE_MS = 300_000;
/** A failed sub-request is tried again after so long. */
export const DELAY_MS = 100_000;

export class Model {
  readonly limit: number;
  readonly attempts: number;
  status: 'open' | 'sealed' | 'cancelling' | 'complete' = 'open';
  now = 0;
  total = 0;
  /** Index of the first sub-request that nobody has read. */
  unread = 0;
  readonly owners = new Map<number, string>();
  /** Index → when it is ready. */
  readonly parked = new Map<number, number>();
  /** Index → how often it was read and not returned by its reader. */
  readonly reads = new Map<number, number>();
  readonly tries = new Map<number, number>();
  readonly settled = new Map<number, 'succeeded' | 'failed' | 'cancelled'>();
  readonly permits = new Map<string, number>();
  readonly leases = new Map<string, number>();

  constructor(limit: number, attempts: number) {
    this.limit = limit;
    this.attempts = attempts;
  }

  get due(): number[] {
    return [...this.parked].filter(([, at]) => at <= this.now).map(([index]) => index);
  }

  get counts() {
    const ended = [...this.settled.values()];
    const number = (how: string) => ended.filter((one) => one === how).length;
    const due = this.due.length;
    return {
      total: this.total,
      ready: this.total - this.unread + due,
      inFlight: this.owners.size,
      delayed: this.parked.size - due,
      succeeded: number('succeeded'),
      failed: number('failed'),
      cancelled: number('cancelled'),
    };
  }

  append(n: number): string {
    if (this.status !== 'open') return this.status;
    this.total += n;
    return 'ok';
  }

  seal(): string {
    if (this.status === 'open') this.status = 'sealed';
    this.#complete();
    return this.status;
  }

  enter(worker: string, want: number): string {
    if (this.status === 'complete') return 'complete';
    const { ready, inFlight } = this.counts;
    const active = this.status !== 'cancelling' && ready > 0;
    const wanted = active ? Math.min(this.limit, inFlight + ready) : 0;
    const granted = [...this.permits.values()].reduce((sum, n) => sum + n, 0);
    const held = this.permits.get(worker) ?? 0;
    this.#hold(worker, held + Math.max(0, Math.min(want, wanted - granted)));
    return 'ok';
  }

  /** Reads what nobody has read, permits or not: a read may come late. */
  read(worker: string, n: number): number[] {
    if (this.status === 'complete') return [];
    const indexes: number[] = [];
    for (; indexes.length < n && this.unread < this.total; this.unread += 1) {
      indexes.push(this.unread);
      this.owners.set(this.unread, worker);
      this.reads.set(this.unread, 1);
    }
    return indexes;
  }

  take(worker: string): number[] | 'gone' | 'lost' {
    if (this.status === 'complete') return 'gone';
    if (!this.permits.has(worker)) return 'lost';
    if (this.status === 'cancelling') return [];
    const { due } = this;
    for (const index of due) {
      this.parked.delete(index);
      this.owners.set(index, worker);
      this.#countRead(index, 1);
    }
    return due;
  }

  settle(worker: string, reports: readonly Report[], keep: number, late: boolean): string {
    if (this.status === 'complete') return 'complete';
    for (const report of reports) this.#report(worker, report, late);
    const held = this.permits.get(worker) ?? 0;
    if (held > 0 && !late) {
      const most = this.status === 'cancelling' ? 0 : held;
      this.#hold(worker, Math.min(keep, held, most));
    }
    return this.#complete() ? 'complete' : 'ok';
  }

  #report(worker: string, { index, kind }: Report, late: boolean): void {
    if (kind === 's') {
      const owner = this.owners.get(index);
      // Only its owner has read it.
      if (owner !== undefined && owner !== worker && (this.reads.get(index) ?? 0) < 2) return;
      if (!this.owners.delete(index) && !this.parked.delete(index)) return;
      this.settled.set(index, 'succeeded');
      return;
    }
    if (late || this.owners.get(index) !== worker) return;
    this.owners.delete(index);
    if (this.status === 'cancelling') {
      this.settled.set(index, 'cancelled');
      return;
    }
    if (kind === 'b') {
      this.#countRead(index, -1);
      this.parked.set(index, 0);
      return;
    }
    const tries = (this.tries.get(index) ?? 0) + 1;
    this.tries.set(index, tries);
    if (tries < this.attempts) this.parked.set(index, this.now + DELAY_MS);
    else this.settled.set(index, 'failed');
  }

  #countRead(index: number, n: number): void {
    this.reads.set(index, (this.reads.get(index) ?? 0) + n);
  }

  renew(worker: string): string {
    if (this.status === 'complete') return 'gone';
    if (!this.permits.has(worker)) return 'lost';
    this.leases.set(worker, this.now + LEASE_MS);
    return this.status === 'cancelling' ? 'cancelling' : 'ok';
  }

  cancel(): string {
    if (this.status === 'complete') return 'complete';
    this.status = 'cancelling';
    for (; this.unread < this.total; this.unread += 1) this.settled.set(this.unread, 'cancelled');
    for (const index of this.parked.keys()) this.settled.set(index, 'cancelled');
    this.parked.clear();
    this.#complete();
    return this.status;
  }

  tend(): string {
    if (this.status === 'complete') return 'complete';
    for (const [worker, ends] of this.leases) if (ends <= this.now) this.#hold(worker, 0);
    for (const [index, worker] of this.owners) {
      if (this.permits.has(worker)) continue;
      this.owners.delete(index);
      this.parked.set(index, 0);
    }
    if (this.status === 'cancelling') this.cancel();
    return this.#complete() ? 'complete' : 'ok';
  }

  #hold(worker: string, permits: number): void {
    if (permits > 0) {
      this.permits.set(worker, permits);
      this.leases.set(worker, this.now + LEASE_MS);
    } else {
      this.permits.delete(worker);
      this.leases.delete(worker);
    }
  }

  #complete(): boolean {
    const ending = this.status === 'sealed' || this.status === 'cancelling';
    if (ending && this.settled.size === this.total) this.status = 'complete';
    return this.status === 'complete';
  }
}
