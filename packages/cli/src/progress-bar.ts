import type { ProgressReport } from '@piecework/notifier';
import { SingleBar } from 'cli-progress';
import prettyMs from 'pretty-ms';

const number = (n: number) => Math.round(n).toLocaleString('en-US');
const eta = ({ etaMs }: ProgressReport) =>
  etaMs === null ? '–' : prettyMs(etaMs, { secondsDecimalDigits: 0 });

/** How often a plain line is printed where there is no terminal, in ms. */
const LINE_EVERY_MS = 5_000;

/**
 * Shows progress on standard error: a bar on a terminal, a line now and then elsewhere. Returns when
 * the reports end.
 */
export async function showProgress(reports: AsyncIterable<ProgressReport>): Promise<void> {
  if (process.stderr.isTTY) await showBar(reports);
  else await showLines(reports);
}

async function showBar(reports: AsyncIterable<ProgressReport>): Promise<void> {
  const bar = new SingleBar({
    format: '{bar} {percentage} % · {done}/{all} · {rate}/s · ETA {left}{failures}',
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: false,
    barsize: 30,
  });
  bar.start(1, 0, { done: 0, all: 0, rate: 0, left: '–', failures: '' });
  try {
    for await (const report of reports) {
      const { total, succeeded, failed, cancelled } = report.counts;
      const done = succeeded + failed + cancelled;
      bar.setTotal(Math.max(1, total));
      bar.update(
        total === 0 && report.status !== 'complete' ? 0 : Math.max(done, total === 0 ? 1 : 0),
        {
          done: number(done),
          all: number(total),
          rate: number(report.ratePerSecond),
          left: eta(report),
          failures: failed > 0 ? ` · ${number(failed)} failed` : '',
        },
      );
    }
  } finally {
    bar.stop();
  }
}

async function showLines(reports: AsyncIterable<ProgressReport>): Promise<void> {
  let last = performance.now();
  for await (const report of reports) {
    if (performance.now() - last < LINE_EVERY_MS) continue;
    last = performance.now();
    const { total, succeeded, failed, cancelled } = report.counts;
    const done = succeeded + failed + cancelled;
    const rate = `${number(report.ratePerSecond)}/s`;
    console.error(
      `${number(done)}/${number(total)} done · ${rate} · ETA ${eta(report)} · ${number(failed)} failed`,
    );
  }
}
