import { TAKEN } from '../contract/history.js';
import { type Finding, KINDS } from '../evidence/findings.js';
import type { Verdict } from '../judge/verdict.js';

const EXAMPLES = 10;

/** Several runs as one: sums, the greatest of what is called `most`, all samples together. */
export function combine([first, ...others]: readonly Verdict[]): Verdict {
  if (!first) throw new RangeError('no verdict to combine');
  return others.reduce(both, first);
}

function both(a: Verdict, b: Verdict): Verdict {
  const findings = Object.fromEntries(
    KINDS.map((kind) => [kind, found(a.findings[kind], b.findings[kind])]),
  ) as Verdict['findings'];
  return {
    runs: a.runs + b.runs,
    clean: a.clean && b.clean,
    findings,
    journals: a.journals + b.journals,
    entries: a.entries + b.entries,
    faults: sums(a.faults, b.faults),
    acts: sums(a.acts, b.acts),
    requests: {
      ...sums(flat(a.requests), flat(b.requests)),
      generations: sums(a.requests.generations, b.requests.generations),
    },
    items: sums(a.items, b.items),
    executions: {
      ...sums(flat(a.executions), flat(b.executions)),
      repeats: sums(a.executions.repeats, b.executions.repeats),
    },
    taken: Object.fromEntries(
      TAKEN.map((queue) => [queue, sums(a.taken[queue], b.taken[queue])]),
    ) as Verdict['taken'],
    upheavals: sums(a.upheavals, b.upheavals),
    cap: { ...sums(a.cap, b.cap), mostOver: Math.max(a.cap.mostOver, b.cap.mostOver) },
    durations: {
      ...sums(a.durations, b.durations),
      mostDrainMs: Math.max(a.durations.mostDrainMs, b.durations.mostDrainMs),
    },
    samples: {
      recoveryMs: [...a.samples.recoveryMs, ...b.samples.recoveryMs],
      noticeMs: [...a.samples.noticeMs, ...b.samples.noticeMs],
      withoutNoticeMs: [...a.samples.withoutNoticeMs, ...b.samples.withoutNoticeMs],
    },
  };
}

function found(a: Finding, b: Finding): Finding {
  const examples = [...a.examples, ...b.examples].slice(0, EXAMPLES);
  return { count: a.count + b.count, examples };
}

type Flat<T> = { [K in keyof T as T[K] extends number ? K : never]: T[K] };

/** The numbers of an object; what is nested is added up by itself. */
function flat<T extends object>(some: T): Flat<T> {
  return Object.fromEntries(
    Object.entries(some).filter(([, value]) => typeof value === 'number'),
  ) as Flat<T>;
}

/** Adds number to number, name by name; what only one has is taken as it is. */
function sums<T extends object>(a: T, b: T): T {
  const [left, right] = [a, b] as unknown as Record<string, number>[];
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return Object.fromEntries(
    [...names].map((name) => [name, (left?.[name] ?? 0) + (right?.[name] ?? 0)]),
  ) as T;
}
