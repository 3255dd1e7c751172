import type { Kind } from '../evidence/findings.js';
import type { Verdict } from '../judge/verdict.js';

/** How often something could have gone wrong, and what counts as one such time. */
export interface Trials {
  readonly n: number;
  readonly of: string;
}

export function trialsOf({
  items,
  requests,
  executions,
  taken,
}: Verdict): Partial<Record<Kind, Trials>> {
  const completed = { n: requests.completed, of: 'completed requests' };
  return {
    lost: { n: items.acknowledged, of: 'acknowledged sub-requests' },
    unexpected: { n: items.read, of: 'results that were read' },
    'counted twice': { n: items.settled, of: 'settled sub-requests' },
    miscounted: completed,
    'completed twice': completed,
    'never completed': { n: requests.opened, of: 'requests' },
    'told as completed': { n: requests.told, of: 'waits' },
    'in two hands': { n: sumOf(taken, 'taken'), of: 'keys of other queues' },
    'came back': { n: sumOf(taken, 'ended'), of: 'ends that counted' },
    'cap exceeded': { n: executions.starts, of: 'starts of a handler' },
    'key left': { n: requests.dropped, of: 'dropped requests' },
  };
}

const sumOf = (taken: Verdict['taken'], what: 'taken' | 'ended'): number =>
  Object.values(taken).reduce((sum, each) => sum + each[what], 0);

/**
 * The rule of three: what was not seen once in n independent trials is, at 95 %, rarer than 3 in n.
 * A zero is no proof of never.
 */
export function ruleOfThree({ n, of }: Trials): string {
  if (n === 0) return 'not tried';
  return `fewer than 3/${n.toLocaleString('en-US')} of ${of} (${(3 / n).toExponential(1)})`;
}
