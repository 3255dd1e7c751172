import { queueKeys } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';
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

it('the names of a queue’s keys are kept for the queues used last, not for each that ever was', () => {
  const first = queueKeys('first');
  for (let i = 0; i < 999; i += 1) queueKeys(`other-${i}`);
  expect(queueKeys('first')).toBe(first);
  for (let i = 0; i < 1_000; i += 1) queueKeys(`another-${i}`);
  expect(queueKeys('first')).not.toBe(first);
});
