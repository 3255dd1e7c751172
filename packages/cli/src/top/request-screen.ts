import { shownText } from '@piecework/protocol/contract';
import type { Row } from '@piecework/views';
import { ago, count, doneOf, duration, percent, perSecond, until } from '@piecework/views/format';
import wrapAnsi from 'wrap-ansi';
import { shortened } from '../terminal/table.js';
import { chart, fit, type Look, shares, sides } from './lines.js';
import type { Choice, Data, DrawnRequest } from './state.js';
import { leftOf, limitOf, stateOf } from './words.js';

/** The parts of the books: each sub-request is in exactly one. The signs differ, so that no colours are needed. */
const PARTS = [
  { of: 'succeeded', name: 'succeeded', sign: '█', tone: 'good' },
  { of: 'failed', name: 'failed', sign: '▓', tone: 'bad' },
  { of: 'cancelled', name: 'cancelled', sign: '▒', tone: 'quiet' },
  { of: 'running', name: 'running', sign: '▄', tone: 'busy' },
  { of: 'ready', name: 'ready', sign: '░', tone: undefined },
  { of: 'delayed', name: 'delayed', sign: '·', tone: 'warning' },
] as const;

/** One request: its books, why it waits, its failures by error name, and who holds what. */
export function requestScreen(choice: Choice, { request, gone }: Data, look: Look): string[] {
  if (gone !== '') return ['', shownText(gone), '', 'Esc goes back to the queue.'];
  if (!request || request.row.id !== choice.opened)
    return ['', `Reading ${shownText(choice.opened)}…`];
  const { row } = request;
  return [
    ...headLines(row, look),
    '',
    ...bookLines(row, look),
    '',
    ...speedLines(request, look),
    '',
    ...failureLines(request, look),
    '',
    ...holderLines(request, look),
  ];
}

function headLines(row: Row, look: Look): string[] {
  const { columns, paint, now } = look;
  const [state, tone] = stateOf(row, now);
  const task = row.task === '' ? '' : `task ${shortened(shownText(row.task), 30)}`;
  const about = [
    paint(tone ?? 'strong', state),
    `priority ${row.priority}`,
    `limit ${limitOf(row)}`,
    `created ${ago(row.createdAt, now)}`,
    // A generation is about the server's time of its beginning; the first begins with the request.
    ...(row.generation - row.createdAt > 1_000 ? [`ran again ${ago(row.generation, now)}`] : []),
    ...(row.completedAt > 0 ? [`ended ${ago(row.completedAt, now)}`] : []),
    ...(row.deadline > 0 && row.completedAt === 0 ? [`deadline ${until(row.deadline, now)}`] : []),
  ];
  return [
    sides(paint('strong', shownText(row.id)), task, columns),
    ...whyLines(row, look),
    fit(about.join(' · '), columns),
    ...(row.metadata === '' ? [] : [fit(`metadata ${shownText(row.metadata)}`, columns)]),
  ];
}

/** Why it is not further, or why it ended so. */
function whyLines({ why, waitingFor }: Row, { columns, paint }: Look): string[] {
  const tone = waitingFor === '' ? undefined : 'warning';
  return wrapAnsi(shownText(why), columns, { hard: true })
    .split('\n')
    .map((line) => paint(tone, line));
}

function bookLines({ counts }: Row, { columns, paint }: Look): string[] {
  const widths = shares(
    PARTS.map(({ of }) => counts[of]),
    columns,
  );
  const bar = PARTS.map(({ sign, tone }, i) => paint(tone, sign.repeat(widths[i] ?? 0))).join('');
  const terms = PARTS.filter(({ of }) => counts[of] > 0).map(
    ({ of, name, sign, tone }) => `${paint(tone, sign)} ${name} ${count(counts[of])}`,
  );
  const sum = terms.length > 0 ? terms.join(' + ') : '0';
  const long = `${sum} = ${count(counts.total)}`;
  return [
    ...(bar === '' ? [paint('quiet', '(nothing is in it yet)')] : [bar]),
    ...folded(long, ' + ', columns),
  ];
}

/** A line folded between its terms where it is too long. */
function folded(text: string, between: string, columns: number): string[] {
  const lines: string[] = [];
  for (const term of text.split(between)) {
    const last = lines.at(-1);
    const longer = last === undefined ? term : `${last}${between}${term}`;
    if (last !== undefined && fit(longer, columns) === longer) lines[lines.length - 1] = longer;
    else lines.push(last === undefined ? term : `+ ${term}`);
  }
  return lines;
}

function speedLines({ chart: { points }, row, slots }: DrawnRequest, look: Look): string[] {
  const { columns, paint, rows, now } = look;
  const done = percent(doneOf(row.counts), row.counts.total);
  if (row.status === 'complete') {
    const took = duration(Math.max(0, row.completedAt - row.createdAt));
    return [`${done} done in ${took}`];
  }
  const left = leftOf(row, now);
  const parts = [
    `${done} done`,
    `rate ${paint('strong', perSecond(row.rate))}`,
    ...(left === '' ? [] : [`${left} left`]),
    `${count(slots)} slots in the fleet`,
  ];
  const speeds = points.map(({ succeeded }) => succeeded);
  const height = rows >= 36 ? 3 : 1;
  const lines = chart(speeds, columns, height, Math.max(0, ...speeds.slice(-columns)));
  const head = sides(parts.join(' · '), paint('quiet', 'since you look'), columns);
  return [head, ...lines.map((line) => paint('good', line.trimEnd()))];
}

function failureLines({ row, failures, failuresRead }: DrawnRequest, look: Look): string[] {
  const { columns, paint } = look;
  const { failed } = row.counts;
  if (failed === 0) return [paint('quiet', 'no failures')];
  const read =
    failuresRead < failed ? `, the first ${count(failuresRead)} of them by error name` : '';
  const lines = failures.map(({ name, count: n, message, index }) =>
    fit(
      `${count(n).padStart(7)} × ${paint('bad', shownText(name))}: ${shownText(message)} ${paint('quiet', `(index ${index})`)}`,
      columns,
    ),
  );
  return [`${paint('strong', 'failures')}  ${count(failed)}${read}`, ...lines];
}

/** From so many on, the list of what runs is not all of it. */
const SHOWN = 100;

/** Which worker holds which sub-requests, those that have run longest first. */
function holderLines({ running, row }: DrawnRequest, look: Look): string[] {
  const { columns, paint } = look;
  if (running.length === 0)
    return row.status === 'complete' ? [] : [paint('quiet', 'nothing runs')];
  const workers = new Map<string, (typeof running)[number][]>();
  for (const one of running) workers.set(one.worker, [...(workers.get(one.worker) ?? []), one]);
  // The list is read just after the counts, and short handlers end in between.
  const isCut = running.length >= SHOWN;
  const few = isCut
    ? `, the longest ${running.length} of them`
    : `, ${running.length} listed: the others ended before`;
  const more = row.counts.running > running.length ? few : '';
  const lines = [...workers].map(([worker, held]) => {
    const each = held.map(({ index, forMs, progress, attempt }) => {
      const notes = [
        duration(forMs),
        ...(attempt > 1 ? [`attempt ${attempt}`] : []),
        ...(progress === null ? [] : [`progress ${progress}`]),
      ];
      return `${index} (${notes.join(', ')})`;
    });
    const who = `${shortened(shownText(worker), 28)}  ${String(held.length).padStart(3)}: `;
    return fit(who + each.join(', '), columns);
  });
  return [
    `${paint('strong', 'runs')}  ${count(row.counts.running)} at ${workers.size === 1 ? 'one worker' : `${workers.size} workers`}${more}: index (for how long)`,
    ...lines,
  ];
}
