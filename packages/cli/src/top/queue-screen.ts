import { shownText } from '@piecework/protocol/contract';
import { type Row, STATES, type Verdict } from '@piecework/views';
import { count, duration, perSecond, shortCount } from '@piecework/views/format';
import type { Tone } from '../terminal/colour.js';
import { type Column, plainTable, shortened } from '../terminal/table.js';
import { beside, chart, fit, type Look, sides, widthOf } from './lines.js';
import { type Choice, type Data, type DrawnOverview, placeOf } from './state.js';
import { findingText, leftOf, limitOf, markOf, progressOf, rateOf, stateOf } from './words.js';

/** Rows of a terminal from which on charts are higher and lists longer. */
const TALL = 36;
/** Columns from which on bars are longer. */
const WIDE = 120;

/** The overview of the queue: findings, charts, workers, errors, and the table of requests. */
export function queueScreen(choice: Choice, data: Data, look: Look, room: number): string[] {
  const { overview } = data;
  if (!overview) return [];
  const above = [...aboveTable(overview, look), '', stateLine(choice, data, look)];
  return [...above, ...tableLines(choice, data, look, tableRoom(data, look, room))];
}

/** How many requests fit below the rest of the overview. */
export function tableRoom({ overview }: Data, look: Look, room: number): number {
  const above = overview ? aboveTable(overview, look).length : 0;
  // An empty line, the filter, and the head of the table.
  return Math.max(1, room - above - 3);
}

const aboveTable = (overview: DrawnOverview, look: Look): string[] => [
  ...findingLines(overview, look),
  ...chartLines(overview, look),
  ...aboutLines(overview, look),
];

/** All findings, those of the checks behind those that are always known. */
export function findingsOf({ verdicts, checks }: DrawnOverview): readonly Verdict[] {
  const all = [...verdicts, ...(checks?.findings ?? []).filter(({ level }) => level !== 'ok')];
  const rank = { error: 0, warning: 1, ok: 2 };
  return all.sort((a, b) => rank[a.level] - rank[b.level]);
}

function findingLines(overview: DrawnOverview, { paint, columns, rows }: Look): string[] {
  const found = findingsOf(overview);
  const most = rows >= TALL ? 5 : 2;
  const isWell = !found.some(({ level }) => level !== 'ok');
  const lines = isWell ? [paint('good', '✓ All is well.')] : [];
  const shown = found.slice(0, most - lines.length);
  for (const finding of shown) {
    const [mark, tone] = markOf(finding.level);
    lines.push(paint(tone, fit(`${mark} ${findingText(finding)}`, columns)));
  }
  const hidden = found.length - shown.length;
  if (hidden > 0) {
    const last = lines.pop() ?? '';
    lines.push(sides(last, paint('quiet', `+${hidden}: press f`), columns));
  }
  return lines;
}

function chartLines(overview: DrawnOverview, look: Look): string[] {
  const { chart: seen, rate, workers } = overview;
  const { columns, rows, paint } = look;
  const height = rows >= TALL ? 4 : 1;
  const seconds = seen.intervalMs / 1_000;
  const speeds = seen.points.map(({ succeeded, failed }) => (succeeded + failed) / seconds);
  const busy = seen.points.map((point) => point.running);
  const width = Math.floor((columns - 2) / 2);
  const shownMs = Math.min(width, Math.max(1, seen.points.length)) * seen.intervalMs;
  const last = `last ${shownMs < 60_000 ? duration(shownMs).replace('.0', '') : `${Math.round(shownMs / 60_000)} min`}`;
  const block = (
    title: string,
    value: string,
    values: readonly number[],
    least: number,
    tone: Tone,
  ) => {
    const recent = values.slice(-width);
    const most = Math.max(least, ...recent);
    const head = sides(`${title} ${paint('strong', value)}`, paint('quiet', last), width);
    return [head, ...chart(values, width, height, most).map((line) => paint(tone, line))];
  };
  const slots = `${count(workers.busy)} of ${count(workers.slots)}`;
  return beside(
    [
      block('throughput', perSecond(rate), speeds, 0, 'good'),
      block('busy slots', slots, busy, workers.slots, 'busy'),
    ],
    width,
  );
}

function aboutLines(overview: DrawnOverview, look: Look): string[] {
  const { workers, oldest, errors } = overview;
  const { columns, rows, paint, now } = look;
  const silent = workers.silent > 0 ? paint('bad', `${count(workers.silent)} silent`) : '0 silent';
  const more = [
    ...(workers.draining > 0 ? [`${count(workers.draining)} draining`] : []),
    ...(workers.stuck > 0 ? [paint('warning', `${count(workers.stuck)} slots stuck`)] : []),
  ];
  const lines = [
    [
      `workers  ${count(workers.alive)} alive`,
      `${count(workers.busy)} of ${count(workers.slots)} slots busy`,
      silent,
      ...more,
    ].join(' · '),
    oldest
      ? `oldest waiting  ${shortened(shownText(oldest.id), 30)}, ${duration(now - oldest.createdAt)}: ${shownText(oldest.why)}`
      : 'oldest waiting  none',
  ];
  const shown = errors.slice(0, rows >= TALL ? 4 : 1);
  for (const [i, { name, task, count: n, message }] of shown.entries()) {
    const hidden = errors.length - shown.length;
    const also = i === shown.length - 1 && hidden > 0 ? paint('quiet', `+${hidden}: press e`) : '';
    const of = task === '' ? '' : ` of ${shortened(shownText(task), 20)}`;
    const said = `${i === 0 ? 'errors' : '      '}  ${paint('bad', `${count(n)} × ${shownText(name)}`)}${of}: ${shownText(message)}`;
    lines.push(also === '' ? said : sides(said, also, columns));
  }
  if (errors.length === 0) lines.push('errors  none');
  return lines.map((line) => fit(line, columns));
}

/** What requests are sorted by, where the word of the key alone would not say it. */
const NAMES: Readonly<Record<string, string>> = {
  ...{ left: 'time left', failed: 'failures', running: 'what runs' },
};

/** The filter: how many requests are in each state; ← and → choose one. */
function stateLine(
  { which, text, sort, descending }: Choice,
  { requests }: Data,
  { columns, paint }: Look,
): string {
  const states = STATES.map((state) => {
    const n = requests?.states[state] ?? 0;
    const said = `${state} ${shortCount(n)}`;
    return state === which ? paint('strong', `[${said}]`) : said;
  });
  // Those that are empty are left out where there is little room, but never the chosen one.
  const full = states.filter(
    (_, i) => STATES[i] === which || (requests?.states[STATES[i] as string] ?? 0) > 0,
  );
  const filter = text === '' ? '' : paint('warning', `/${shortened(shownText(text), 24)}  `);
  const isInHead = SORTED[sort] !== undefined;
  const by = isInHead ? '' : paint('quiet', `by ${NAMES[sort] ?? sort}${descending ? '↓' : '↑'}`);
  const shown = columns >= WIDE ? states : full;
  // The chosen one is never cut off.
  const room = columns - widthOf(by) - widthOf(filter) - 2;
  const chosen = shown.findIndex((said) => said.includes('['));
  const from = shown.findIndex(
    (_, i) => i >= chosen || widthOf(lead(i) + shown.slice(i, chosen + 1).join(BETWEEN)) <= room,
  );
  return sides(filter + lead(from) + shown.slice(from).join(BETWEEN), by, columns);
}

const BETWEEN = '  ';
const lead = (from: number) => (from > 0 ? '… ' : '');

const COLUMNS: readonly Column[] = [
  { head: 'request', shrinks: true },
  { head: 'task', shrinks: true, drops: true },
  { head: 'state', shrinks: true, tone: (text) => TONES[text] },
  { head: 'progress' },
  { head: 'rate', right: true },
  { head: 'left', right: true },
  { head: 'priority', short: 'prio', right: true },
  { head: 'limit', right: true },
  { head: 'failed', short: 'fail', right: true, tone: (text) => (text === '0' ? 'quiet' : 'bad') },
  { head: 'total', right: true, drops: true },
];

const TONES: Readonly<Record<string, Tone>> = {
  ...{ running: 'busy', succeeded: 'good', failed: 'bad', cancelled: 'quiet' },
  ...{ paused: 'warning', 'queue paused': 'warning', 'no ready worker': 'warning' },
  ...{ 'no handler': 'warning', 'worker silent': 'warning', cancelling: 'warning' },
};

function tableLines(choice: Choice, data: Data, look: Look, room: number): string[] {
  const { columns, paint } = look;
  const all = data.requests?.rows ?? [];
  if (all.length === 0) return ['', emptyText(choice, data)];
  const rows = all.slice(0, room);
  const size = columns >= WIDE ? 20 : 8;
  const head = COLUMNS.map((column) => sorted(column, choice));
  const cells = rows.map((row) => cellsOf(row, size, look.now));
  const [title = '', ...lines] = plainTable(head, cells, '', columns - 2, paint).split('\n');
  const place = placeOf(choice, data);
  return [
    `  ${title}`,
    ...lines.map((line, i) => (i === place ? `${paint('strong', '▶')} ${line}` : `  ${line}`)),
  ];
}

function cellsOf(row: Row, size: number, now: number) {
  const [state] = stateOf(row, now);
  return [
    ...[row.id, row.task, state, progressOf(row, size), rateOf(row), leftOf(row, now)],
    ...[row.priority, limitOf(row), row.counts.failed, row.counts.total],
  ];
}

const SORTED: Readonly<Record<string, string>> = {
  ...{ id: 'request', task: 'task', priority: 'priority', progress: 'progress' },
  ...{ rate: 'rate', left: 'left', failed: 'failed', total: 'total' },
};

/** The head of the column that sorts the table has an arrow. */
function sorted(column: Column, { sort, descending }: Choice): Column {
  if (SORTED[sort] !== column.head) return column;
  const arrow = descending ? '↓' : '↑';
  const short = column.short === undefined ? {} : { short: `${column.short}${arrow}` };
  return { ...column, head: `${column.head}${arrow}`, ...short };
}

function emptyText({ which, text }: Choice, { requests, overview }: Data): string {
  if (!requests?.index.complete) return 'Reading the list of requests…';
  if (text !== '') return `No request matches ${shownText(text)}. Esc shows all.`;
  if (which !== 'open' && which !== 'any') return `No ${which} requests. ← and → choose others.`;
  const ended = overview?.ended;
  const n = ended ? ended.succeeded + ended.failed + ended.cancelled : 0;
  return n > 0
    ? `No open requests. ${count(n)} ended in the last week: ← and → choose what is shown.`
    : 'No requests in this queue yet: piecework submit --help shows how to submit one.';
}
