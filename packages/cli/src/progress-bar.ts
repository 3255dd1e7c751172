import type { ProgressReport } from '@piecework/notifier';
import { MultiBar } from 'cli-progress';
import prettyMs from 'pretty-ms';

const number = (n: number) => Math.round(n).toLocaleString('en-US');

/** In whole seconds: below one nobody waits. */
const eta = (etaMs: number | null) =>
  etaMs === null ? '–' : prettyMs(Math.max(1, Math.ceil(etaMs / 1_000)) * 1_000);

/** How often a plain line is printed where there is no terminal, in ms. */
const LINE_EVERY_MS = 5_000;

/** The longest and the shortest bar, in characters; without room for the latter there is none. */
const LONGEST = 30;
const SHORTEST = 5;

/** The bar on the terminal, if there is one now. */
let shown: MultiBar | undefined;

/** Says a line on standard error; above the bar, if there is one. */
export function say(text: string): void {
  if (shown) shown.log(`${text}\n`);
  else console.error(text);
}

/**
 * Shows progress on standard error: a bar on a terminal, a line now and then elsewhere. Returns when
 * the reports end; nothing of the bar is left then.
 */
export async function showProgress(reports: AsyncIterable<ProgressReport>): Promise<void> {
  if (process.stderr.isTTY) await showBar(reports);
  else await showLines(reports);
}

async function showBar(reports: AsyncIterable<ProgressReport>): Promise<void> {
  let latest: ProgressReport | undefined;
  const bar = new MultiBar({
    format: () => (latest ? barLine(latest, process.stderr.columns || 80) : ''),
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: true,
    // The line fits; what is said above it may be longer.
    linewrap: true,
    // Also over what the terminal wrote itself, such as ^C.
    forceRedraw: true,
  });
  const stop = () => {
    // What was said last is still to be written.
    bar.update();
    bar.stop();
  };
  bar.create(1, 0);
  shown = bar;
  process.once('exit', stop);
  try {
    for await (const report of reports) latest = report;
  } finally {
    shown = undefined;
    process.off('exit', stop);
    stop();
  }
}

async function showLines(reports: AsyncIterable<ProgressReport>): Promise<void> {
  let last = performance.now();
  for await (const report of reports) {
    if (performance.now() - last < LINE_EVERY_MS) continue;
    last = performance.now();
    console.error(partsOf(report).join(' · '));
  }
}

/** The line of the bar, shorter than the terminal is wide. */
export function barLine(report: ProgressReport, columns: number): string {
  const share = shareOf(report);
  const text = [`${Math.floor(share * 100)} %`, ...partsOf(report)].join(' · ');
  const size = Math.min(LONGEST, columns - text.length - 2);
  const filled = Math.floor(size * share);
  const bar = size < SHORTEST ? '' : `${'='.repeat(filled)}${'-'.repeat(size - filled)} `;
  return `${bar}${text}`.slice(0, columns - 1);
}

/** How much of the work was done; what was cancelled was not. */
function shareOf({ status, counts }: ProgressReport): number {
  const { total, succeeded, failed } = counts;
  if (total === 0) return status === 'complete' ? 1 : 0;
  return (succeeded + failed) / total;
}

function partsOf({ status, counts, ratePerSecond, etaMs }: ProgressReport): string[] {
  const { total, succeeded, failed, cancelled, inFlight } = counts;
  const parts = [`${number(succeeded + failed)}/${number(total)}`];
  if (status === 'cancelling') parts.push(`stopping: ${number(inFlight)} running`);
  else if (status !== 'complete') {
    parts.push(`${number(ratePerSecond)}/s`);
    if (status === 'open' || succeeded + failed < total) parts.push(`ETA ${eta(etaMs)}`);
  }
  if (failed > 0) parts.push(`${number(failed)} failed`);
  if (cancelled > 0) parts.push(`${number(cancelled)} cancelled`);
  return parts;
}
