import type { AttemptEnd, Meter, TaskMeter } from 'piecework';
import { workerDefinitions as defined } from '../definitions/worker-definitions.js';
import { BoundedNames } from './bounded-names.js';
import { Distribution } from './distribution.js';

/** Most tasks, and most classes of errors, that have names of their own in one process. */
const TASKS = 50;
const ERRORS = 30;
/** Most names of what handlers use. */
const USAGES = 20;
/** Names as `context.usage` takes them. */
const USAGE = /^[A-Za-z0-9_.:-]{1,128}$/;
/** Names as `defineTask` takes them. */
const TASK = /^[A-Za-z0-9_.:-]{0,128}$/;
/** Names of classes, also with a module in front. */
const CLASS = /^[A-Za-z_$][\w$.:-]{0,63}$/;

type Outcome = Parameters<TaskMeter['completed']>[0];

/** What was measured of one task. */
export class TaskTally implements TaskMeter {
  readonly waiting = new Distribution(defined.waitingTime.buckets);
  readonly handlers = new Distribution(defined.handlerTime.buckets);
  readonly ends: Record<AttemptEnd, number> = { succeeded: 0, failed: 0, retried: 0, returned: 0 };
  /** By the class of the error. */
  readonly failures = new Map<string, number>();
  readonly requests = new Map<Outcome, Distribution>();
  /** By name. */
  readonly usage = new Map<string, number>();
  readonly #errors: BoundedNames;
  readonly #usages: BoundedNames;

  constructor({ errorNames, usageNames }: Names) {
    this.#errors = errorNames;
    this.#usages = usageNames;
  }

  started(waitedMs: number): void {
    this.waiting.observe(waitedMs / 1_000);
  }

  ended(ranMs: number, end: AttemptEnd, error?: string): void {
    this.ends[end] += 1;
    if (end === 'returned') return;
    this.handlers.observe(ranMs / 1_000);
    if (error === undefined) return;
    const name = this.#errors.of(error);
    this.failures.set(name, (this.failures.get(name) ?? 0) + 1);
  }

  used(amounts: ReadonlyMap<string, number>): void {
    for (const [given, amount] of amounts) {
      const name = this.#usages.of(given);
      this.usage.set(name, (this.usage.get(name) ?? 0) + amount);
    }
  }

  completed(outcome: Outcome, tookMs: number): void {
    let requests = this.requests.get(outcome);
    if (!requests) {
      requests = new Distribution(defined.requestTime.buckets);
      this.requests.set(outcome, requests);
    }
    requests.observe(tookMs / 1_000);
  }
}

/** What the workers of one queue measured in this process. */
export class QueueTally implements Meter {
  readonly tasks = new Map<string, TaskTally>();
  readonly settles = new Distribution(defined.settleTime.buckets);
  stalls = 0;
  leasesLost = 0;
  reclaimed = 0;
  errors = 0;
  reconnects = 0;
  readonly #names: Names;

  constructor(names: Names) {
    this.#names = names;
  }

  task(name: string): TaskTally {
    const label = this.#names.taskNames.of(name);
    const known = this.tasks.get(label);
    if (known) return known;
    const tally = new TaskTally(this.#names);
    this.tasks.set(label, tally);
    return tally;
  }

  settled(tookMs: number): void {
    this.settles.observe(tookMs / 1_000);
  }

  stalled(calls: number): void {
    this.stalls += calls;
  }
}

/** The names that one process has given. */
export interface Names {
  readonly taskNames: BoundedNames;
  readonly errorNames: BoundedNames;
  readonly usageNames: BoundedNames;
}

export const freshNames = (): Names => ({
  taskNames: new BoundedNames(TASKS, TASK),
  errorNames: new BoundedNames(ERRORS, CLASS),
  usageNames: new BoundedNames(USAGES, USAGE),
});
