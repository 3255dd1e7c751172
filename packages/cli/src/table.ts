import cliTruncate from 'cli-truncate';
import stringWidth from 'string-width';
import wrapAnsi from 'wrap-ansi';

/*
 * What is printed in columns. On a terminal a line is as long as the terminal is wide, at most: texts are
 * shortened in their middle, as both ends tell ids apart. Elsewhere everything is whole, for other tools to cut.
 */

export interface Column {
  readonly head: string;
  /** Instead of `head` where there is little room. */
  readonly short?: string;
  /** Whether its texts may be shortened. @default false */
  readonly shrinks?: boolean;
  /** Whether it is to have half of the line, if its texts are so long, before others shrink less. @default false */
  readonly half?: boolean;
  /** Whether it goes where there is little room. @default false */
  readonly drops?: boolean;
  /** Whether it holds ids, which nobody can copy once they are shortened: a last line says where they are whole. */
  readonly isId?: boolean;
}

/** A number; a text; or a text with a shorter one for where there is little room. */
export type Cell = string | number | readonly [long: string, short: string];

/** What is done for want of room, the least first. `least`: characters that a text keeps. */
const STEPS = [
  { brief: false, gap: 2, least: 16, drops: false, half: true },
  { brief: true, gap: 2, least: 16, drops: false, half: true },
  { brief: true, gap: 1, least: 16, drops: false, half: true },
  { brief: true, gap: 1, least: 16, drops: true, half: true },
  { brief: true, gap: 1, least: 5, drops: true, half: true },
  { brief: true, gap: 1, least: 5, drops: true, half: false },
] as const;

const CUT = '(ids are shortened; --json has them whole)';

const compact = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

/** How long a line of an output may be. */
export const columnsOf = ({ isTTY, columns }: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>) =>
  isTTY ? columns || 80 : Number.POSITIVE_INFINITY;

export function plainTable(
  all: readonly Column[],
  allRows: readonly (readonly Cell[])[],
  whenEmpty: string,
  room = columnsOf(process.stdout),
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
    const shown = lines.map((line) => joined(line, widths ?? natural, gap));
    const cut = columns.some(({ isId }, i) => isId && (widths?.[i] ?? 0) < (natural[i] ?? 0));
    return [...shown, ...(widths && cut ? [CUT] : [])].join('\n');
  }
  return whenEmpty;
}

function textOf(cell: Cell, brief: boolean): string {
  if (typeof cell === 'string') return cell;
  if (typeof cell === 'number') return brief ? compact.format(cell) : cell.toLocaleString('en-US');
  return cell[brief ? 1 : 0];
}

/** Takes from the widest columns that shrink; undefined when it is not enough. */
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

function joined(cells: readonly string[], widths: readonly number[], gap: number): string {
  const padded = cells.map((cell, i) => {
    const shown = shortened(cell, widths[i] ?? 0);
    return shown + ' '.repeat(Math.max(0, (widths[i] ?? 0) - stringWidth(shown)));
  });
  return padded.join(' '.repeat(gap)).trimEnd();
}

/** A text of no more than `room` characters. */
export const shortened = (text: string, room: number): string =>
  stringWidth(text) <= room ? text : cliTruncate(text, room, { position: 'middle' });

/** Prose between words, each line behind `indent` blanks but the first. */
export function wrapped(text: string, indent = 0, room = columnsOf(process.stdout)): string {
  if (!Number.isFinite(room)) return text;
  return wrapAnsi(text, Math.max(20, room - indent)).replaceAll('\n', `\n${' '.repeat(indent)}`);
}
