import { queueKeys } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';
import { ParkedSearch } from '../../packages/worker/dist/fetch/parked-search.js';
import { Outcomes } from '../../packages/worker/dist/request/outcomes.js';

const failed = (index: number, payload: number) => ({
  ...{ entry: `1-${index}`, kind: 'f' as const, value: '{}', delayMs: 0, payload },
});

describe('what a worker settles in one call', () => {
  it('is bounded by the payloads that are kept with failures', () => {
    const outcomes = new Outcomes();
    for (let i = 0; i < 4; i += 1) outcomes.push(failed(i, 600_000));
    expect([outcomes.next().length, outcomes.next().length, outcomes.size]).toEqual([1, 1, 2]);
  });

  it('is fewer failures than successes', () => {
    const outcomes = new Outcomes();
    for (let i = 0; i < 500; i += 1) outcomes.push(failed(i, 1));
    expect(outcomes.next()).toHaveLength(166);
    const others = new Outcomes();
    for (let i = 0; i < 600; i += 1) others.push({ entry: `1-${i}`, kind: 's', value: '1' });
    expect(others.next()).toHaveLength(500);
  });
});

describe('the search of a worker among parked requests', () => {
  it('continues after the last page, and its tasks take turns', () => {
    const search = new ParkedSearch(['a', 'b', 'c']);
    expect(search.next()).toEqual({ tasks: ' a b c ', after: '' });
    search.continueAfter('b\0id');
    expect(search.next()).toEqual({ tasks: ' b c a ', after: 'b\0id' });
    search.continueAfter('');
    expect(search.next()).toEqual({ tasks: ' b c a ', after: '' });
    expect(new ParkedSearch('*').next()).toEqual({ tasks: '*', after: '' });
  });
});

it('the names of a queue’s keys are kept for the queues used last, not for each that ever was', () => {
  const first = queueKeys('first');
  for (let i = 0; i < 999; i += 1) queueKeys(`other-${i}`);
  expect(queueKeys('first')).toBe(first);
  for (let i = 0; i < 1_000; i += 1) queueKeys(`another-${i}`);
  expect(queueKeys('first')).not.toBe(first);
});
