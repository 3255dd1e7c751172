import CliTable from 'cli-table3';
import { markdownTable } from 'markdown-table';
import type { Spread, Summary } from './summary.js';

export interface Table {
  readonly head: string[];
  readonly rows: string[][];
}

/** What was measured, one row per entrant. */
export function figuresTable(summaries: readonly Summary[]): Table {
  const head = [
    '',
    'sub-requests/s (least–most)',
    'Redis µs',
    'client µs',
    'commands sent',
    'incl. in scripts',
    'wire bytes',
    'waiting bytes',
  ];
  const rows = summaries.map((summary) => [
    summary.entrant.title,
    `${whole(summary.perSecond.median)} (${range(summary.perSecond)})${summary.cutOff ? ' *' : ''}`,
    fine(summary.redisMicros.median),
    fine(summary.clientMicros.median),
    fine(summary.sent.median),
    fine(summary.commands.median),
    whole(summary.wireBytes.median),
    whole(summary.waitingBytes),
  ]);
  return { head, rows };
}

/** The first entrant over each of the others. */
export function ratiosTable([first, ...others]: readonly Summary[]): Table {
  const head = [
    `${first?.entrant.title ?? ''} compared with`,
    'rate',
    'Redis CPU',
    'client CPU',
    'commands sent',
    'wire bytes',
    'waiting bytes',
  ];
  const rows = others.map((other) => [
    other.entrant.title,
    ...(['perSecond', 'redisMicros', 'clientMicros', 'sent', 'wireBytes'] as const).map((figure) =>
      times((first?.[figure].median ?? Number.NaN) / other[figure].median),
    ),
    times((first?.waitingBytes ?? Number.NaN) / other.waitingBytes),
  ]);
  return { head, rows };
}

/** Every run, so that a reader sees what the medians hide. */
export function ratesTable(rates: readonly { title: string; perSecond: number[] }[]): Table {
  const rounds = Math.max(...rates.map(({ perSecond }) => perSecond.length));
  return {
    head: ['sub-requests/s', ...Array.from({ length: rounds }, (_, i) => `round ${i + 1}`)],
    rows: rates.map(({ title, perSecond }) => [title, ...perSecond.map(whole)]),
  };
}

export function forTerminal({ head, rows }: Table): string {
  const colAligns = head.map((_, i) => (i === 0 ? ('left' as const) : ('right' as const)));
  const style = { head: [], border: [], compact: true };
  const table = new CliTable({ head, colAligns, style, wordWrap: true });
  table.push(...rows);
  return table.toString();
}

export function forMarkdown({ head, rows }: Table): string {
  const align = head.map((_, i) => (i === 0 ? 'l' : 'r'));
  return markdownTable([head, ...rows], { align });
}

export const whole = (value: number): string => Math.round(value).toLocaleString('en-US');
export const fine = (value: number): string => value.toPrecision(3).replace(/\.0+$/, '');
export const times = (ratio: number): string =>
  `${ratio < 0.095 ? ratio.toFixed(3) : ratio.toFixed(2)} ×`;

function range({ least, most }: Spread): string {
  return `${whole(least)}–${whole(most)}`;
}
