import type { Table } from '../tables.js';
import { amount } from './amount.js';
import { type MeasuredFigure, type Row, verdict } from './figure.js';

/** All rows of one figure. */
export function rowsTable({ title, rows }: MeasuredFigure): Table {
  const lines = rows.map((row) => [
    row.label,
    amount(row.value),
    row.unit,
    rangeOf(row),
    targetOf(row),
    verdict(row),
  ]);
  return { head: [title, '', '', 'least–most', 'target', ''], rows: lines };
}

/** What is judged, of all figures. */
export function verdictsTable(figures: readonly MeasuredFigure[]): Table {
  const rows = figures.flatMap(({ name, rows }) =>
    rows
      .filter(({ target }) => target)
      .map((row) => [
        `${name}: ${row.label}`,
        `${amount(row.value)} ${row.unit}`,
        targetOf(row),
        verdict(row),
      ]),
  );
  return { head: ['figure', 'measured', 'target', ''], rows };
}

function rangeOf({ range }: Row): string {
  return range && range[0] < range[1] ? `${amount(range[0])}–${amount(range[1])}` : '';
}

function targetOf({ target }: Row): string {
  if (!target) return '';
  return 'atMost' in target ? `≤ ${target.atMost}` : `≥ ${target.atLeast}`;
}
