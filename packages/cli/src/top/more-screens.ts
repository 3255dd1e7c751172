import { shownText } from '@piecework/protocol/contract';
import { ago, bytes, count, duration } from '@piecework/views/format';
import type { Tone } from '../terminal/colour.js';
import { type Column, plainTable, wrapped } from '../terminal/table.js';
import type { Look } from './lines.js';
import { findingsOf } from './queue-screen.js';
import type { Data } from './state.js';
import { cureText, markOf } from './words.js';

const WORKER_TONES: Readonly<Record<string, Tone>> = {
  ...{ silent: 'bad', stuck: 'warning', unwell: 'warning', overdue: 'warning' },
  ...{ works: 'busy', idle: 'quiet', drains: 'quiet' },
};

const WORKERS: readonly Column[] = [
  { head: 'worker', shrinks: true },
  { head: 'state', tone: (text) => WORKER_TONES[text] },
  { head: 'busy', right: true },
  { head: 'memory', right: true, drops: true },
  { head: 'up', right: true },
  { head: 'seen', right: true },
  { head: 'longest, or what is wrong', shrinks: true },
];

/** The workers, those in trouble first. */
export function workersScreen({ workers }: Data, { columns, paint, now }: Look): string[] {
  if (!workers) return ['', 'Reading…'];
  const rows = workers.workers.map((worker) => {
    const [longest] = worker.longest;
    const runs = longest
      ? `${longest.requestId}:${longest.index} for ${duration(now - longest.startedAt)}${longest.isOverdue ? `, usually ${duration(longest.medianMs ?? 0)}` : ''}`
      : '';
    const rss = worker.rssBytes === null ? '' : bytes(worker.rssBytes);
    return [
      ...[worker.id, worker.state, `${worker.running} of ${worker.concurrency}`, rss],
      ...[duration(now - worker.startedAt), ago(worker.seenAt, now)],
      worker.why.length > 0 ? worker.why.join('; ') : runs,
    ];
  });
  const none = 'No workers. Start some: piecework worker --handler FILE, or a Worker in a program.';
  const states = Object.entries(workers.states).map(([state, n]) => `${count(n)} ${state}`);
  return [states.join(' · '), '', ...plainTable(WORKERS, rows, none, columns, paint).split('\n')];
}

const GROUPS: readonly Column[] = [
  { head: 'times', right: true },
  { head: 'error', shrinks: true, tone: () => 'bad' },
  { head: 'task', shrinks: true, drops: true },
  { head: 'last seen', right: true },
  { head: 'in request', shrinks: true },
  { head: 'message', shrinks: true, half: true },
];

const LATEST: readonly Column[] = [
  { head: 'when', right: true },
  { head: 'request', shrinks: true },
  { head: 'index', right: true },
  { head: 'attempt', short: 'try', right: true },
  { head: 'error', shrinks: true },
  { head: 'message', shrinks: true, half: true },
];

/** The last 100 failed attempts of the queue, by error name and one by one. */
export function errorsScreen({ overview, errors }: Data, look: Look): string[] {
  const { columns, paint, now } = look;
  if (!errors) return ['', 'Reading…'];
  if (errors.errors.length === 0) return ['', 'No attempt has failed lately.'];
  const groups = (overview?.errors ?? []).map(
    ({ count: n, name, task, lastAt, requestId, message }) => [
      ...[n, name, task, ago(lastAt, now), requestId, message],
    ],
  );
  const rows = errors.errors.map(({ at, requestId, index, attempt, name, message }) => [
    ...[ago(at, now), requestId, index, attempt, name, message],
  ]);
  return [
    ...(groups.length > 0 ? plainTable(GROUPS, groups, '', columns, paint).split('\n') : []),
    '',
    ...plainTable(LATEST, rows, '', columns, paint).split('\n'),
  ];
}

/** All findings with their cures, whole. */
export function findingsScreen({ overview }: Data, { columns, paint, now }: Look): string[] {
  if (!overview) return ['', 'Reading…'];
  const { checks } = overview;
  const lines = findingsOf(overview).flatMap((finding) => {
    const { level, what } = finding;
    const cure = cureText(finding);
    const [mark, tone] = markOf(level);
    const said = wrapped(shownText(`${mark} ${what}`), 2, columns).split('\n');
    const todo = cure === '' ? [] : wrapped(`→ ${cure}`, 4, columns - 2).split('\n');
    return [
      ...said.map((line) => paint(tone, line)),
      ...todo.map((line, i) => (i === 0 ? `  ${line}` : line)),
      '',
    ];
  });
  const state = checks?.busy
    ? 'The checks run…'
    : checks
      ? `The checks ran ${ago(checks.at, now)}; c runs them again.`
      : 'The checks have not run: c runs them. They read every open request.';
  return [
    ...(lines.length > 0 ? lines : [paint('good', '✓ All is well.'), '']),
    paint('quiet', state),
  ];
}

const HELP: readonly (readonly [string, string])[] = [
  ['↑ ↓  j k', 'select a request; in a long list they scroll'],
  ['PgUp PgDn Home End', 'other pages of the table'],
  ['Enter', 'open the request: its books, failures and who holds what'],
  ['Esc', 'go back; in the table: end the filter'],
  ['← →', 'which requests: open, running, waiting, paused, failing, ended …'],
  ['s  S', 'sort by another column; the other way round'],
  ['/', 'only requests with these words in id, task or metadata'],
  ['p', 'pause the request, or resume it'],
  ['l', 'change its limit'],
  ['r', 'run again what failed of an ended request; asks first'],
  ['w  e  f', 'workers; errors; findings with their cures'],
  ['c', 'run the checks of piecework doctor'],
  ['q  Ctrl-C', 'quit'],
];

export function helpScreen({ columns, paint, readOnly }: Look): string[] {
  const lines = HELP.map(([keys, what]) => {
    const [first = '', ...rest] = wrapped(what, 20, columns).split('\n');
    return [`${paint('strong', keys.padEnd(20))}${first}`, ...rest];
  });
  const about = readOnly ? ['', 'p, l and r do nothing: the view is read-only.'] : [];
  return [...lines.flat(), ...about];
}
