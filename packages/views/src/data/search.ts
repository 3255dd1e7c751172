import { doneOf } from '../shape/format.js';
import type { Row } from '../shape/views.js';
import type { KeptRow } from './row.js';

/** What a page asks of the list of requests. */
export interface Query {
  readonly text: string;
  readonly state: State;
  readonly priorityFrom: number;
  readonly priorityTo: number;
  /** Only requests that are at least, or at most, so old. 0: any. */
  readonly olderThanMs: number;
  readonly youngerThanMs: number;
  readonly sort: Sort;
  readonly descending: boolean;
  readonly page: number;
  readonly size: number;
}

export const STATES = [
  ...(['any', 'open', 'running', 'waiting', 'paused', 'failing'] as const),
  ...(['succeeded', 'failed', 'cancelled'] as const),
];
export type State = (typeof STATES)[number];

export const SORTS = [
  ...(['created', 'id', 'task', 'priority', 'progress', 'rate', 'left'] as const),
  ...(['failed', 'total', 'running'] as const),
];
export type Sort = (typeof SORTS)[number];

/** Whether a request is in this state, as people call it. */
const IS: Readonly<Record<State, (row: Row) => boolean>> = {
  any: () => true,
  open: ({ status }) => status !== 'complete',
  running: ({ counts }) => counts.running > 0,
  waiting: ({ status, counts }) => status !== 'complete' && counts.running === 0,
  paused: ({ waitingFor }) => waitingFor === 'resume',
  failing: ({ status, counts }) => status !== 'complete' && counts.failed > 0,
  succeeded: ({ outcome }) => outcome === 'succeeded',
  failed: ({ outcome }) => outcome === 'failed',
  cancelled: ({ outcome }) => outcome === 'cancelled',
};

const KEY: Readonly<Record<Sort, (row: Row) => number | string>> = {
  created: (row) => row.createdAt,
  id: (row) => row.id,
  task: (row) => row.task,
  priority: (row) => row.priority,
  progress: ({ counts }) => (counts.total > 0 ? doneOf(counts) / counts.total : 0),
  rate: (row) => row.rate,
  // What has no end in sight comes last.
  left: (row) => (row.status === 'complete' ? -1 : (row.etaMs ?? Number.MAX_SAFE_INTEGER)),
  failed: (row) => row.counts.failed,
  total: (row) => row.counts.total,
  running: (row) => row.counts.running,
};

export interface Found {
  readonly rows: readonly Row[];
  readonly matches: number;
  readonly page: number;
  readonly pages: number;
  /** How many of all requests are in each state. */
  readonly states: Readonly<Record<string, number>>;
}

/** Searches, filters, sorts and pages: one pass over the rows, then a sort of those that match. */
export function search(all: Iterable<KeptRow>, query: Query, now = Date.now()): Found {
  const words = query.text.toLowerCase().split(/\s+/).filter(Boolean);
  const states = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number>;
  const found: Row[] = [];
  for (const { row, searched } of all) {
    for (const state of STATES) if (IS[state](row)) states[state] += 1;
    const age = now - row.createdAt;
    const matches =
      IS[query.state](row) &&
      row.priority >= query.priorityFrom &&
      row.priority <= query.priorityTo &&
      age >= query.olderThanMs &&
      (query.youngerThanMs === 0 || age <= query.youngerThanMs) &&
      words.every((word) => searched.includes(word));
    if (matches) found.push(row);
  }
  const key = KEY[query.sort];
  const sign = query.descending ? -1 : 1;
  // Equal ones by id, so that rows keep their place.
  found.sort((a, b) => sign * compare(key(a), key(b)) || compare(a.id, b.id));
  const pages = Math.max(1, Math.ceil(found.length / query.size));
  const page = Math.min(query.page, pages);
  const rows = found.slice((page - 1) * query.size, page * query.size);
  return { rows, matches: found.length, page, pages, states };
}

function compare(a: number | string, b: number | string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
