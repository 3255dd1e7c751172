import type { MultiBar } from 'cli-progress';

/** The bar that is on the terminal now, if there is one. */
let shown: MultiBar | undefined;

/** Prints a line on standard error, above the bar if there is one. */
export function say(text: string): void {
  if (shown) shown.log(`${text}\n`);
  else console.error(text);
}

/** From now on, lines are printed above this bar; undefined: it was removed. */
export function sayAbove(bar: MultiBar | undefined): void {
  shown = bar;
}
