import CliTable from 'cli-table3';
import { markdownTable } from 'markdown-table';
import type { Spread, Summary } from './summary.js';

export interface Table {
  readonly head: string[];
  readonly rows: string[][];
}

/** The measurements, one row per entrant. */
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

/**
 * Ratios of the first entrant to each of the others, by medians. For the rate and Redis' CPU, also the least and the
 * greatest ratio of a round, which shows how much is noise.
 */
export function ratiosTable([first, ...others]: readonly Summary[]): Table {
  const head = [
    `${first?.entrant.title ?? ''} ÷`,
    'rate (least–most)',
    'Redis CPU (least–most)',
    'client CPU',
    'commands sent',
    'wire bytes',
    'waiting bytes',
  ];
  if (!first) return { head, rows: [] };
  const rows = others.map((other) => [
    other.entrant.title,
    spreadRatio(first.perSecond, other.perSecond),
    spreadRatio(first.redisMicros, other.redisMicros),
    ...(['clientMicros', 'sent', 'wireBytes'] as const).map((figure) =>
      times(first[figure].median / other[figure].median),
    ),
    times(first.waitingBytes / other.waitingBytes),
  ]);
  return { head, rows };
}

/** Every run, so that a reader sees what the medians hide. */
export function ratesTable(summaries: readonly Summary[]): Table {
  const rounds = summaries[0]?.perSecond.each.length ?? 0;
  return {
    head: ['sub-requests/s', ...Array.from({ length: rounds }, (_, i) => `round ${i + 1}`)],
    rows: summaries.map(({ entrant, perSecond }) => [entrant.title, ...perSecond.each.map(whole)]),
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

// A run that was cut off at once has no ratio.
const known = (value: number, shown: string): string => (Number.isFinite(value) ? shown : '–');
const bare = (ratio: number): string => known(ratio, ratio.toFixed(ratio < 0.2 ? 3 : 2));

export const whole = (value: number): string =>
  known(value, Math.round(value).toLocaleString('en-US'));
export const fine = (value: number): string =>
  known(value, value >= 100 ? whole(value) : value.toPrecision(3).replace(/\.0+$/, ''));
export const times = (ratio: number): string => `${bare(ratio)} ×`;

function spreadRatio(first: Spread, other: Spread): string {
  const ratios = first.each.map((value, round) => value / (other.each[round] ?? Number.NaN));
  const range = `${bare(Math.min(...ratios))}–${bare(Math.max(...ratios))}`;
  return `${times(first.median / other.median)} (${range})`;
}

function range({ least, most }: Spread): string {
  return `${whole(least)}–${whole(most)}`;
}
