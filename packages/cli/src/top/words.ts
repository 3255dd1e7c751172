import { shownText } from '@piecework/protocol/contract';
import type { Row, Verdict } from '@piecework/views';
import {
  ago,
  count,
  doneOf,
  percent,
  perSecond,
  timeLeft,
  until,
  WAIT_WORDS,
} from '@piecework/views/format';
import { bar } from '../terminal/bar.js';
import type { Tone } from '../terminal/colour.js';

/** What is no trouble to wait for. */
const PASSES: ReadonlySet<string> = new Set(['producer', 'slots']);

/** What a row is called in the column of states. */
export function stateOf(row: Row, now: number): readonly [word: string, tone: Tone | undefined] {
  const { outcome, status, waitingFor, heldUntil, counts } = row;
  if (outcome === 'succeeded') return [outcome, 'good'];
  if (outcome === 'failed') return [outcome, 'bad'];
  if (outcome !== '') return [shownText(outcome), 'quiet'];
  if (status === 'cancelling') return [status, 'warning'];
  if (waitingFor === 'time') return [`due ${until(heldUntil, now)}`, 'quiet'];
  if (waitingFor !== '')
    return [WAIT_WORDS[waitingFor], PASSES.has(waitingFor) ? undefined : 'warning'];
  if (counts.running > 0) return ['running', 'busy'];
  return status === 'open' ? ['open', undefined] : ['waiting', undefined];
}

/** '████░░░░  61 %' */
export function progressOf({ counts }: Row, size: number): string {
  const done = doneOf(counts);
  const share = counts.total > 0 ? done / counts.total : 0;
  return `${bar(share, size)} ${percent(done, counts.total).padStart(5)}`;
}

/** Sub-requests a second; '' when nothing is settled. */
export const rateOf = ({ rate }: Row): string => (rate > 0 ? perSecond(rate) : '');

/** Time left, or since when it has ended. */
export function leftOf({ status, completedAt, etaMs, waitingFor }: Row, now: number): string {
  if (status === 'complete') return completedAt > 0 ? ago(completedAt, now) : '';
  if (etaMs === null || waitingFor !== '') return '';
  return timeLeft(etaMs);
}

export const limitOf = ({ limit }: Row): string => (limit === null ? 'none' : count(limit));

const MARKS: Readonly<Record<Verdict['level'], readonly [string, Tone]>> = {
  error: ['✗', 'bad'],
  warning: ['!', 'warning'],
  ok: ['·', 'quiet'],
};

/** The sign before a finding, and its colour. */
export const markOf = (level: Verdict['level']) => MARKS[level];

/** How to do here what a cure names. */
const HERE: readonly (readonly [string, string])[] = [
  ['See Errors', 'See the errors (key e)'],
  ['See Workers', 'See the workers (key w)'],
  ['Run the checks', 'Run the checks (key c)'],
  ['Resume the queue', 'piecework resume --queue-wide resumes it'],
];

export const cureText = ({ cure }: Verdict): string =>
  shownText(HERE.reduce((text, [said, here]) => text.replace(said, here), cure));

/** 'No worker serves mail. → Start workers with handlers for it.' */
export function findingText(finding: Verdict): string {
  const cure = cureText(finding);
  return shownText(finding.what) + (cure === '' ? '' : ` → ${cure}`);
}
