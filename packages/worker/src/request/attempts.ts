import {
  type AttemptPolicy,
  type Entry,
  LEAST_SLOW_MS,
  type LongestRun,
  type Outcome,
  sendGathered,
  slowAfterMs,
} from '@piecework/protocol';
import { Attempt } from '../handler/attempt.js';
import { RetryPolicy } from '../handler/retry-policy.js';
import type { RenewalRow } from '../lease/renewal.js';
import type { RunLog } from '../report/run-log.js';
import type { Slots } from '../shared/slots.js';
import type { Usual } from '../shared/usual.js';
import type { WorkerContext } from '../shared/worker-context.js';

/** Most progress reports in one call: Lua unpacks no more than some thousand arguments. */
const REPORTS = 1_000;

/**
 * An attempt has ended, or its time is up. `underLease`: whether the permits under which it was read are still
 * believed. Without an outcome there is nothing to settle.
 */
type OnEnd = (attempt: Attempt, outcome: Outcome | undefined, underLease: boolean) => void;

/** What every attempt of a session is given. */
type Parts = ConstructorParameters<typeof Attempt>[4];

/**
 * The handlers that a session runs. One whose lease was lost becomes a zombie: it was asked to stop, has no permit,
 * and keeps its slot until it ends. So does a handler whose time is up or that was abandoned, but the session
 * forgets it: its outcome no longer counts.
 */
export class Attempts {
  readonly #context: WorkerContext;
  readonly #requestId: string;
  readonly #slots: Slots;
  readonly #row: RenewalRow;
  readonly #usual: Usual;
  readonly #log: RunLog;
  readonly #parts: Parts;
  readonly #onEnded: OnEnd;
  /** By entry, in the order in which they were started. */
  readonly #running = new Map<string, Attempt>();
  readonly #zombies = new Set<Attempt>();
  #task = '';
  #cancelled = false;
  #policy: RetryPolicy;

  constructor(
    context: WorkerContext,
    session: {
      readonly requestId: string;
      readonly slots: Slots;
      readonly row: RenewalRow;
      readonly usual: Usual;
      readonly log: RunLog;
      readonly holds: Parts['holds'];
      readonly onEnd: OnEnd;
    },
  ) {
    this.#context = context;
    this.#requestId = session.requestId;
    this.#slots = session.slots;
    this.#row = session.row;
    this.#usual = session.usual;
    this.#log = session.log;
    this.#parts = { logger: context.handlerLogger, holds: session.holds };
    this.#onEnded = session.onEnd;
    this.#policy = new RetryPolicy(context, 1, {});
  }

  get task(): string {
    return this.#task;
  }

  /** How many run under permits. */
  get runningCount(): number {
    return this.#running.size;
  }

  get zombieCount(): number {
    return this.#zombies.size;
  }

  /** How many run, with or without a permit. */
  get size(): number {
    return this.#running.size + this.#zombies.size;
  }

  running(): MapIterator<Attempt> {
    return this.#running.values();
  }

  runs(entry: string): boolean {
    return this.#running.has(entry);
  }

  /** The entries of all that run, with or without a permit. */
  *entries(): IterableIterator<string> {
    yield* this.#running.keys();
    for (const { entry } of this.#zombies) yield entry;
  }

  /** Attempts that start from now on are of this task, under this policy. */
  setTerms(task: string, attempts: number, policy: AttemptPolicy): void {
    this.#task = task;
    this.#policy = new RetryPolicy(this.#context, attempts, policy, task);
  }

  /** Whether no attempt follows this failure, which was that of attempt number `attempt`. */
  isFinal(attempt: number, { delayMs }: { readonly delayMs: number }): boolean {
    return this.#policy.isFinal(attempt, delayMs);
  }

  /** `now`: performance.now(), as the last check of the lease read it. */
  start(entry: Entry, now: number): void {
    const handler = this.#context.handlers.for(this.#task);
    if (!handler) throw new Error(`no handler for task ${this.#task}`);
    const attempt = new Attempt(this.#requestId, entry, now, this.#policy, this.#parts);
    this.#running.set(entry.entry, attempt);
    this.#context.running += 1;
    if (this.#policy.timeoutMs > 0) this.#row.runsFor(this.#policy.timeoutMs);
    this.#log.started(attempt);
    // cure: what was called before a handler that blocks is sent
    sendGathered();
    attempt.run(handler, entry.payload, this.#onEnd, this.#onTimeout);
  }

  /** Whether its request is being cancelled. */
  get cancelled(): boolean {
    return this.#cancelled;
  }

  /** Asks all to stop. What succeeds all the same counts; everything else is given back, and cancelled. */
  cancel(): void {
    this.#cancelled = true;
    for (const attempt of this.#running.values()) attempt.abort('lost', 'the request is cancelled');
  }

  /** Makes all that run zombies, as their lease is lost. */
  lose(why: string): void {
    for (const attempt of this.#running.values()) {
      attempt.abort('lost', why);
      this.#zombies.add(attempt);
    }
    this.#running.clear();
  }

  /** Aborts all handlers and forgets them; each keeps its slot until it has ended. Resolves when all have. */
  abandon(why: string): Promise<unknown> {
    const left = [...this.#running.values(), ...this.#zombies];
    for (const attempt of left) {
      attempt.abort('abandoned', why);
      attempt.notify('returned');
      this.#keepSlot(attempt);
    }
    this.#running.clear();
    this.#zombies.clear();
    return Promise.all(left.map(({ ended }) => ended));
  }

  /** What handlers reported since the last call. */
  takeProgress(): { readonly attempt: Attempt; readonly n: number }[] {
    const reports: { attempt: Attempt; n: number }[] = [];
    for (const attempt of this.#running.values()) {
      if (reports.length >= REPORTS) break;
      const n = attempt.takeProgress();
      if (n !== undefined) reports.push({ attempt, n });
    }
    return reports;
  }

  /** Start of the handler that has run longest, as performance.now(); Infinity: none runs. */
  get oldest(): number {
    const [first] = this.#running.values();
    return first?.startedAt ?? Number.POSITIVE_INFINITY;
  }

  /** The same for the registry. */
  get longest(): LongestRun | undefined {
    const [first] = this.#running.values();
    if (!first) return undefined;
    const { index, attempt, startedAt } = first;
    const { medianMs } = this.#usual;
    const median = medianMs === undefined ? {} : { medianMs: Math.round(medianMs) };
    const begun = Math.round(Date.now() - (performance.now() - startedAt));
    return { requestId: this.#requestId, index, attempt, startedAt: begun, ...median };
  }

  /** Logs the handlers that have run far longer than usual, each once. */
  noteSlow(): void {
    const { slowMs } = this.#context;
    const now = performance.now();
    // Usually none has, and that is known without the median.
    if (now - this.oldest < (slowMs ?? LEAST_SLOW_MS)) return;
    const { medianMs } = this.#usual;
    const afterMs = slowMs ?? slowAfterMs(medianMs);
    for (const attempt of this.#running.values()) {
      if (now - attempt.startedAt < afterMs) return;
      // cure: a slow handler is logged once
      if (!attempt.saidSlow) this.#log.slow(attempt, medianMs);
      attempt.saidSlow = true;
    }
  }

  readonly #onEnd = (attempt: Attempt, outcome: Outcome | undefined): void => {
    this.#context.running -= 1;
    const underLease = this.#running.get(attempt.entry) === attempt;
    if (underLease) this.#running.delete(attempt.entry);
    if (underLease || this.#zombies.delete(attempt)) this.#onEnded(attempt, outcome, underLease);
    else this.#context.isolation.check();
  };

  /** The time of the attempt is up: its permit is free now, its slot when the handler has ended. */
  readonly #onTimeout = (attempt: Attempt, outcome: Outcome): void => {
    if (this.#running.get(attempt.entry) !== attempt) return;
    this.#log.overTime(attempt);
    this.#running.delete(attempt.entry);
    this.#keepSlot(attempt);
    this.#onEnded(attempt, outcome, true);
  };

  /** A handler that was asked to stop has a slot until it has ended. */
  #keepSlot(attempt: Attempt): void {
    this.#slots.take(1);
    void attempt.ended.then(() => this.#slots.release(1));
    // cure: a handler that does not stop is seen
    this.#context.leftovers.note(attempt.ended, () => this.#log.continues(attempt));
  }
}
