import type { QueueCounts } from 'piecework';
import { count } from '../shape/format.js';
import type {
  BacklogBar,
  ErrorGroup,
  ErrorRow,
  OverviewView,
  Point,
  Row,
  Verdict,
  WorkersView,
} from '../shape/views.js';
import type { KeptRow } from './row.js';
import { isOverdue } from './workers.js';

/** Failed attempts of this time are a reason to look, in ms. */
const LATELY_MS = 300_000;

/** Most rows of each list of the overview. */
const MOST = { busiest: 6, errors: 6 };

/** What follows from the rows of the list alone. */
export interface Summed {
  readonly backlog: readonly BacklogBar[];
  readonly ready: number;
  readonly blocked: OverviewView['blocked'];
  readonly delayed: number;
  readonly running: number;
  readonly rate: number;
  readonly done: { readonly succeeded: number; readonly failed: number };
  readonly oldest: OverviewView['oldest'];
  readonly nextDue: number | null;
  readonly busiest: readonly Row[];
  /** Tasks of which requests wait and no worker has a handler, and these requests. */
  readonly unserved: { readonly tasks: readonly string[]; readonly ids: readonly string[] };
  /** Their ids. */
  readonly paused: readonly string[];
}

/** Of what a request can wait although sub-requests of it are ready, and how that is called. */
const BLOCKS: ReadonlyMap<string, string> = new Map([
  ['queue', 'queue paused'],
  ['worker', 'no worker'],
  ['resume', 'paused'],
  ['time', 'held back'],
  ['task', 'not served'],
]);

export function sum(rows: Iterable<KeptRow>, now = Date.now()): Summed {
  const bars = new Map<number, { -readonly [K in keyof BacklogBar]: BacklogBar[K] }>();
  const open: Row[] = [];
  let oldest: Row | undefined;
  const total = { ready: 0, delayed: 0, running: 0, rate: 0 };
  const done = { succeeded: 0, failed: 0 };
  const unserved = { tasks: new Set<string>(), ids: [] as string[] };
  const paused: string[] = [];
  let nextDue = Number.POSITIVE_INFINITY;
  let blocked = 0;
  const blocks = new Set<string>();
  for (const { row } of rows) {
    const { counts } = row;
    done.succeeded += counts.succeeded;
    done.failed += counts.failed;
    if (row.status === 'complete') continue;
    open.push(row);
    if (row.heldUntil > now) nextDue = Math.min(nextDue, row.heldUntil);
    const bar = bars.get(row.priority) ?? {
      ...{ priority: row.priority, ready: 0, delayed: 0, running: 0, requests: 0 },
    };
    bars.set(row.priority, bar);
    bar.requests += 1;
    for (const name of ['ready', 'delayed', 'running'] as const) {
      bar[name] += counts[name];
      total[name] += counts[name];
    }
    total.rate += row.rate;
    if (BLOCKS.has(row.waitingFor) && counts.ready > 0) {
      blocked += counts.ready;
      blocks.add(row.waitingFor);
    }
    if (row.waitingFor === 'resume') paused.push(row.id);
    if (row.waitingFor === 'task') {
      unserved.tasks.add(row.task || 'requests without a task');
      unserved.ids.push(row.id);
    }
    // If it is settling, it is only between two turns.
    const isStill = counts.running === 0 && row.rate < 1;
    const waits = counts.ready > 0 && isStill && row.waitingFor !== 'resume';
    if (waits && row.waitingFor !== 'time' && row.createdAt < (oldest?.createdAt ?? Infinity))
      oldest = row;
  }
  // Those that run, the busiest first; then the others, the oldest first.
  open.sort(
    (a, b) =>
      b.counts.running - a.counts.running || a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1),
  );
  return {
    backlog: [...bars.values()].sort((a, b) => a.priority - b.priority),
    ...total,
    blocked: {
      count: blocked,
      reasons: [...BLOCKS].filter(([what]) => blocks.has(what)).map(([, reason]) => reason),
    },
    rate: Number(total.rate.toPrecision(3)),
    done,
    oldest: oldest
      ? {
          id: oldest.id,
          createdAt: oldest.createdAt,
          why: oldest.waiting || 'it waits for its turn',
        }
      : null,
    nextDue: Number.isFinite(nextDue) ? nextDue : null,
    busiest: open.slice(0, MOST.busiest),
    unserved: { tasks: [...unserved.tasks].slice(0, 10), ids: unserved.ids },
    paused,
  };
}

/** The last errors by their class and task, the most frequent first. */
export function groupErrors(errors: readonly ErrorRow[]): ErrorGroup[] {
  const groups = new Map<string, { -readonly [K in keyof ErrorGroup]: ErrorGroup[K] }>();
  for (const { name, task, message, at, requestId } of errors) {
    const key = JSON.stringify([name, task]);
    const group = groups.get(key);
    if (!group) groups.set(key, { name, task, count: 1, message, lastAt: at, requestId });
    else group.count += 1;
  }
  return [...groups.values()].sort((a, b) => b.count - a.count).slice(0, MOST.errors);
}

/** Is all well? In words, the worst first. */
export function verdictsOf(
  counts: QueueCounts,
  workers: WorkersView,
  { unserved, ready, running, rate, oldest, paused }: Summed,
  errors: readonly ErrorRow[],
  history: readonly Point[],
  now = Date.now(),
): Verdict[] {
  const verdicts: Verdict[] = [];
  const add = (level: Verdict['level'], what: string, cure: string, requestId?: string) =>
    verdicts.push({ level, what, cure, ...(requestId === undefined ? {} : { requestId }) });
  const { states, total } = workers;
  const silent = states['silent'] ?? 0;
  const alive = total - silent;
  if (counts.open > 0 && alive === 0)
    add('error', 'No worker is alive, and requests are open.', 'Start workers of this queue.');
  else if (silent > 0)
    add(
      'warning',
      `${plural(silent, 'worker gives', 'workers give')} no sign of life.`,
      'See Workers. Their work is taken over when their leases end.',
    );
  if (states['stuck'])
    add(
      'warning',
      `${plural(states['stuck'], 'worker has', 'workers have')} slots held by handlers that ignore their signal.`,
      'Restart them, and make the handlers listen to their signal.',
    );
  if (states['unwell'])
    add(
      'warning',
      `${plural(states['unwell'], 'worker is', 'workers are')} not well.`,
      'See Workers for the reason.',
    );
  const [overdue, ...alsoOverdue] = workers.workers.filter(({ state }) => state === 'overdue');
  if (overdue) {
    const others =
      alsoOverdue.length > 0
        ? `; so on ${plural(alsoOverdue.length, 'other worker', 'other workers')}`
        : '';
    add(
      'warning',
      `${sentence(overdue.why.at(-1) ?? '')}${others}.`,
      'See Workers for where. A restart of that process ends it, and whatever else runs there.',
      overdue.longest.find((run) => isOverdue(run, workers.at))?.requestId,
    );
  }
  if (counts.pausedUntil !== undefined)
    add(
      'warning',
      'The queue is paused: nothing new starts.',
      'Resume the queue when you are ready.',
    );
  const { tasks, ids } = unserved;
  if (tasks.length > 0 && alive > 0)
    add(
      'warning',
      `No worker serves ${tasks.slice(0, 3).join(', ')}${tasks.length > 3 ? ' and others' : ''}: ${named(ids, 'waits', 'wait')}.`,
      `Start workers with handlers for ${tasks.length > 1 ? 'them' : 'it'}.`,
      ids[0],
    );
  if (paused.length > 0) add('ok', `${named(paused, 'is', 'are')} paused.`, '', paused[0]);
  const slots = workers.workers.reduce((sum, { concurrency }) => sum + concurrency, 0);
  if (
    ready > 0 &&
    running === 0 &&
    rate === 0 &&
    oldest &&
    now - oldest.createdAt > 60_000 &&
    alive > 0 &&
    counts.pausedUntil === undefined &&
    tasks.length === 0
  )
    add(
      'warning',
      'Work is ready, workers are alive, and nothing runs.',
      'Run the checks: they say what is wrong.',
    );
  const busy = workers.workers.reduce((sum, worker) => sum + worker.running, 0);
  if (slots > 0 && busy >= slots * 0.98 && ready > slots * 20)
    add('ok', 'Every slot is busy; more workers would make it quicker.', '');
  const isLate = ({ at }: { readonly at: number }) => now - at < LATELY_MS;
  const listed = errors.filter(isLate).length;
  const reported = history
    .filter(isLate)
    .reduce((n, { failed, retried }) => n + failed + retried, 0);
  // The list has the last ones only. The history has all that the workers have reported.
  const lately = Math.max(listed, reported);
  const [most] = groupErrors(errors);
  if (lately >= 20 && most) {
    const where = most.task === '' ? '' : ` in ${most.task}`;
    add(
      'warning',
      `${lately === errors.length ? 'At least ' : ''}${count(lately)} attempts failed in the last five minutes, most of the latest by ${most.name}${where}.`,
      'See Errors.',
    );
  }
  const rank = { error: 0, warning: 1, ok: 2 };
  return verdicts.sort((a, b) => rank[a.level] - rank[b.level]);
}

/** 'a waits', 'a and 2 other requests wait'. */
function named([first, ...others]: readonly string[], one: string, many: string): string {
  if (others.length === 0) return `${first} ${one}`;
  return `${first} and ${plural(others.length, 'other request', 'other requests')} ${many}`;
}

function plural(n: number, one: string, many: string): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

const sentence = (text: string) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
