import CliTable from 'cli-table3';
import { markdownTable } from 'markdown-table';

export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export function forTerminal({ head, rows }: Table): string {
  const colAligns = head.map((_, i) => (i === 0 ? ('left' as const) : ('right' as const)));
  const style = { head: [], border: [], compact: true };
  const table = new CliTable({ head: [...head], colAligns, style });
  table.push(...rows.map((row) => [...row]));
  return table.toString();
}

export function forMarkdown({ head, rows }: Table): string {
  const align = head.map((_, i) => (i === 0 ? 'l' : 'r'));
  return markdownTable(
    [head, ...rows].map((row) => [...row]),
    { align },
  );
}

export const whole = (value: number): string => Math.round(value).toLocaleString('en-US');

/** A duration for people: ms below ten seconds. */
export const duration = (ms: number): string =>
  ms < 10_000 ? `${whole(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;

const MIB = 1_048_576;
/** Bytes for people, signed where they may be a change. */
export const bytes = (value: number): string =>
  Math.abs(value) < MIB / 10
    ? `${(value / 1_024).toFixed(1)} KiB`
    : `${(value / MIB).toFixed(2)} MiB`;
