import { leaseMarginMs } from '@piecework/protocol';
import { reportsOf, unsentOf } from '../handler/checkpoints.js';
import type { RenewalRow } from '../lease/renewal.js';
import type { WorkerContext } from '../shared/worker-context.js';
import type { Attempts } from './attempts.js';
import type { SessionCalls } from './session-calls.js';

interface Hooks {
  /** The permits are gone: others may have what runs. */
  readonly onLost: (why: string) => void;
  readonly onCancelling: () => void;
}

/**
 * The permits of one session and the lease under which they were granted. The lease is believed only as long as
 * the clock of this process allows: from the moment when the call was sent that granted or renewed it.
 */
export class SessionLease {
  readonly #context: WorkerContext;
  readonly #calls: SessionCalls;
  readonly #attempts: Attempts;
  readonly #row: RenewalRow;
  readonly #hooks: Hooks;
  #permits = 0;
  /** Number that the server gave to the grant of these permits. */
  #grantNo = '';
  /** As performance.now(), as all times here. */
  #until = 0;
  #renewedAt = 0;
  #comparedAt = 0;
  #renewing = false;
  /** Counts the replies that contained the number of permits. */
  #replies = 0;
  /** Whether the server may count permits that nothing here uses, and that are to be given back. */
  #unused = false;
  /** Whether the agenda knows when a lease of this worker would end. */
  #tendScheduled = false;

  constructor(
    context: WorkerContext,
    calls: SessionCalls,
    attempts: Attempts,
    row: RenewalRow,
    hooks: Hooks,
  ) {
    this.#context = context;
    this.#calls = calls;
    this.#attempts = attempts;
    this.#row = row;
    this.#hooks = hooks;
  }

  get permits(): number {
    return this.#permits;
  }

  get grantNo(): string {
    return this.#grantNo;
  }

  get unused(): boolean {
    return this.#unused;
  }

  /** The next settle gives unused permits back. */
  returned(): void {
    this.#unused = false;
  }

  /** An enter or a settle answered how many permits there are. */
  granted(permits: number): void {
    this.#replies += 1;
    this.#permits = permits;
  }

  /** An enter answered a grant of this number. Permits of another grant are lost. */
  checkGrant(grantNo: string): void {
    if (this.#permits > 0 && grantNo !== this.#grantNo)
      this.#hooks.onLost('the lease was withdrawn');
    this.#grantNo = grantNo;
  }

  /** The lease is counted from `sentAt`, when the call was sent that extended it. */
  extend(sentAt: number): void {
    this.#until = Math.max(this.#until, sentAt + this.#context.leaseMs);
    this.#renewedAt = sentAt;
  }

  /** The permits are lost. */
  lose(): void {
    // The server may count them all the same, because an enter that was answered late granted them after that.
    // Unused ones are given back. Beside a handler that still runs, giving back would free a permit that it uses.
    this.#unused = this.#permits > 0 && this.#attempts.size === 0;
    this.#permits = 0;
  }

  end(): void {
    this.#permits = 0;
  }

  /** Has the renewal thread renew as long as there are permits; called often. */
  account(): void {
    this.#row.set(this.#permits > 0);
  }

  /**
   * Stops believing in the lease by this process's own clock, before the server does. The heartbeat calls it while
   * handlers run. It is also called before each handler starts: a process that froze while it had a reply starts
   * nothing from it after its lease has ended. Returns the time of the check, as performance.now().
   */
  fence(): number {
    const { leaseMs } = this.#context;
    const marginMs = leaseMarginMs(leaseMs);
    const now = performance.now();
    if (this.#permits === 0 || now < this.#until - marginMs) return now;
    // A handler may have blocked this loop while the renewal thread renewed.
    this.#until = Math.max(this.#until, this.#row.askedAt() + leaseMs);
    // cure: self-fencing
    if (now >= this.#until - marginMs) this.#hooks.onLost('the lease ended');
    return now;
  }

  /** Extends the lease if no call did for `everyMs`, and sends what handlers reported. */
  async renew(everyMs: number): Promise<void> {
    if (this.#permits === 0 || this.#renewing) return;
    const sentAt = performance.now();
    const checkpoints = unsentOf(this.#attempts.running());
    const progress = this.#attempts.takeProgress();
    const numbers = progress.flatMap(({ attempt, n }) => [attempt.index, n]);
    const reports = [...numbers, ...reportsOf(checkpoints)];
    if (reports.length === 0 && sentAt - this.#renewedAt < everyMs) return;
    const replies = this.#replies;
    this.#renewing = true;
    const { verdict } = await this.#calls
      .renew(reports)
      .catch((error: unknown) => {
        for (const { attempt, n } of progress) attempt.putBackProgress(n);
        throw error;
      })
      .finally(() => {
        this.#renewing = false;
      });
    this.#context.answeredAt = performance.now();
    const granted = verdict === 'ok' || verdict === 'cancelling';
    if (granted) for (const { checkpoint, text } of checkpoints) checkpoint.kept(text);
    if (this.#permits === 0) return;
    if (verdict === 'cancelling') this.#hooks.onCancelling();
    // A settle or enter that was answered meanwhile is newer than this reply, unless the request is gone.
    if (replies !== this.#replies && verdict !== 'gone') return;
    if (granted) this.extend(sentAt);
    else this.#hooks.onLost(verdict === 'gone' ? 'the request is gone' : 'the lease was withdrawn');
  }

  /**
   * The first tend of a young request comes when its intent is old enough, for the sake of its producer. If this
   * lease ends (`ends`, server time) before that, a tend is scheduled for its end.
   */
  scheduleFirstTend(ends: number, firstTendAt: number): void {
    if (this.#permits === 0 || this.#tendScheduled || ends > firstTendAt) return;
    this.#tendScheduled = true;
    this.#calls.scheduleTend(ends);
  }

  /** Whether it is time to compare what runs here with what the server believes; counts as done from now on. */
  isComparisonDue(everyMs: number): boolean {
    const now = performance.now();
    if (this.#permits === 0 || now - this.#comparedAt < everyMs) return false;
    this.#comparedAt = now;
    return true;
  }

  /** The first comparison is due a while after the session began to work. */
  compareFrom(now: number): void {
    this.#comparedAt = now;
  }
}
