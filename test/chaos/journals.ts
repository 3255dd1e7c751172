import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Event } from '../../tools/chaos/src/contract/history.js';
import { KINDS, type Kind } from '../../tools/chaos/src/evidence/findings.js';
import { judge } from '../../tools/chaos/src/judge/judge.js';
import type { Verdict } from '../../tools/chaos/src/judge/verdict.js';

export interface Line {
  readonly ms: number;
  readonly process: string;
  readonly event: Event;
}

export const at = (ms: number, process: string, event: Event): Line => ({ ms, process, event });

/** Begin and end of a handler. */
export function ran(
  process: string,
  request: string,
  index: number,
  [from, to]: readonly [from: number, to?: number],
  ended: 'succeeded' | 'failed' | 'aborted' = 'succeeded',
  attempt = 1,
): Line[] {
  const run = { does: 'run', request, index, attempt, crashes: 0, item: index } as const;
  const end = to === undefined ? [] : [at(to, process, { did: 'run', request, index, ended })];
  return [at(from, process, run), ...end];
}

/** Submits `size` items, at `ms`. */
export function submitted(request: string, size: number, limit: number, ms = 0): Line[] {
  const range = { request, from: 0, to: size };
  return [
    at(ms, 'producer', { does: 'open', request, limit }),
    at(ms, 'producer', { does: 'append', ...range }),
    at(ms + 1, 'producer', { did: 'append', ...range }),
    at(ms + 1, 'producer', { does: 'seal', request, total: size }),
    at(ms + 1, 'producer', { did: 'seal', request, generation: 7, total: size }),
  ];
}

export const NO_COUNTS = {
  ...{ total: 0, ready: 0, inFlight: 0, delayed: 0 },
  ...{ succeeded: 0, failed: 0, cancelled: 0 },
};

export const countsOf = (succeeded: number, failed = 0, cancelled = 0) => ({
  ...NO_COUNTS,
  ...{ total: succeeded + failed + cancelled, succeeded, failed, cancelled },
});

type Counts = ReturnType<typeof countsOf>;

/** A waiter is told of the completion. */
export function told(
  request: string,
  counts: Counts,
  { ms = 1_000, process = 'waiter', generation = 7, heardMs = Number.NaN } = {},
): Line[] {
  const heard = {
    ...{ ...outcomeOf(counts, generation), notices: true, latencyMs: 5 },
    ...(Number.isNaN(heardMs) ? {} : { heardNs: String(heardMs * 1e6) }),
  };
  return [
    at(ms - 900, process, { does: 'await', request }),
    at(ms, process, { did: 'await', request, ...heard }),
  ];
}

export const outcomeOf = (counts: Counts, generation = 7) => {
  const status: 'succeeded' | 'failed' = counts.failed > 0 ? 'failed' : 'succeeded';
  return { generation, status, counts };
};

export type Result = {
  readonly index: number;
  readonly status: 'succeeded' | 'failed';
  readonly item: number | null;
};

export const value = (index: number, item = index): Result => ({
  ...{ index, status: 'succeeded', item },
});

export function wasRead(
  request: string,
  results: readonly Result[],
  counts: Counts,
  { ms = 1_100, process = 'waiter' } = {},
): Line {
  const outcome = outcomeOf(counts);
  return at(ms, process, { did: 'read', request, generation: 7, results, outcome, over: true });
}

/** It was inspected and dropped, everything drained, and no key was left. */
export function ended(request: string, counts: Counts, left: readonly string[] = []): Line[] {
  return [
    at(1_200, 'observer', { did: 'inspect', request, generation: 7, counts }),
    at(1_300, 'producer', { does: 'drop', request }),
    at(1_301, 'producer', { did: 'drop', request }),
    at(1_250, 'observer', { does: 'drain', open: 1 }),
    at(1_400, 'observer', { did: 'drain' }),
    at(1_500, 'observer', { did: 'look for keys', left }),
  ];
}

export const started = (process: string, leaseMs = 2_000): Line =>
  at(0, process, { did: 'start', boot: `boot of ${process}`, leaseMs });

/** Writes each process' lines into its journal, `tails` behind them, and calls `use`. */
export async function withJournals<T>(
  lines: readonly Line[],
  use: (folder: string) => Promise<T>,
  tails: Readonly<Record<string, string>> = {},
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-judge-test-'));
  try {
    const journals = new Map<string, string>();
    for (const { ms, process, event } of lines.toSorted((a, b) => a.ms - b.ms)) {
      const line = JSON.stringify({ ns: String(Math.round(ms * 1e6)), process, event });
      journals.set(process, `${journals.get(process) ?? ''}${line}\n`);
    }
    for (const [process, text] of journals) {
      writeFileSync(join(folder, `${process}.ndjson`), text + (tails[process] ?? ''));
    }
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export const judged = (
  lines: readonly Line[],
  tails?: Readonly<Record<string, string>>,
): Promise<Verdict> => withJournals(lines, judge, tails);

/** How often each kind was found, those that were not left out. */
export function foundIn(verdict: Verdict): Partial<Record<Kind, number>> {
  return Object.fromEntries(
    KINDS.map((kind) => [kind, verdict.findings[kind].count] as const).filter(([, n]) => n > 0),
  );
}
