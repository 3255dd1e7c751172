import { shownText } from '@piecework/protocol/contract';

/*
 * The only way of the command line to standard output and standard error, besides results (`--out -`) and the screen of
 * `top`. Each text is one line: line ends in it, and whatever else is hidden, are shown as escapes.
 */

/** Prints lines on standard output. JSON stays the same data. */
export function print(...lines: string[]): void {
  for (const line of lines) console.log(shownText(line, '\t'));
}

/** Prints a table, whose cells were cleaned and may be coloured. */
export function printTable(table: string): void {
  console.log(table.split('\n').map(shownPainted).join('\n'));
}

/** What prints above a bar; not the type of its library, of which users of `@piecework/cli` have no types. */
interface Bar {
  log(text: string): void;
}

/** The bar that is on the terminal now, if there is one. */
let shown: Bar | undefined;

/** Prints a line on standard error, above the bar if there is one. */
export function say(text: string): void {
  const line = shownText(text, '\t');
  if (shown) shown.log(`${line}\n`);
  else console.error(line);
}

/** From now on, lines are printed above this bar; undefined: it was removed. */
export function sayAbove(bar: Bar | undefined): void {
  shown = bar;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: a colour begins with one
const COLOUR = /(\u001b\[\d+m)/;

/** A line whose texts were cleaned before they were coloured. */
export const shownPainted = (line: string): string =>
  line
    .split(COLOUR)
    .map((part, i) => (i % 2 === 1 ? part : shownText(part)))
    .join('');

/** The first line of any text, as one line. */
export const firstLine = (text: string): string =>
  shownText(text.trim().split(/[\r\n]/, 1)[0] ?? '');
