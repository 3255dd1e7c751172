import { quantileSorted } from 'simple-statistics';
import type { Fault } from '../contract/history.js';
import { readJournals } from '../evidence/read-journals.js';

/*
 * How long the fleet stalled at each fault: the longest time without the start of a handler that overlaps the fault or
 * the second after it.
 */

const BEHIND_MS = 1_000;

/** For comparison, the rest of the time is divided into pieces of this length. */
const PIECE_MS = 2_000;

export interface Stalls {
  readonly fault: Fault | 'none of these';
  readonly count: number;
  readonly p50Ms: number;
  readonly maxMs: number;
  /** Repeated runs in that time: the run before had succeeded, or was cut off. */
  readonly again: number;
  readonly mostAgain: number;
}

export async function stallsOf(folder: string, faults: readonly Fault[]): Promise<Stalls[]> {
  const seen: Seen[] = [];
  const struck: { readonly fault: Fault; readonly fromMs: number; toMs: number }[] = [];
  await readJournals(folder, ({ ns, event }) => {
    const ms = Number(ns) / 1e6;
    if ('does' in event && event.does === 'run')
      seen.push({ ms, run: `${event.request} ${event.index}`, ended: undefined });
    if ('did' in event && event.did === 'run')
      seen.push({ ms, run: `${event.request} ${event.index}`, ended: event.ended });
    if ('does' in event && event.does === 'fault')
      struck.push({ fault: event.fault, fromMs: ms, toMs: Number.POSITIVE_INFINITY });
    if ('did' in event && event.did === 'fault') {
      const open = struck.find(
        ({ fault, toMs }) => fault === event.fault && toMs === Number.POSITIVE_INFINITY,
      );
      if (open) open.toMs = ms;
    }
  });
  const begins = beginsOf(seen);
  const of = (fault: Stalls['fault'], windows: readonly Window[]): Stalls[] => {
    if (windows.length === 0) return [];
    const stalls = windows.map((window) => longest(begins, window)).sort((x, y) => x - y);
    const again = windows.map(
      (window) => begins.filter((it) => it.again && isIn(it, window)).length,
    );
    return [
      {
        ...{ fault, count: windows.length },
        p50Ms: Math.round(quantileSorted(stalls, 0.5)),
        maxMs: Math.round(quantileSorted(stalls, 1)),
        again: again.reduce((sum, each) => sum + each),
        mostAgain: Math.max(...again),
      },
    ];
  };
  const over = struck
    .filter(({ toMs }) => toMs !== Number.POSITIVE_INFINITY)
    .map((it) => ({ ...it, toMs: it.toMs + BEHIND_MS }));
  const ofThese = over.filter(({ fault }) => faults.includes(fault));
  const quiet = piecesOf(begins).filter(
    (piece) => !ofThese.some(({ fromMs, toMs }) => fromMs < piece.toMs && piece.fromMs < toMs),
  );
  return [
    ...faults.flatMap((each) =>
      of(
        each,
        over.filter(({ fault }) => fault === each),
      ),
    ),
    ...of('none of these', quiet),
  ];
}

interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

const isIn = ({ ms }: { ms: number }, { fromMs, toMs }: Window) => fromMs <= ms && ms <= toMs;

function piecesOf(begins: readonly Begin[]): Window[] {
  const [first = 0, last = 0] = [begins[0]?.ms, begins.at(-1)?.ms];
  const count = Math.floor((last - first) / PIECE_MS);
  return Array.from({ length: count }, (_, i) => ({
    fromMs: first + i * PIECE_MS,
    toMs: first + (i + 1) * PIECE_MS,
  }));
}

interface Seen {
  readonly ms: number;
  readonly run: string;
  /** undefined: it begins. */
  readonly ended: string | undefined;
}

interface Begin {
  readonly ms: number;
  readonly again: boolean;
}

/** All starts, marked if they repeat a run. A start after a failure or a `holdRequest` is no repetition. */
function beginsOf(seen: Seen[]): Begin[] {
  seen.sort((a, b) => a.ms - b.ms);
  const last = new Map<string, string>();
  const begins: Begin[] = [];
  for (const { ms, run, ended } of seen) {
    if (ended === undefined) {
      const before = last.get(run);
      begins.push({ ms, again: before !== undefined && before !== 'failed' && before !== 'held' });
    }
    last.set(run, ended ?? 'begun');
  }
  return begins;
}

function longest(begins: readonly Begin[], { fromMs, toMs }: Window): number {
  let most = 0;
  for (let i = 1; i < begins.length; i += 1) {
    const [before, after] = [begins[i - 1]?.ms ?? 0, begins[i]?.ms ?? 0];
    if (after < fromMs) continue;
    if (before > toMs) break;
    most = Math.max(most, after - before);
  }
  return most;
}
