import type { QueueCounts, WaitingFor } from 'piecework';
import { count, plural, WAIT_WORDS } from '../shape/format.js';
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
import { overdueWords } from './workers.js';

/** As many errors as the list has at most. */
const MOST_LISTED = 100;
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
  /** Of how many slots the limits of all requests let use be made, and which requests could use more without theirs. */
  readonly usable: { readonly slots: number; readonly limited: readonly string[] };
}

/** Of what a request can wait although sub-requests of it are ready. The order is that of the reasons shown. */
const BLOCKS: readonly WaitingFor[] = ['queue', 'worker', 'resume', 'time', 'task', 'memory'];

export function sum(rows: Iterable<KeptRow>, now = Date.now()): Summed {
  const bars = new Map<number, { -readonly [K in keyof BacklogBar]: BacklogBar[K] }>();
  const open: Row[] = [];
  let oldest: Row | undefined;
  const total = { ready: 0, delayed: 0, running: 0, rate: 0 };
  const done = { succeeded: 0, failed: 0 };
  const unserved = { tasks: new Set<string>(), ids: [] as string[] };
  const paused: string[] = [];
  const usable = { slots: 0, limited: [] as string[] };
  let nextDue = Number.POSITIVE_INFINITY;
  let blocked = 0;
  const blocks = new Set<WaitingFor>();
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
    const block = BLOCKS.find((one) => one === row.waitingFor);
    const eager = counts.running + (block ? 0 : counts.ready);
    usable.slots += Math.min(eager, row.limit ?? eager);
    if (row.limit !== null && eager > row.limit) usable.limited.push(row.id);
    if (block && counts.ready > 0) {
      blocked += counts.ready;
      blocks.add(block);
    }
    if (row.waitingFor === 'resume') paused.push(row.id);
    if (row.waitingFor === 'task') {
      unserved.tasks.add(row.task || 'requests without a task');
      unserved.ids.push(row.id);
    }
    // If it is settling, it is only between two turns.
    const isStill = counts.running === 0 && row.rate < 1;
    const waits =
      counts.ready > 0 && isStill && !['resume', 'queue', 'time'].includes(row.waitingFor);
    if (waits && row.createdAt < (oldest?.createdAt ?? Infinity)) oldest = row;
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
      reasons: BLOCKS.filter((one) => blocks.has(one)).map((one) => WAIT_WORDS[one]),
    },
    rate: Number(total.rate.toPrecision(3)),
    done,
    oldest: oldest
      ? {
          id: oldest.id,
          createdAt: oldest.createdAt,
          why: oldest.why,
        }
      : null,
    nextDue: Number.isFinite(nextDue) ? nextDue : null,
    busiest: open.slice(0, MOST.busiest),
    unserved: { tasks: [...unserved.tasks].slice(0, 10), ids: unserved.ids },
    paused,
    usable,
  };
}

/** The last errors by their name and task, the most frequent first. */
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
  { unserved, ready, running, rate, oldest, paused, usable }: Summed,
  errors: readonly ErrorRow[],
  history: readonly Point[],
  now = Date.now(),
): Verdict[] {
  const verdicts: Verdict[] = [];
  const add = (level: Verdict['level'], what: string | About, cure: string) => {
    if (typeof what === 'string') verdicts.push({ level, what, cure });
    else {
      const [before, id, after] = what;
      const request = { id, from: before.length };
      verdicts.push({ level, what: `${before}${id}${after}`, cure, request });
    }
  };
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
  const run = overdue?.longest[0];
  if (overdue && run) {
    const others =
      alsoOverdue.length > 0
        ? `; so on ${plural(alsoOverdue.length, 'other worker', 'other workers')}`
        : '';
    const [before, after] = overdueWords(overdue.seenAt, run);
    add(
      'warning',
      [sentence(before), run.requestId, `${after}${others}.`],
      overdue.mates > 0
        ? `See Workers for where. A restart of its process ends it; what else runs there, in ${plural(overdue.mates + 1, 'worker', 'workers')}, runs again.`
        : 'See Workers for where. A restart of its process ends it; what else runs there runs again.',
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
      named(
        `No worker serves ${tasks.slice(0, 3).join(', ')}${tasks.length > 3 ? ' and others' : ''}: `,
        ids,
        ['waits.', 'wait.'],
      ),
      `Start workers with handlers for ${tasks.length > 1 ? 'them' : 'it'}.`,
    );
  if (paused.length > 0) add('ok', named('', paused, ['is paused.', 'are paused.']), '');
  const { slots, busy } = workers.fleet;
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
  if (
    usable.limited.length > 0 &&
    usable.slots < slots * 0.95 &&
    counts.pausedUntil === undefined
  ) {
    const free = plural(slots - usable.slots, 'slot', 'slots');
    add(
      'ok',
      named(usable.limited.length === 1 ? 'The limit of ' : 'The limits of ', usable.limited, [
        `leaves ${free} free.`,
        `leave ${free} free.`,
      ]),
      '',
    );
  } else if (slots > 0 && busy >= slots * 0.98 && usable.slots > slots * 20)
    add('ok', 'Every slot is busy; more workers would make it quicker.', '');
  const isRecent = ({ at }: { readonly at: number }) => now - at < LATELY_MS;
  const recent = errors.filter(isRecent);
  const reported = history
    .filter(isRecent)
    .reduce((n, { failed, retried }) => n + failed + retried, 0);
  // The list has the last ones only, and the history is some seconds behind.
  const isLess = reported > recent.length || recent.length >= MOST_LISTED;
  const lately = Math.max(recent.length, reported);
  const [most] = groupErrors(recent);
  if (lately >= 20 && most) {
    const where = most.task === '' ? '' : ` in ${most.task}`;
    add(
      'warning',
      `${isLess ? 'At least ' : ''}${count(lately)} attempts failed in the last five minutes; the most frequent of the latest is ${most.name}${where}.`,
      'See Errors.',
    );
  }
  const rank = { error: 0, warning: 1, ok: 2 };
  return verdicts.sort((a, b) => rank[a.level] - rank[b.level]);
}

/** What a verdict says, in parts: the one in the middle is the id of a request. */
type About = readonly [before: string, id: string, after: string];

/** 'a waits.', 'a and 2 other requests wait.' */
function named(
  before: string,
  [first = '', ...others]: readonly string[],
  [one, many]: readonly [string, string],
): About {
  if (others.length === 0) return [before, first, ` ${one}`];
  const rest = plural(others.length, 'other request', 'other requests');
  return [before, first, ` and ${rest} ${many}`];
}

const sentence = (text: string) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
