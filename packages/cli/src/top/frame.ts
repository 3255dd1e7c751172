import { shownText } from '@piecework/protocol/contract';
import { ago, count, duration } from '@piecework/views/format';
import { exactly, fit, type Look, sides } from './lines.js';
import { errorsScreen, findingsScreen, helpScreen, workersScreen } from './more-screens.js';
import { queueScreen, tableRoom } from './queue-screen.js';
import { requestScreen } from './request-screen.js';
import { type Choice, type Data, type Screen, target } from './state.js';

/** After this time without an answer the view says so, in ms. */
const SILENT_MS = 3_000;
/** How long what an action did is shown, in ms. */
const SAID_MS = 8_000;

const LEAST = { columns: 40, rows: 12 };

export interface Frame {
  /** As many as the terminal has rows, none longer than it is wide. */
  readonly lines: readonly string[];
  /** The first line of a long screen that is shown: no more than the screen has. */
  readonly scroll: number;
}

/** Draws a screen: a function of what was chosen, what was read, and the terminal. */
export function frame(choice: Choice, data: Data, look: Look): Frame {
  const { columns, rows } = look;
  if (columns < LEAST.columns || rows < LEAST.rows) {
    const text = `The terminal is too small: ${LEAST.columns}×${LEAST.rows} is needed.`;
    return { lines: exactly([fit(text, columns)], rows), scroll: 0 };
  }
  const room = rows - 3;
  const body = screenLines(choice, data, look, room);
  const scroll = Math.min(choice.scroll, Math.max(0, body.length - room));
  const shown = body.slice(scroll, scroll + room);
  const below = body.length - scroll - room;
  if (below > 0) {
    const hidden = look.paint('quiet', `… ${count(below + 1)} more lines: ↓`);
    shown.splice(room - 1, 1, hidden);
  }
  const lines = [
    headLine(choice, data, look),
    ...exactly(shown, room),
    messageLine(choice, data, look),
    keysLine(choice, look),
  ];
  return { lines: lines.map((line) => fit(line, columns)), scroll };
}

/** How many requests a page of the table has. */
export function pageSize(data: Data, look: Look): number {
  return Math.min(200, tableRoom(data, look, look.rows - 3));
}

function screenLines(choice: Choice, data: Data, look: Look, room: number): string[] {
  if (choice.screen === 'help') return helpScreen(look);
  if (data.answeredAt === 0)
    return ['', data.problem === '' ? 'Reading…' : 'Nothing has been read yet.'];
  switch (choice.screen) {
    case 'request':
      return requestScreen(choice, data, look);
    case 'workers':
      return workersScreen(data, look);
    case 'errors':
      return errorsScreen(data, look);
    case 'findings':
      return findingsScreen(data, look);
    default:
      return queueScreen(choice, data, look, room);
  }
}

const TITLES: Readonly<Record<Screen, string>> = {
  queue: '',
  request: ' › request',
  workers: ' › workers',
  errors: ' › errors',
  findings: ' › findings',
  help: ' › help',
};

function headLine(choice: Choice, { answeredAt, requests }: Data, look: Look): string {
  const { paint, queue, now, columns, readOnly } = look;
  const title = `${paint('strong', `piecework · queue ${queue}`)}${TITLES[choice.screen]}`;
  const pages =
    requests && requests.pages > 1 ? [`page ${requests.page} of ${requests.pages}`] : [];
  const parts = [
    ...(choice.screen === 'queue' ? pages : []),
    ...(requests?.index.truncated ? ['more requests than are kept'] : []),
    ...(readOnly ? ['read-only'] : []),
    answeredAt === 0 ? '' : new Date(now).toTimeString().slice(0, 8),
  ];
  return sides(title, paint('quiet', parts.filter(Boolean).join(' · ')), columns);
}

/** A prompt; or that Redis does not answer; or what an action did; or why the selected request is not further. */
function messageLine(choice: Choice, data: Data, { paint, now }: Look): string {
  const { prompt, screen } = choice;
  if (prompt?.kind === 'filter')
    return `/${shownText(prompt.text)}▏ ${paint('quiet', 'Enter keeps it, Esc ends it')}`;
  if (prompt?.kind === 'limit') {
    const was = prompt.now === null ? 'none' : count(prompt.now);
    const hint = prompt.wrong === '' ? `now ${was}; a number, or none` : prompt.wrong;
    const tone = prompt.wrong === '' ? 'quiet' : 'bad';
    return `limit of ${shownText(prompt.id)}: ${shownText(prompt.text)}▏ ${paint(tone, `(${hint})`)}`;
  }
  if (prompt?.kind === 'redrive') {
    const what =
      prompt.failed === 1
        ? 'one failed sub-request'
        : `${count(prompt.failed)} failed sub-requests`;
    return paint('warning', `Run ${what} of ${shownText(prompt.id)} again? y: yes · n: no`);
  }
  const { problem, answeredAt, said } = data;
  const since = answeredAt === 0 ? '' : `; last answer ${ago(answeredAt, now)}`;
  if (problem !== '')
    return paint('bad', `✗ Reading failed, asking again${since}: ${shownText(problem)}`);
  if (answeredAt > 0 && now - answeredAt > SILENT_MS)
    return paint(
      'warning',
      `! Redis has not answered for ${duration(now - answeredAt)}. Waiting for it.`,
    );
  if (said && now - said.at < SAID_MS)
    return paint(said.isBad ? 'bad' : 'strong', shownText(said.text));
  const row = screen === 'queue' ? target(choice, data) : undefined;
  return row ? paint('quiet', shownText(`${row.id}: ${row.why}`)) : '';
}

function keysLine({ screen }: Choice, { columns, paint, readOnly }: Look): string {
  const more = columns > 130 ? ' · w workers · e errors · f findings' : '';
  const control = readOnly ? '' : 'p pause · l limit · r redrive · ';
  const keys: Readonly<Record<Screen, string>> = {
    queue: `Enter open · ${control}s sort · / filter · ? help · q quit${more}`,
    request: `Esc back · ${control}↑↓ scroll · ? help · q quit`,
    workers: 'Esc back · ↑↓ scroll · q quit',
    errors: 'Esc back · ↑↓ scroll · q quit',
    findings: 'Esc back · c run the checks · ↑↓ scroll · q quit',
    help: 'Esc back · q quit',
  };
  return paint('quiet', keys[screen]);
}
