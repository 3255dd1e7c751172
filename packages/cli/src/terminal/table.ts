import { shownText } from '@piecework/protocol/contract';
import { shortCount } from '@piecework/views/format';
import cliTruncate from 'cli-truncate';
import stringWidth from 'string-width';
import wrapAnsi from 'wrap-ansi';
import { type Paint, paint, type Tone } from './colour.js';

/*
 * Tables. On a terminal no line is longer than the terminal is wide: texts are shortened in their middle, as both ends
 * of an id are needed to tell it from others. In pipes and files everything is printed whole.
 */

export interface Column {
  readonly head: string;
  /** Used instead of `head` where there is little room. */
  readonly short?: string;
  /** Whether its texts may be shortened. @default false */
  readonly shrinks?: boolean;
  /** Whether its texts keep up to half of the line while other columns shrink. @default false */
  readonly half?: boolean;
  /** Whether the column is left out where there is little room. @default false */
  readonly drops?: boolean;
  /** Whether its texts stand at the right of the column, as numbers do. @default false */
  readonly right?: boolean;
  /** The colour of a cell by its text. */
  readonly tone?: (text: string) => Tone | undefined;
  /** Whether it contains ids. If they are shortened, a last line says how to get them whole. */
  readonly isId?: boolean;
}

/** A number; a text; or a text with a shorter one that is used where there is little room. */
export type Cell = string | number | readonly [long: string, short: string];

/** What is done to make a table fit, the mildest first. `least`: the characters that a text keeps. */
const WHOLE = Number.POSITIVE_INFINITY;
const STEPS = [
  { brief: false, gap: 2, least: WHOLE, drops: false, half: false },
  { brief: true, gap: 1, least: WHOLE, drops: false, half: false },
  { brief: false, gap: 2, least: 16, drops: false, half: true },
  { brief: true, gap: 2, least: 16, drops: false, half: true },
  { brief: true, gap: 1, least: 16, drops: false, half: true },
  { brief: true, gap: 1, least: 16, drops: true, half: true },
  { brief: true, gap: 1, least: 5, drops: true, half: true },
  { brief: true, gap: 1, least: 5, drops: true, half: false },
] as const;

const CUT = '(ids are shortened; --json has them whole)';

/** The longest line of an output. */
export const columnsOf = ({ isTTY, columns }: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>) =>
  isTTY ? columns || 80 : Number.POSITIVE_INFINITY;

export function plainTable(
  all: readonly Column[],
  allRows: readonly (readonly Cell[])[],
  whenEmpty: string,
  room = columnsOf(process.stdout),
  painted: Paint = paint,
): string {
  if (allRows.length === 0) return whenEmpty;
  for (const step of STEPS) {
    const { brief, gap, least, drops, half } = step;
    const stays = (_: unknown, i: number) => !(drops && all[i]?.drops);
    const columns = all.filter(stays);
    const rows = allRows.map((row) => row.filter(stays));
    const head = columns.map(({ head, short }) => (brief ? (short ?? head) : head));
    const lines = [head, ...rows.map((row) => row.map((cell) => textOf(cell, brief)))];
    const natural = columns.map((_, i) =>
      Math.max(...lines.map((line) => stringWidth(line[i] ?? ''))),
    );
    const leasts = columns.map((column) => (half && column.half ? Math.floor(room / 2) : least));
    const widths = squeezed(natural, columns, room - gap * (columns.length - 1), leasts);
    if (!widths && step !== STEPS.at(-1)) continue;
    const shown = lines.map((line, i) =>
      joined(line, columns, widths ?? natural, gap, (tone, text) =>
        painted(i === 0 ? 'quiet' : tone, text),
      ),
    );
    const cut = columns.some(({ isId }, i) => isId && (widths?.[i] ?? 0) < (natural[i] ?? 0));
    return [...shown, ...(widths && cut ? [CUT] : [])].join('\n');
  }
  return whenEmpty;
}

function textOf(cell: Cell, brief: boolean): string {
  if (typeof cell === 'number') return brief ? shortCount(cell) : cell.toLocaleString('en-US');
  return shownText(typeof cell === 'string' ? cell : cell[brief ? 1 : 0]);
}

/** Shrinks the widest columns; undefined when that is not enough. */
function squeezed(
  natural: readonly number[],
  columns: readonly Column[],
  room: number,
  leasts: readonly number[],
): number[] | undefined {
  const widths = [...natural];
  for (let over = widths.reduce((sum, width) => sum + width, 0) - room; over > 0; over -= 1) {
    let widest = -1;
    for (const [i, width] of widths.entries())
      if (columns[i]?.shrinks && width > (leasts[i] ?? 0) && width > (widths[widest] ?? 0))
        widest = i;
    if (widest < 0) return undefined;
    (widths[widest] as number) -= 1;
  }
  return widths;
}

function joined(
  cells: readonly string[],
  columns: readonly Column[],
  widths: readonly number[],
  gap: number,
  painted: Paint,
): string {
  const padded = cells.map((cell, i) => {
    const { right, tone } = columns[i] ?? {};
    const shown = shortened(cell, widths[i] ?? 0);
    const room = ' '.repeat(Math.max(0, (widths[i] ?? 0) - stringWidth(shown)));
    const coloured = painted(tone?.(cell), shown);
    if (right) return room + coloured;
    return i === cells.length - 1 ? coloured : coloured + room;
  });
  return padded.join(' '.repeat(gap)).trimEnd();
}

/** Shortens a text to at most `room` characters. */
export const shortened = (text: string, room: number): string =>
  stringWidth(text) <= room ? text : cliTruncate(text, room, { position: 'middle' });

/** Wraps any text, as one line, between words. All lines but the first are indented by `indent` blanks. */
export function wrapped(text: string, indent = 0, room = columnsOf(process.stdout)): string {
  const line = shownText(text);
  if (!Number.isFinite(room)) return line;
  return wrapAnsi(line, Math.max(20, room - indent)).replaceAll('\n', `\n${' '.repeat(indent)}`);
}
