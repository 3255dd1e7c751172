import type { ProgressReport } from '@piecework/notifier';
import { shownText } from '@piecework/protocol/contract';
import { count, duration, perSecond } from '@piecework/views/format';
import cliTruncate from 'cli-truncate';
import { bar as drawn } from './bar.js';
import { say, sayAbove } from './print.js';
import { ALL_SIGNALS } from './stop-signals.js';

/** In whole seconds, at least one. */
const eta = (etaMs: number | null) =>
  etaMs === null ? '–' : duration(Math.max(1, Math.ceil(etaMs / 1_000)) * 1_000).replace('.0', '');

/** How often a plain line is printed where there is no terminal, in ms. */
const LINE_EVERY_MS = 5_000;

/** The longest and the shortest bar, in characters. Without room for the shortest, no bar is drawn. */
const LONGEST = 30;
const SHORTEST = 5;

/**
 * Shows progress on standard error: a bar on a terminal, a line now and then elsewhere. Returns when
 * the reports end, and removes the bar.
 */
export async function showProgress(reports: AsyncIterable<ProgressReport>): Promise<void> {
  if (process.stderr.isTTY) await showBar(reports);
  else await showLines(reports);
}

/** The listeners of bars. Any other listener of a signal decides what it means. */
const ends = new Set<unknown>();

async function showBar(reports: AsyncIterable<ProgressReport>): Promise<void> {
  const { MultiBar } = await import('cli-progress');
  let latest: ProgressReport | undefined;
  const bar = new MultiBar({
    format: () => (latest ? barLine(latest, process.stderr.columns || 80) : ''),
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: true,
    // The bar fits into a line; lines above it may be longer.
    linewrap: true,
    // Also overwrites what the terminal shows by itself, such as ^C.
    forceRedraw: true,
  });
  const stop = () => {
    // Writes the last lines of `say`.
    bar.update();
    bar.stop();
  };
  const end = (signal: NodeJS.Signals) => {
    if (process.listeners(signal).some((one) => !ends.has(one))) return;
    stop();
    process.off(signal, end);
    process.kill(process.pid, signal);
  };
  bar.create(1, 0);
  sayAbove(bar);
  process.once('exit', stop);
  ends.add(end);
  // Before listeners that are called once, which remove themselves when they are called.
  // cure: a signal that ends the process leaves the terminal with a cursor
  for (const signal of ALL_SIGNALS) process.prependListener(signal, end);
  try {
    for await (const report of reports) latest = report;
  } finally {
    sayAbove(undefined);
    process.off('exit', stop);
    for (const signal of ALL_SIGNALS) process.off(signal, end);
    ends.delete(end);
    stop();
  }
}

async function showLines(reports: AsyncIterable<ProgressReport>): Promise<void> {
  let last = performance.now();
  for await (const report of reports) {
    if (performance.now() - last < LINE_EVERY_MS) continue;
    last = performance.now();
    say(partsOf(report).join(' · '));
  }
}

/** The line with the bar, shorter than the terminal is wide. */
export function barLine(report: ProgressReport, columns: number): string {
  const share = shareOf(report);
  const percent = report.why ? [] : [`${Math.floor(share * 100)} %`];
  const text = [...percent, ...partsOf(report)].join(' · ');
  const size = Math.min(LONGEST, columns - text.length - 2);
  const bar = size < SHORTEST ? '' : `${drawn(share, size)} `;
  return cliTruncate(shownText(`${bar}${text}`), columns - 1);
}

/** The share of the work that was done. Cancelled sub-requests were not. */
function shareOf({ status, counts }: ProgressReport): number {
  const { total, succeeded, failed } = counts;
  if (total === 0) return status === 'complete' ? 1 : 0;
  return (succeeded + failed) / total;
}

function partsOf(report: ProgressReport): string[] {
  const { status, counts, running, ratePerSecond, etaMs, why } = report;
  const { total, succeeded, failed, cancelled } = counts;
  // More may be added.
  const soFar = status === 'open' ? ' so far' : '';
  const parts = [`${count(succeeded + failed)}/${count(total)}${soFar}`];
  if (status === 'cancelling') parts.push(`stopping: ${count(running)} running`);
  if (why) parts.push(why);
  else if (status !== 'complete' && status !== 'cancelling') {
    parts.push(`${perSecond(ratePerSecond)}`);
    if (status === 'open' || succeeded + failed < total) parts.push(`ETA ${eta(etaMs)}`);
  }
  if (failed > 0) parts.push(`${count(failed)} failed`);
  if (cancelled > 0) parts.push(`${count(cancelled)} cancelled`);
  return parts;
}
