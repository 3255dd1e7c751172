import type { RequestCost, WaitingFor } from 'piecework';
import type { RowCounts } from './views.js';

/*
 * Numbers and times as people read them. The page and the command line show them alike.
 */

const whole = new Intl.NumberFormat('en');

/** 12345 → 12,345; from a million on 1.23 M. */
export function count(n: number): string {
  if (n < 1_000_000) return whole.format(n);
  if (n < 1_000_000_000) return `${(n / 1e6).toFixed(n < 1e7 ? 2 : 1)} M`;
  return `${(n / 1e9).toFixed(2)} G`;
}

/** A number where there is little room: 9,999, 12.3 k, 1.2 M. */
export function shortCount(n: number): string {
  if (n < 10_000) return whole.format(n);
  if (n < 999_950) return `${(n / 1e3).toFixed(n < 99_950 ? 1 : 0)} k`;
  return n < 999_950_000 ? `${(n / 1e6).toFixed(1)} M` : `${(n / 1e9).toFixed(1)} G`;
}

/** A rate a second: 0.42, 3.1, 250, 12.4 k. */
export function rate(n: number): string {
  if (n === 0) return '0';
  if (n < 0.1) return `${(n * 60).toPrecision(2)}/min`.replace(/\.0(?=\/)/, '');
  if (n < 10) return n.toFixed(1);
  if (n < 10_000) return whole.format(Math.round(n));
  return `${(n / 1_000).toFixed(1)} k`;
}

/** The same with its unit: 3.1/s, 2.5/min. */
export const perSecond = (n: number) => rate(n).replace(/^[^/]+$/, '$&/s');

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const;

/** The two greatest units: 2 h 5 min. Below ten seconds with a digit. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return '–';
  const left = Math.max(0, ms);
  if (left < 1_000) return `${Math.round(left)} ms`;
  if (left < 10_000) return `${(left / 1_000).toFixed(1)} s`;
  const at = UNITS.findIndex(([unit]) => left >= unit);
  const [unit, name] = UNITS[at] ?? UNITS[3];
  const next = UNITS[at + 1];
  const head = `${Math.floor(left / unit)} ${name}`;
  const rest = next ? Math.floor((left % unit) / next[0]) : 0;
  return next && rest > 0 && left / unit < 10 ? `${head} ${rest} ${next[1]}` : head;
}

/** Time left, in whole seconds, the last of which is not over: 4 min 54 s. */
export const timeLeft = (ms: number) => duration(Math.ceil(ms / 1_000) * 1_000).replace('.0', '');

/** 3 min ago. */
export function ago(at: number, now: number): string {
  const ms = now - at;
  if (ms < 2_000) return 'just now';
  return `${duration(Math.floor(ms / 1_000) * 1_000).replace('.0', '')} ago`;
}

/** in 3 min, or 3 min ago. */
export function until(at: number, now: number): string {
  return at > now ? `in ${timeLeft(at - now)}` : ago(at, now);
}

/** One clock everywhere, as on the axes of charts: 14:05, not 2:05 PM. */
const CLOCK = { hourCycle: 'h23' } as const;

export const time = (at: number) =>
  new Date(at).toLocaleString([], { dateStyle: 'medium', timeStyle: 'medium', ...CLOCK });

/** How many sub-requests are settled. */
export const doneOf = ({ succeeded, failed, cancelled }: RowCounts) =>
  succeeded + failed + cancelled;

export function percent(part: number, whole: number): string {
  if (whole === 0) return '0 %';
  const share = (part / whole) * 100;
  // Never 100 % before the last, nor 0 % after the first.
  if (share > 99 && part < whole) return '99 %';
  if (share < 1 && part > 0) return '1 %';
  return `${Math.round(share)} %`;
}

export function bytes(n: number): string {
  if (n < 1_024 * 1_024) return `${Math.round(n / 1_024)} KB`;
  if (n < 1_024 ** 3) return `${Math.round(n / 1_024 ** 2)} MB`;
  return `${(n / 1_024 ** 3).toFixed(1)} GB`;
}

export const plural = (n: number, one: string, many = `${one}s`) =>
  `${count(n)} ${n === 1 ? one : many}`;

/** 14:05:20. */
export const clockSeconds = (at: number) => new Date(at).toTimeString().slice(0, 8);

/** 14:05, or the minute after: when something is over that takes so long from now. */
export const endsAt = (now: number, ms: number) =>
  clockTime(Math.ceil((now + ms) / 60_000) * 60_000);

/** 14:05, on another day with its date. */
export function clockTime(at: number): string {
  const isToday = new Date(at).toDateString() === new Date().toDateString();
  return new Date(at).toLocaleString(
    [],
    isToday
      ? { timeStyle: 'short', ...CLOCK }
      : { dateStyle: 'medium', timeStyle: 'short', ...CLOCK },
  );
}

/** An amount of something: 1,234,567, 0.003. */
const amount = (n: number) => n.toLocaleString('en', { maximumSignificantDigits: 15 });

/** What a request has cost: names and numbers. */
export const costParts = ({ handlerMs, attempts, usage }: RequestCost): [string, string][] => [
  ['handler time', duration(handlerMs)],
  ['attempts', whole.format(attempts)],
  ...Object.entries(usage).map(([name, n]): [string, string] => [name, amount(n)]),
];

/**
 * How it is called that a request waits for something. A request that waits for its time is shown with that time where
 * there is room; one that is open has the word of its status.
 */
export const WAIT_WORDS: Readonly<Record<WaitingFor, string>> = {
  resume: 'paused',
  queue: 'queue paused',
  worker: 'no ready worker',
  task: 'no handler',
  time: 'held back',
  lease: 'worker silent',
  producer: 'open',
  handler: 'overdue',
  memory: 'Redis full',
  retry: 'waits to retry',
  slots: 'no free slot',
};
