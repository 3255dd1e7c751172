import { FailureKinds } from '@piecework/notifier';
import type { RequestDetails, RequestHandle, RequestStatus, WaitOptions } from 'piecework';
import type {
  FailureDetail,
  FailureGroupView,
  RequestView,
  ResultRow,
  ResultsPage,
  Row,
  RunningRow,
} from '../shape/views.js';
import { EACH_ROUND_MS, Part } from './part.js';
import type { Privacy } from './private.js';
import { type Chart, Samples } from './samples.js';

/** Bounds of what is read of one request. */
const MOST = { running: 100, failures: 1_000, groups: 50, results: 25 };
/** Failures are read again after this time, and only if there are more than before. */
const FAILURES_EVERY_MS = 4_000;

/** One request, while a page shows it. */
export class OneRequest {
  readonly #handle: RequestHandle;
  readonly #queue: string;
  readonly #privacy: Privacy;
  readonly #status: Part<{ readonly row: Row; readonly details: RequestDetails }>;
  readonly #running: Part<readonly RunningRow[]>;
  readonly #failures: Part<void>;
  readonly #samples = new Samples();
  #task = '';
  /** Whether anything ran when it was read last. */
  #runs = false;
  #groups: readonly FailureGroupView[] = [];
  #failuresRead = 0;
  /** The state of the books when the failures were read. */
  #readAt = '';

  /** @param keep makes a row of a status, and keeps it for the list */
  constructor(
    handle: RequestHandle,
    queue: string,
    privacy: Privacy,
    keep: (status: RequestStatus) => Row,
  ) {
    this.#handle = handle;
    this.#queue = queue;
    this.#privacy = privacy;
    this.#status = new Part(EACH_ROUND_MS, async () => {
      const details = await handle.status();
      return { row: keep(details), details };
    });
    this.#running = new Part(EACH_ROUND_MS, () => this.#readRunning());
    this.#failures = new Part(FAILURES_EVERY_MS, () => this.#readFailures());
  }

  /** @throws NotFoundError · ExpiredError · DroppedError */
  async view(): Promise<Omit<RequestView, 'slots'>> {
    // Asked for together, so that both are of about one moment.
    const list = this.#runs ? this.#running.get() : undefined;
    list?.catch(() => {});
    const { row, details } = await this.#status.get();
    this.#runs = row.counts.running > 0;
    this.#task = row.task;
    const { counts, rate } = row;
    const books = `${row.generation} ${counts.failed}`;
    if (counts.failed === 0) this.#groups = [];
    const isNews = counts.failed > 0 && books !== this.#readAt;
    const [running] = await Promise.all([
      this.#runs ? (list ?? this.#running.get()) : [],
      isNews ? this.#failures.get() : undefined,
    ]);
    if (isNews) this.#readAt = books;
    const at = Date.now();
    if (row.status !== 'complete')
      this.#samples.add({
        ...{ at, succeeded: rate, failed: 0, retried: 0 },
        ...{ running: counts.running, slots: row.limit },
      });
    return {
      at,
      row,
      cost: details.cost,
      options: details.options,
      generations: details.generations,
      running,
      failures: this.#groups,
      failuresRead: this.#failuresRead,
    };
  }

  chart(): Chart {
    return { from: 'here', intervalMs: 1_000, points: this.#samples.points };
  }

  changed(): void {
    for (const part of [this.#status, this.#running, this.#failures]) part.forget();
  }

  /** What has ended by now, by page, in the order of the ends, failures among it. */
  async results(cursor: string, bounds: WaitOptions): Promise<ResultsPage> {
    const from = cursor === '' ? {} : { cursor };
    const rows: ResultRow[] = [];
    let last = cursor;
    const results = this.#handle.results({ ...from, ...bounds, failed: true, wait: false });
    for await (const item of results) {
      last = item.cursor;
      const value = item.status === 'succeeded' ? item.value : item.error.message;
      rows.push({
        index: item.index,
        status: item.status,
        value: this.#privacy.value(value, this.#about('result')),
        durationMs: item.timing?.durationMs ?? null,
        worker: item.timing?.worker ?? '',
      });
      if (rows.length >= MOST.results) break;
    }
    return { rows, cursor: results.outcome ? '' : last };
  }

  /** One failure with its stack and payload. */
  async failure(index: number, bounds: WaitOptions): Promise<FailureDetail | undefined> {
    for await (const failure of this.#handle.failures({ ...bounds, indexes: [index] })) {
      const { error, attempts, crashes, payload } = failure;
      const about = this.#about('error');
      return {
        index,
        name: error.name.slice(0, 200),
        message: this.#privacy.message(error.message, about),
        stack: this.#privacy.stack(error.stack ?? '', about),
        attempts,
        crashes,
        worker: error.worker ?? '',
        payload: this.#privacy.value(payload, this.#about('payload')),
      };
    }
    return undefined;
  }

  #about<Kind extends string>(kind: Kind) {
    return { kind, queue: this.#queue, requestId: this.#handle.id, task: this.#task };
  }

  async #readRunning(): Promise<readonly RunningRow[]> {
    const running = await this.#handle.running({ limit: MOST.running });
    const started = running.filter(({ readAhead }) => !readAhead);
    return started.map(({ index, worker, forMs, attempt, progress }) => ({
      ...{ index, worker, forMs, attempt },
      progress: progress ?? null,
    }));
  }

  /** The first failures by the name of their error: as many as can be read at a bounded cost. */
  async #readFailures(): Promise<void> {
    const kinds = new FailureKinds();
    let read = 0;
    for await (const { index, error } of this.#handle.failures({ payload: false })) {
      kinds.note(index, error);
      read += 1;
      if (read >= MOST.failures) break;
    }
    this.#failuresRead = read;
    this.#groups = kinds.sorted.slice(0, MOST.groups).map(({ name, message, count, indexes }) => ({
      name: name.slice(0, 200),
      count,
      index: indexes[0] ?? 0,
      message: this.#privacy.message(message, this.#about('error')),
    }));
  }
}
