import { setTimeout } from 'node:timers/promises';
import { Piecework, type QueueCounts, type RedisInput, type RequestStatus } from 'piecework';
import type {
  ErrorRow,
  ErrorsView,
  OverviewView,
  Point,
  RequestsView,
  RequestView,
  WorkersView,
} from '../shape/views.js';
import { Checks } from './checks.js';
import { OneRequest } from './one-request.js';
import { groupErrors, sum, verdictsOf } from './overview.js';
import { EACH_ROUND_MS, Part } from './part.js';
import type { Addresses, Privacy } from './private.js';
import type { OnProblem } from './problems.js';
import { RequestIndex, STEP } from './request-index.js';
import { type Chart, Samples } from './samples.js';
import { type Query, search } from './search.js';
import { turn } from './turns.js';
import { workersView } from './workers.js';

/** How long reads and changes keep trying while Redis is away, in ms: a page should rather say so. */
export const PATIENCE_MS = 5_000;
/** The history has an interval of ten seconds. */
const HISTORY_EVERY_MS = 10_000;
/** How long a page waits for a step through a short list of requests. */
const STEP_WAIT_MS = 25;
/** Most requests that are looked at closely at one time. */
const MOST_CLOSELY = 20;

/** What is read of one queue, each part at most once a round. Nothing is read unless a page shows it. */
export class QueueSource {
  readonly name: string;
  readonly pw: Piecework;
  readonly index: RequestIndex;
  readonly privacy: Privacy;
  readonly #checks: Checks;
  readonly #counts: Part<QueueCounts>;
  readonly #workers: Part<WorkersView>;
  readonly #errors: Part<readonly ErrorRow[]>;
  readonly #history: Part<readonly Point[]>;
  readonly #step: Part<void>;
  /** Why the last step failed. */
  #stepProblem: unknown;
  readonly #samples = new Samples();
  #lastHour: readonly Point[] = [];
  readonly #closely = new Map<string, OneRequest>();

  constructor(
    redis: RedisInput,
    { name, shards = 1 }: { readonly name: string; readonly shards?: number | undefined },
    privacy: Privacy,
    addresses: Pick<Addresses, 'without'>,
    onProblem: OnProblem,
  ) {
    this.name = name;
    this.privacy = privacy;
    this.pw = new Piecework({ redis, queue: name, shards, unavailableMs: PATIENCE_MS });
    const { admin } = this.pw;
    const told = (text: string) => addresses.without(text);
    this.index = new RequestIndex(admin, (id) => this.pw.request(id), name, privacy, told);
    this.#checks = new Checks(admin, addresses, onProblem);
    this.#counts = new Part(EACH_ROUND_MS, () => admin.counts());
    this.#workers = new Part(EACH_ROUND_MS, async () => workersView(await admin.workers(), told));
    this.#errors = new Part(EACH_ROUND_MS, () => this.#readErrors());
    this.#history = new Part(HISTORY_EVERY_MS, () => this.#readHistory());
    this.#step = new Part(EACH_ROUND_MS, () => this.#goOn());
  }

  async overview(): Promise<OverviewView> {
    const [counts, workers, errors, history] = await Promise.all([
      this.#counts.get(),
      this.#workers.get(),
      this.#errors.get(),
      this.#history.get(),
      this.#stepped(),
    ]);
    this.#lastHour = history;
    await turn();
    const at = Date.now();
    const summed = sum(this.index.rows, at);
    this.index.show(summed.busiest.map(({ id }) => id));
    this.#checks.perhaps(counts.open);
    const fleet = fleetOf(workers);
    const point = {
      at,
      succeeded: 0,
      failed: 0,
      retried: 0,
      running: fleet.busy,
      slots: fleet.slots,
    };
    if (this.index.state.complete) this.#samples.add({ ...point, succeeded: summed.rate });
    const { pausedUntil } = counts;
    return {
      at,
      verdicts: verdictsOf(counts, workers, summed, errors, history, at),
      open: counts.open,
      parked: counts.parked,
      ended: counts.ended,
      pausedUntil: pausedUntil ?? null,
      workers: fleet,
      rate: summed.rate,
      running: summed.running,
      nextDue: summed.nextDue,
      backlog: summed.backlog,
      ready: summed.ready,
      blocked:
        pausedUntil === undefined || summed.ready === 0
          ? summed.blocked
          : { count: summed.ready, reasons: ['queue paused'] },
      delayed: summed.delayed,
      oldest: summed.oldest,
      errors: groupErrors(errors),
      errorsRead: errors.length,
      busiest: summed.busiest,
      checks: this.#checks.last,
      index: this.index.state,
    };
  }

  /** What `overview` has read last. */
  chart(): Chart {
    return this.#lastHour.length > 1
      ? { from: 'hour', intervalMs: HISTORY_EVERY_MS, points: this.#lastHour }
      : { from: 'here', intervalMs: 1_000, points: this.#samples.points };
  }

  async requests(query: Query): Promise<RequestsView> {
    await this.#stepped();
    await turn();
    const found = search(this.index.rows, query);
    this.index.show(found.rows.map(({ id }) => id));
    return { at: Date.now(), ...found, index: this.index.state };
  }

  /** @throws NotFoundError · ExpiredError · DroppedError */
  async request(id: string): Promise<RequestView> {
    const [view, workers] = await Promise.all([this.closely(id).view(), this.#workers.get()]);
    return { ...view, slots: workers.fleet.slots };
  }

  workers(): Promise<WorkersView> {
    return this.#workers.get();
  }

  async errors(): Promise<ErrorsView> {
    return { at: Date.now(), errors: await this.#errors.get() };
  }

  /** What is read of one request while a page shows it. */
  closely(id: string): OneRequest {
    const known = this.#closely.get(id);
    if (known) {
      // The one that was not asked for longest goes first.
      this.#closely.delete(id);
      this.#closely.set(id, known);
      return known;
    }
    const one = new OneRequest(
      this.pw.request(id),
      this.name,
      this.privacy,
      (status: RequestStatus) => this.index.keep(status),
    );
    this.#closely.set(id, one);
    const [oldest] = this.#closely.keys();
    if (this.#closely.size > MOST_CLOSELY && oldest !== undefined) this.#closely.delete(oldest);
    return one;
  }

  /** Somebody asks for the checks. */
  check(): boolean {
    return this.#checks.ask();
  }

  /** Something was changed by this process: the next round shows it. */
  changed(): void {
    for (const part of [this.#counts, this.#step]) part.forget();
    for (const one of this.#closely.values()) one.changed();
  }

  /** Nobody looks: frees what was kept. */
  rest(): void {
    this.index.clear();
    this.#samples.clear();
    this.#closely.clear();
  }

  close(): Promise<void> {
    this.rest();
    return this.pw.close();
  }

  /**
   * Goes on with the list of requests. A step reads only a part of a long list, so a page does not wait for it: the list
   * is shown as it is, and what the step brings comes with the next round.
   */
  async #stepped(): Promise<void> {
    const { rows } = this.index.state;
    const step = this.#step.get();
    if (rows === 0) return step;
    if (rows <= STEP) await within(STEP_WAIT_MS, step);
    if (this.#stepProblem !== undefined) throw this.#stepProblem;
  }

  async #goOn(): Promise<void> {
    try {
      await this.index.step();
      this.#stepProblem = undefined;
    } catch (error) {
      this.#stepProblem = error;
      throw error;
    }
  }

  async #readErrors(): Promise<readonly ErrorRow[]> {
    // Workers report them some at a time.
    const errors = [...(await this.pw.admin.errors())].sort((a, b) => b.at - a.at);
    return errors.map(({ at, name, message, requestId, index, attempt, worker }) => {
      const task = this.index.row(requestId)?.task ?? '';
      const about = { queue: this.name, requestId, task };
      return {
        ...{ at, requestId, task, index, attempt, worker },
        name: name.slice(0, 200),
        message: this.privacy.message(message, about),
      };
    });
  }

  /**
   * What the workers reported in the last hour, from the first report on, without the interval that still grows. Empty
   * in a fleet of workers that report nothing.
   */
  async #readHistory(): Promise<readonly Point[]> {
    const points = await this.pw.admin.history();
    const first = points.findIndex(({ workers }) => workers > 0);
    if (first < 0) return [];
    return points.slice(first, -1).map(({ at, succeeded, failed, retried, inFlight, slots }) => ({
      ...{ at, succeeded, failed, retried, running: inFlight, slots },
    }));
  }
}

/** Waits for `work` at most so long. @throws what it throws until then */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const patience = new AbortController();
  const waited = setTimeout(ms, undefined, { signal: patience.signal });
  waited.catch(() => {});
  await Promise.race([work, waited]).finally(() => patience.abort());
}

function fleetOf({ states, total, fleet }: WorkersView): OverviewView['workers'] {
  const silent = states['silent'] ?? 0;
  return { alive: total - silent, silent, draining: states['drains'] ?? 0, ...fleet };
}
