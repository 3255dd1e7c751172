import type { Row } from '@piecework/views';
import {
  type Choice,
  type Data,
  type DrawnOverview,
  type DrawnRequest,
  FIRST_CHOICE,
  NO_DATA,
} from '../../packages/cli/dist/top/state.js';
import { EVIL } from './hidden.js';

/*
 * What `piecework top` might have read, for tests of what it draws.
 */

export const NOW = Date.UTC(2026, 10, 24, 12);

const COUNTS = {
  ready: 0,
  running: 0,
  delayed: 0,
  succeeded: 0,
  failed: 0,
  cancelled: 0,
  total: 0,
};

export function rowOf(
  id: string,
  { counts, ...row }: Partial<Omit<Row, 'counts'>> & { counts?: Partial<Row['counts']> } = {},
): Row {
  const known = { ...COUNTS, ...counts };
  const total = Object.values({ ...known, total: 0 }).reduce((sum, n) => sum + n, 0);
  return {
    ...{
      id,
      task: 'mail',
      status: 'sealed',
      outcome: '',
      endReason: '',
      waitingFor: '',
      why: 'it waits for its turn',
    },
    ...{ generation: NOW - 60_000, priority: 50, limit: null, createdAt: NOW - 60_000 },
    ...{
      completedAt: 0,
      heldUntil: 0,
      deadline: 0,
      rate: 0,
      etaMs: null,
      metadata: '',
      ahead: 0,
    },
    ...row,
    counts: { ...known, total },
  };
}

export const overviewOf = (seen: Partial<DrawnOverview> = {}): DrawnOverview => ({
  ...{ at: NOW, verdicts: [], open: 0, parked: 0, pausedUntil: null, rate: 0, running: 0 },
  ended: { succeeded: 0, failed: 0, cancelled: 0 },
  workers: { alive: 0, silent: 0, draining: 0, slots: 0, busy: 0, stuck: 0 },
  ...{
    backlog: [],
    ready: 0,
    blocked: { count: 0, reasons: [] },
    delayed: 0,
    oldest: null,
    nextDue: null,
    errors: [],
    errorsRead: 0,
    busiest: [],
    checks: null,
  },
  chart: { from: 'hour', intervalMs: 10_000, points: [] },
  index: { rows: 0, complete: true, truncated: false, ageMs: 0 },
  ...seen,
});

/** Data of a queue with these requests. */
export function dataOf(rows: readonly Row[], more: Partial<Data> = {}): Data {
  const requests = {
    ...{ at: NOW, rows, matches: rows.length, page: 1, pages: 1, states: { open: rows.length } },
    index: { rows: rows.length, complete: true, truncated: false, ageMs: 0 },
  };
  return { ...NO_DATA, answeredAt: NOW, overview: overviewOf(), requests, ...more };
}

/** A busy queue, with something of everything. */
export function busyData(): Data {
  const rows = Array.from({ length: 60 }, (_, i) =>
    rowOf(`request-with-a-long-name-${i}`, {
      counts: { succeeded: 1_234_567, failed: i, running: 8, ready: 90_000 },
      ...{ rate: 123.4, etaMs: 3_723_000, limit: 1_000_000, metadata: '{"team":"growth"}' },
    }),
  );
  const points = Array.from({ length: 360 }, (_, i) => ({
    ...{ at: NOW - (360 - i) * 10_000, succeeded: i, failed: 1, retried: 0 },
    ...{ running: i % 20, slots: 20 },
  }));
  const error = { name: 'TypeError', task: 'mail', message: 'no address', requestId: 'r' };
  const request: DrawnRequest = {
    at: NOW,
    row: rows[3] as Row,
    cost: { handlerMs: 90_000, attempts: 3, usage: { tokens: 12 } },
    running: Array.from({ length: 30 }, (_, index) => ({
      ...{ index, worker: `host-${index % 3}-abcdefgh`, forMs: 90_000, attempt: 2, progress: 40 },
    })),
    failures: [
      { name: 'TypeError', count: 2, index: 7, message: 'no address' },
      {
        name: 'BusyError',
        count: 1,
        index: 9,
        message: 'the server is busy',
      },
    ],
    failuresRead: 3,
    chart: { from: 'here', intervalMs: 1_000, points: points.slice(0, 20) },
    options: {} as DrawnRequest['options'],
    generations: [],
    slots: 20,
  };
  const worker = {
    ...{ id: 'host-1-abcdefgh', host: 'host', pid: 1, state: 'silent' as const, why: ['no sign'] },
    ...{
      concurrency: 10,
      running: 3,
      leftovers: 0,
      tasks: null,
      startedAt: NOW - 1e7,
      seenAt: NOW,
    },
    longest: [
      {
        ...{ requestId: 'r', index: 3, attempt: 1, startedAt: NOW - 5_000, medianMs: null },
        isOverdue: false,
      },
    ],
    mates: 0,
    ...{ eventLoopDelayMs: 1, rssBytes: 1e8 },
  };
  return dataOf(rows, {
    overview: overviewOf({
      verdicts: [
        { level: 'error', what: 'No worker is alive.', cure: 'Start workers of this queue.' },
        {
          level: 'warning',
          what: '30 attempts failed.',
          cure: 'See Errors for what they have in common.',
        },
        { level: 'ok', what: '1 request is paused.', cure: '' },
      ],
      ...{ open: 60, rate: 123.4, errors: [{ ...error, count: 12, lastAt: NOW }] },
      workers: { alive: 2, silent: 1, draining: 0, slots: 20, busy: 8, stuck: 0 },
      oldest: { id: 'the-oldest', createdAt: NOW - 1e6, why: 'it waits for its turn' },
      chart: { from: 'hour', intervalMs: 10_000, points },
      checks: {
        at: NOW,
        busy: false,
        findings: [{ level: 'warning', what: 'no maxmemory', cure: 'set it' }],
      },
    }),
    request,
    workers: {
      ...{ at: NOW, workers: [worker], total: 1, states: { silent: 1 } },
      fleet: { slots: 0, busy: 0, stuck: 0 },
    },
    errors: { at: NOW, errors: [{ ...error, at: NOW, index: 3, attempt: 1, worker: worker.id }] },
  });
}

export const choiceOf = (choice: Partial<Choice> = {}): Choice => ({ ...FIRST_CHOICE, ...choice });

/** The same data, every text of which does all that a text can do to a terminal. */
export function hostile<T>(value: T): T {
  const evil = `${EVIL}\u0000\t界`;
  if (typeof value === 'string') return (value + evil) as T;
  if (Array.isArray(value)) return value.map(hostile) as T;
  if (value === null || typeof value !== 'object') return value;
  const ours = ['level', 'kind', 'from'];
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, ours.includes(key) ? one : hostile(one)]),
  ) as T;
}
