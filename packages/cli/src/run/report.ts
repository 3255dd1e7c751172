import type { CompletionOutcome, Counts } from '@piecework/notifier';
import prettyMs from 'pretty-ms';
import { type BadRows, leftOutJson, leftOutLine } from '../output/bad-rows.js';
import { kindLine } from '../output/failure-kinds.js';
import { type Kept, keptLines } from '../output/kept.js';
import type { OutputError } from '../output/output.js';
import { print, say } from '../terminal/print.js';
import type { Left } from './files.js';
import { type Filled, filledJson, filledLines } from './fill-out-dir.js';

/** How a run ended, and where its results and failures are. */
export interface RunEnd extends Left {
  readonly id: string;
  readonly outcome: CompletionOutcome;
  /** Whether it was stopped before all of its input was read. */
  readonly isPart: boolean;
  readonly tookMs: number;
  /** Why `--out` does not have all results. */
  readonly cut: OutputError | undefined;
  /** Why `--joblog` does not have all lines. */
  readonly logCut: OutputError | undefined;
  readonly filled: Filled | undefined;
  /** The records that were left out. */
  readonly badRows: BadRows | undefined;
  /** Further remarks, such as slots that were idle. */
  readonly notes: readonly string[];
  /** How to go on after a stop, if nothing else says it. */
  readonly again: readonly string[];
  /** What stays in Redis; undefined: the request was dropped. */
  readonly kept: Kept | undefined;
}

export const DISCARDED = 'no --out: what the programs printed was discarded (--out - shows it)';

/** How many kinds of failures are shown. */
const SHOWN = 5;
/** How long a line may be where there is no terminal. */
const COLUMNS = 200;

const number = (n: number) => n.toLocaleString('en-US');

/** Reports how a run ended: a line of JSON on standard output, or words on standard error. */
export function reportRun(end: RunEnd, json: boolean): void {
  if (json) print(JSON.stringify(jsonOf(end)));
  else for (const line of linesOf(end)) say(line);
}

/** A run that was stopped and can be continued. */
export interface RunStop {
  readonly kept: Kept;
  readonly counts: Counts;
  readonly tookMs: number;
  /** Whether its input was not read to the end yet. */
  readonly isOpen: boolean;
  readonly filled: Filled | undefined;
}

/** Reports how far a run that was stopped has come. */
export function reportStopped(
  { kept, counts, tookMs, isOpen, filled }: RunStop,
  json: boolean,
): void {
  const { id } = kept;
  if (json) {
    const took = Math.round(tookMs);
    const stop = { id, status: 'stopped', counts, tookMs: took, kept: true, ...filledJson(filled) };
    print(JSON.stringify(stop));
    return;
  }
  const { total, succeeded, failed } = counts;
  const done = `${number(succeeded)} succeeded, ${number(failed)} failed`;
  say(`stopped: ${done} of ${number(total)}${isOpen ? ' so far' : ''} in ${prettyMs(tookMs)}`);
  for (const line of [...filledLines(filled), ...keptLines(kept)]) say(line);
}

function jsonOf(end: RunEnd) {
  const { id, outcome, tookMs, kinds, failuresFile, cut, resultsFile, notes, kept, badRows } = end;
  const { status, counts, generation } = outcome;
  return {
    ...{ id, status, counts, generation, tookMs: Math.round(tookMs) },
    ...(kinds.length > 0 ? { failures: kinds } : {}),
    ...{
      failuresFile,
      resultsFile,
      outError: cut?.message,
      joblogError: end.logCut?.message,
      note: notes.length > 0 ? notes.join('; ') : undefined,
      kept: kept !== undefined,
    },
    ...filledJson(end.filled),
    ...leftOutJson(badRows),
  };
}

function linesOf(end: RunEnd): string[] {
  const { kinds, failuresFile, cut, logCut, resultsFile, notes, again, kept, badRows } = end;
  const columns = process.stderr.columns || COLUMNS;
  const lines = [summary(end), ...kinds.slice(0, SHOWN).map((kind) => kindLine(kind, columns))];
  const others = kinds.slice(SHOWN);
  const count = others.reduce((sum, kind) => sum + kind.count, 0);
  const kindsLeft = others.length === 1 ? '1 other kind' : `${number(others.length)} other kinds`;
  if (count > 0) lines.push(`  … and ${kindsLeft}: ${number(count)} ×`);
  if (failuresFile) lines.push(`all failures: ${failuresFile}`);
  lines.push(...filledLines(end.filled));
  if (cut?.isClosed) lines.push(`${cut.message} before it had all of ${results(end)} results`);
  else if (cut)
    lines.push(`${cut.message}; it has ${number(cut.written)} of ${results(end)} results`);
  if (logCut)
    lines.push(
      `--joblog ${logCut.message}; it has ${number(logCut.written)} of ${results(end)} lines`,
    );
  if (resultsFile) lines.push(`all results: ${resultsFile}`);
  else if (((cut && !cut.isClosed) || end.filled?.cut) && !kept)
    lines.push('no other folder had room for the results: they are lost');
  const leftOut = leftOutLine(badRows);
  if (leftOut) lines.push(leftOut);
  lines.push(...notes, ...again);
  if (kept) lines.push(...keptLines(kept));
  return lines;
}

const results = ({ outcome: { counts } }: RunEnd) => number(counts.succeeded + counts.failed);

function summary({ outcome, isPart, tookMs }: RunEnd): string {
  const { status, counts, endReason } = outcome;
  const parts = [`${number(counts.succeeded)} succeeded`, `${number(counts.failed)} failed`];
  if (counts.cancelled > 0) parts.push(`${number(counts.cancelled)} cancelled`);
  const why = endReason === 'deadline' ? ', as the deadline passed' : '';
  return `${status}: ${parts.join(', ')} of ${number(counts.total)}${isPart ? ' read so far' : ''} in ${prettyMs(tookMs)}${why}`;
}
