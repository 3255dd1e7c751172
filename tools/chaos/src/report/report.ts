import { max, quantileSorted } from 'simple-statistics';
import { KINDS } from '../evidence/findings.js';
import type { Slope } from '../growth/slope.js';
import type { Soak } from '../growth/soak.js';
import { REPEATS, type Verdict } from '../judge/verdict.js';
import { bytes, duration, forMarkdown, forTerminal, type Table, whole } from './table.js';
import { ruleOfThree, trialsOf } from './trials.js';

/** A verdict for the terminal. */
export function report(verdict: Verdict): string {
  return join(verdict, forTerminal, (title) => title);
}

/** The same for a page. */
export function markdown(verdict: Verdict): string {
  return join(verdict, forMarkdown, (title) => `### ${title}`);
}

/** How memory grew over a soak. */
export function soakReport(soak: Soak, show: (table: Table) => string = forTerminal): string {
  const { warmUpMs, settled, tooShort } = soak;
  const note = [
    `${whole(settled)} sub-requests settled; the first ${duration(warmUpMs)} of each are left out;`,
    `in brackets the bounds at 95 % (ten batch means, t with 8 degrees of freedom);`,
    `${tooShort} processes did not live long enough for a slope.`,
  ].join(' ');
  return `${show(growthTable(soak))}\n\n${note}`;
}

export const soakMarkdown = (soak: Soak): string => soakReport(soak, forMarkdown);

function join(
  verdict: Verdict,
  show: (table: Table) => string,
  titled: (title: string) => string,
): string {
  const parts = [
    ...[titled('What must not be'), show(findingsTable(verdict))],
    ...examples(verdict),
    ...[titled('What was done'), show(faultsTable(verdict))],
    ...[titled('What it took'), show(figuresTable(verdict))],
    verdict.clean ? 'Clean.' : 'NOT CLEAN.',
  ];
  return parts.join('\n\n');
}

function findingsTable(verdict: Verdict): Table {
  const trials = trialsOf(verdict);
  const rows = KINDS.map((kind) => {
    const { count } = verdict.findings[kind];
    const tried = trials[kind];
    return [kind, whole(count), count === 0 && tried ? ruleOfThree(tried) : ''];
  });
  return { head: ['', 'seen', 'at 95 %'], rows };
}

function examples({ findings }: Verdict): string[] {
  return KINDS.flatMap((kind) => {
    const some = findings[kind].examples.map((example) => `- ${kind}: ${example}`);
    return some.length > 0 ? [some.join('\n')] : [];
  });
}

function faultsTable({
  runs,
  faults,
  acts,
  requests,
  items,
  executions,
  entries,
  journals,
  taken,
  upheavals,
}: Verdict): Table {
  const told = [
    ['runs', runs],
    ['journals', journals],
    ['entries', entries],
    ['requests', requests.opened],
    ['completions, first generation', requests.generations.first],
    ['completions, later generations', requests.generations.later],
    ['completions told to waiters', requests.told],
    ['sub-requests attempted', items.attempted],
    ['sub-requests acknowledged', items.acknowledged],
    ['succeeded', items.succeeded],
    ['failed', items.failed],
    ['cancelled', items.cancelled],
    ['starts of a handler', executions.starts],
    ...Object.entries(faults),
    ...Object.entries(taken)
      .filter(([, { put }]) => put > 0)
      .map(([queue, { put }]) => [`keys put: ${queue}`, put] as const),
    ...(upheavals.lost > 0 ? ([['acknowledgements in doubt', upheavals.inDoubt]] as const) : []),
    ...(upheavals.steps > 0 ? ([['steps of the clock', upheavals.steps]] as const) : []),
    ...Object.entries(acts).map(([act, n]) => [`meddled: ${act}`, n] as const),
  ] as const;
  return { head: ['', ''], rows: told.map(([name, n]) => [name, whole(n)]) };
}

function figuresTable({ items, executions, cap, durations, samples, faults }: Verdict): Table {
  const { repeats } = executions;
  const kills = faults['kill worker'] ?? 0;
  const perKill = kills === 0 ? '–' : (repeats['after a kill'] / kills).toFixed(2);
  const { workMs, attackMs, drainMs, mostDrainMs } = durations;
  const rate = workMs === 0 ? '–' : `${whole(items.settled / (workMs / 1_000))}/s`;
  const rows = [
    ['sub-requests settled', rate],
    ['sub-requests that ran more than once', whole(executions.again)],
    ...REPEATS.map((why) => [`executions again ${why}`, whole(repeats[why])]),
    ['executions again per kill of a worker', perKill],
    ['from the kill to the next start, p50 / p99 / max', spread(samples.recoveryMs)],
    ['notice of a completion, p50 / p99 / max', spread(samples.noticeMs)],
    ['the same without pub/sub, p50 / p99 / max', spread(samples.withoutNoticeMs)],
    ['workers that outlived their lease', whole(cap.zombieWorkers)],
    ['runs that did', whole(cap.zombieRuns)],
    ['zombie-seconds (of them awake)', pair(cap.zombieSeconds, cap.zombieAwakeSeconds)],
    ['most over a limit, zombies included', whole(cap.mostOver)],
    ['over a limit, sub-request-seconds', cap.overSeconds.toFixed(2)],
    ['times over a limit only in doubt (seconds)', pair(cap.doubtfulPeriods, cap.doubtfulSeconds)],
    ['handlers told to abort', whole(executions.aborted)],
    ['under attack', duration(attackMs)],
    ['to drain after the faults (longest)', `${duration(drainMs)} (${duration(mostDrainMs)})`],
  ];
  return { head: ['', ''], rows };
}

const pair = (a: number, b: number): string =>
  `${Number.isInteger(a) ? whole(a) : a.toFixed(2)} (${b.toFixed(2)})`;

function spread(samples: readonly number[]): string {
  if (samples.length === 0) return 'none';
  const sorted = samples.toSorted((a, b) => a - b);
  const [p50, p99] = [0.5, 0.99].map((p) => duration(quantileSorted(sorted, p)));
  return `${p50} / ${p99} / ${duration(max(sorted))} (n = ${whole(sorted.length)})`;
}

function growthTable({ growths }: Soak): Table {
  const head = ['', 'minutes', 'least', 'most', 'a minute', 'a million settled'];
  const rows = growths.map(({ name, minutes, leastBytes, mostBytes, ...grown }) => [
    ...[name, minutes.toFixed(1), bytes(leastBytes), bytes(mostBytes)],
    ...[grown.perMinute, grown.perMillionSettled].map(bounds),
  ]);
  return { head, rows };
}

function bounds(slope: Slope | undefined): string {
  if (!slope) return '–';
  return `${bytes(slope.perUnit)} (${bytes(slope.low)} to ${bytes(slope.high)})`;
}
