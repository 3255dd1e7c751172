import cliTruncate from 'cli-truncate';
import stringWidth from 'string-width';
import { type Paint, painter } from '../terminal/colour.js';

/** What a frame is drawn for. Nothing in a frame depends on anything but this, the data and the state. */
export interface Look {
  readonly columns: number;
  readonly rows: number;
  readonly paint: Paint;
  /** In ms since 1970. */
  readonly now: number;
  /** Whether the view may change anything. */
  readonly readOnly: boolean;
  /** Name of the queue. */
  readonly queue: string;
}

/** How many columns of the terminal a text takes. */
export const widthOf = stringWidth;

/** Without colours, as in tests. */
export const plain: Paint = painter(false);

/** Cuts a line that is too long at its end. */
export const fit = (line: string, columns: number): string =>
  stringWidth(line) <= columns ? line : cliTruncate(line, columns);

/** A line with texts at both ends. The left one is cut if there is not enough room. */
export function sides(left: string, right: string, columns: number): string {
  const kept = fit(left, Math.max(0, columns - stringWidth(right) - 1));
  const gap = ' '.repeat(Math.max(1, columns - stringWidth(kept) - stringWidth(right)));
  return fit(kept + gap + right, columns);
}

/** Texts side by side in columns of the same width, with two blanks between them. */
export function beside(blocks: readonly (readonly string[])[], width: number): string[] {
  const height = Math.max(...blocks.map((block) => block.length));
  return Array.from({ length: height }, (_, row) =>
    blocks.map((block) => padded(fit(block[row] ?? '', width), width)).join('  '),
  );
}

const padded = (text: string, width: number) =>
  text + ' '.repeat(Math.max(0, width - stringWidth(text)));

const EIGHTHS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/**
 * Values as columns of `height` characters, the last value at the right. What is above 0 is always visible.
 * @param most the value of a full column
 */
export function chart(
  values: readonly number[],
  width: number,
  height: number,
  most: number,
): string[] {
  const shown = values.slice(-width);
  const eighths = shown.map((value) =>
    value <= 0 || most <= 0
      ? 0
      : Math.max(1, Math.min(height * 8, Math.round((value / most) * height * 8))),
  );
  const missing = ' '.repeat(width - shown.length);
  return Array.from({ length: height }, (_, row) => {
    const below = (height - 1 - row) * 8;
    return missing + eighths.map((n) => EIGHTHS[Math.max(0, Math.min(8, n - below))]).join('');
  });
}

/**
 * How many of `size` characters each part gets: in all exactly `size`, and each part that is above 0 at least one, as
 * long as there are enough.
 */
export function shares(parts: readonly number[], size: number): number[] {
  const total = parts.reduce((sum, n) => sum + n, 0);
  if (total === 0) return parts.map(() => 0);
  const widths = parts.map((n) => (n > 0 ? Math.max(1, Math.floor((n / total) * size)) : 0));
  const sum = () => widths.reduce((all, n) => all + n, 0);
  // What is missing or too much changes the widest, where it is seen least.
  while (sum() !== size) {
    const widest = widths.indexOf(Math.max(...widths));
    const step = sum() < size ? 1 : -1;
    if (step < 0 && (widths[widest] as number) === 0) break;
    (widths[widest] as number) += step;
  }
  return widths;
}

/** So many lines: cut or filled up with empty ones. */
export const exactly = (lines: readonly string[], n: number): string[] =>
  Array.from({ length: Math.max(0, n) }, (_, i) => lines[i] ?? '');
