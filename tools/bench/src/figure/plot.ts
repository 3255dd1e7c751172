import { amount } from './amount.js';
import { type Row, type Target, verdict } from './figure.js';

/*
 * One bar chart as SVG, drawn here: of the libraries, those that need no DOM draw far more than bars
 * and weigh more than the whole bench.
 *
 * Rows of one unit share a scale and stand together; targets are lines across their bars.
 */
const WIDTH = 860;
const LABELS = 330;
const VALUES = 120;
const BARS = WIDTH - LABELS - VALUES;
const LINE = 22;
const BAR = 14;
const COLOURS = { '': '#6b7f99', reached: '#3a8f5c', 'not reached': '#c0513a' } as const;

/** The whole picture. `caption`: command, versions, machine. */
export function plot(title: string, rows: readonly Row[], caption: readonly string[]): string {
  const body: string[] = [text(12, 24, title, 'title')];
  let y = 44;
  for (const [unit, group] of byUnit(rows)) {
    body.push(text(12, y + 14, unit, 'unit'));
    y += LINE;
    // What is to be at least so much has its line inside the picture, too.
    const most = Math.max(...group.map((row) => Math.max(row.value, top(row), bound(row.target))));
    const scale = (value: number) => (most > 0 ? (Math.max(0, value) / most) * BARS : 0);
    for (const row of group) {
      body.push(bar(row, y, scale));
      y += LINE;
    }
    y += 8;
  }
  for (const line of caption) {
    body.push(text(12, y + 14, line, 'caption'));
    y += 15;
  }
  return `${head(title, y + 12)}${body.join('\n')}\n</svg>\n`;
}

function bar(row: Row, y: number, scale: (value: number) => number): string {
  const { label, value, range, target } = row;
  const x = (at: number) => (LABELS + scale(at)).toFixed(1);
  const middle = y + BAR / 2;
  const parts = [
    text(LABELS - 8, y + 11, label, 'label'),
    `<rect x="${LABELS}" y="${y}" width="${scale(value).toFixed(1)}" height="${BAR}" fill="${COLOURS[verdict(row)]}"/>`,
    text(LABELS + BARS + 8, y + 11, amount(value), 'value'),
  ];
  if (range && range[0] < range[1])
    parts.push(
      `<line class="range" x1="${x(range[0])}" y1="${middle}" x2="${x(range[1])}" y2="${middle}"/>`,
    );
  if (target) {
    const at = x(bound(target));
    parts.push(`<line class="target" x1="${at}" y1="${y - 3}" x2="${at}" y2="${y + BAR + 3}"/>`);
  }
  return parts.join('\n');
}

function byUnit(rows: readonly Row[]): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    if (!Number.isFinite(row.value)) continue;
    groups.set(row.unit, [...(groups.get(row.unit) ?? []), row]);
  }
  return groups;
}

const top = ({ range }: Row): number => range?.[1] ?? 0;

function bound(target: Target | undefined): number {
  if (!target) return 0;
  return 'atMost' in target ? target.atMost : target.atLeast;
}

function text(x: number, y: number, content: string, style: string): string {
  return `<text x="${x}" y="${y}" class="${style}">${escaped(content)}</text>`;
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function head(title: string, height: number): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif">
<title>${escaped(title)}</title>
<style>
text { font-size: 12px; fill: #222 }
.title { font-size: 15px; font-weight: bold }
.unit { font-weight: bold }
.label { text-anchor: end }
.caption { font-size: 10px; fill: #666 }
.range { stroke: #222; stroke-width: 1.5 }
.target { stroke: #b8860b; stroke-width: 2; stroke-dasharray: 3 2 }
</style>
<rect width="100%" height="100%" fill="#fff"/>
`;
}
