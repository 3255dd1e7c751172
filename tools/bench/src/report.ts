import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { aimsTable } from './aims.js';
import { contenders } from './contenders/index.js';
import { figureParts } from './figure/figure-report.js';
import type { Outcome } from './outcome.js';
import { cutOffNotes, type Summary } from './summary.js';
import { figuresTable, forMarkdown, ratesTable, ratiosTable, whole } from './tables.js';

const BY_HAND = '<!-- Written by hand from here on; --report keeps it. -->';

/** Writes the report. If it replaces a file, the part of that file below the mark is kept. */
export function writeReport(file: string, outcome: Outcome): void {
  const path = resolve(file);
  const before = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const at = before.indexOf(BY_HAND);
  const byHand = at < 0 ? `${BY_HAND}\n` : before.slice(at);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${reportOf(path, outcome)}\n${byHand}`);
}

function reportOf(path: string, outcome: Outcome): string {
  const { command, surroundings, settings, size } = outcome;
  const { date, revision, machine, load, versions, persistence } = surroundings;
  const parts = [
    `# Piecework measured, ${date.slice(0, 10)}`,
    `    ${command}`,
    list([
      `revision ${revision}, ${date} UTC`,
      machine,
      `load average before the first run: ${load}`,
      versions,
      `persistence: ${persistence}`,
      `${whole(settings.count)} sub-requests of ${settings.payloadBytes} bytes a run, ${settings.rounds} rounds in turn, medians; ${settings.warmUpCount} to warm up in each process`,
      `size of the figures: ${size}`,
      `concurrency ${settings.concurrency}, one worker; producer and worker share one process, whose CPU time is “client µs”; Redis is another process on the same machine`,
    ]),
    ...rateParts(outcome),
    ...figureParts(path, outcome),
  ];
  return `${parts.join('\n\n')}\n`;
}

/** The contenders side by side. */
function rateParts({ summaries, settings }: Outcome): string[] {
  const [first] = summaries;
  if (!first) return [];
  const aims = aimsTable(summaries);
  return [
    '## Rates',
    'From the call that submits until the last result is read; all columns but the first are per sub-request. “Redis µs” is CPU time of its main thread; “waiting bytes” its memory with all submitted and no worker.',
    forMarkdown(figuresTable(summaries)),
    ...cutOffNotes(summaries, settings.budgetMs).map((note) => `\\${note}`),
    '### Ratios',
    `${first.entrant.title} ÷ the other: more is better for the rate, less for the rest. In brackets the least and the most of the ratios round by round.`,
    forMarkdown(ratiosTable(summaries)),
    ...(aims ? ['### Aims', forMarkdown(aims)] : []),
    '### Every run',
    forMarkdown(ratesTable(summaries)),
    '### Configuration',
    'The handler is an async function that returns a number of its payload. Every result is checked: each number exactly once, or the run fails.',
    list(summaries.map(configuration)),
  ];
}

function configuration({ entrant }: Summary): string {
  return `**${entrant.title}**: ${contenders[entrant.contender].configuration}`;
}

function list(lines: string[]): string {
  return lines.map((line) => `- ${line}`).join('\n');
}
