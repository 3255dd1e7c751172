import { checkOptions, option } from '@piecework/protocol';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { optionsDigest } from '../../packages/producer/dist/create/digest.js';
import {
  checkRequestOptions,
  type RequestOptions,
  requestOptions,
} from '../../packages/producer/dist/create/options.js';
import { PreparedOptions } from '../../packages/producer/dist/create/prepared-options.js';

/** Values that look alike as texts, and of which some options allow one and refuse the other. */
const values: readonly unknown[] = [
  ...[
    undefined,
    null,
    Number.NaN,
    'null',
    'NaN',
    0,
    '0',
    1,
    '1',
    5n,
    5,
    5_000,
    '5000',
    true,
    'true',
    'a',
  ],
  ...[new Date(5_000), new Date(5_000).toISOString(), new Date(Number.NaN)],
  ...[{}, [], [1], { delayMs: 5 }, { type: 'fixed', delayMs: 5 }, { delayMs: 5, type: 'fixed' }],
  ...[
    { type: 'fixed', delayMs: '5' },
    { type: 'fixed', delayMs: Number.NaN },
    { type: 'fixed', delayMs: null },
  ],
  ...[{ percent: 5 }, '5%', { key: 'k' }, 'keep', 'discard', 'cancel', Symbol('s'), () => 1],
  { toJSON: () => ({ type: 'fixed', delayMs: 5 }) },
];
const names = [...Object.keys(requestOptions), 'unknown'];
const optionsOf = (some: fc.Arbitrary<string>) =>
  fc
    .array(fc.tuple(some, fc.constantFrom(...values)), { maxLength: 3 })
    .map((entries) => Object.fromEntries(entries) as RequestOptions);
/** One after the other with the same few options, so that many differ in nothing but the type of a value. */
const sequences = fc
  .uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 2 })
  .chain((few) => fc.array(optionsOf(fc.constantFrom(...few)), { minLength: 20, maxLength: 60 }));

const outcome = (call: () => unknown): unknown => {
  try {
    return { value: call() };
  } catch (error) {
    return { refused: String(error) };
  }
};

it('options that were checked before are checked as if they were new', () => {
  fc.assert(
    fc.property(sequences, (sequence) => {
      const prepared = new PreparedOptions('req');
      for (const options of sequence) {
        const again = outcome(() => prepared.of(options, undefined));
        const anew = outcome(() => {
          const checked = checkRequestOptions(options);
          const { id, ...rest } = checked;
          return { id, options: rest, digest: optionsDigest('req', rest) };
        });
        expect(again).toEqual(anew);
      }
    }),
    { numRuns: 300 },
  );
});

it('submissions that differ only in their id share what was checked', () => {
  const prepared = new PreparedOptions('req');
  const backoff = { type: 'fixed' as const, delayMs: 5 };
  const options = { limit: 5, backoff };
  const first = prepared.of({ ...options, id: 'a' }, undefined);
  const second = prepared.of({ id: 'b', ...options }, undefined);
  expect([first.id, second.id]).toEqual(['a', 'b']);
  expect(second.options).toBe(first.options);
  const { signal } = new AbortController();
  for (const others of [
    { ...options, limit: 6 },
    { ...options, signal },
  ])
    expect(prepared.of(others, undefined).options).not.toBe(first.options);
  const off = prepared.of(options, 'off').options;
  expect(off).toEqual({ ...first.options, trace: 'off' });
  expect(prepared.of(options, 'off').options).toBe(off);
  const sampled = { traceparent: '00-1-2-01' };
  expect(prepared.of(options, sampled).options.trace).toBe(sampled);
  backoff.delayMs = 6;
  const now = prepared.of(options, undefined).options.backoff;
  expect([first.options.backoff, now]).toEqual([{ type: 'fixed', delayMs: 5 }, backoff]);
  expect(() => prepared.of({ ...options, id: 'not a name' }, undefined)).toThrow(/id:/);
});

it('options are read as they are: behind a proxy, inherited, or by a getter that changes', () => {
  const prepared = new PreparedOptions('req');
  const inherited = Object.create({ type: 'exponential', delayMs: 50 });
  const of = (options: RequestOptions) => prepared.of(options, undefined).options;
  expect(of(new Proxy({ priority: 1 }, {})).priority).toBe(1);
  expect(
    of({ backoff: new Proxy({ type: 'fixed' as const, delayMs: 5 }, {}) }).backoff,
  ).toMatchObject({
    delayMs: 5,
  });
  expect(of({ backoff: {} }).backoff).toEqual({});
  expect(of({ backoff: inherited }).backoff).toMatchObject({ delayMs: 50 });
  let leftMs = 5_001;
  const changing = {
    get deadlineMs() {
      leftMs -= 1;
      return leftMs;
    },
  };
  expect(of(changing).deadlineMs).toBe(5_000);
  expect(of({ deadlineMs: 5_000 }).deadlineMs).toBe(5_000);
});

it('options of an ordinary object are checked as those of any other', () => {
  const table = { ...requestOptions, more: option.integer(1, 9, 5) };
  fc.assert(
    fc.property(optionsOf(fc.constantFrom(...names)), (options) => {
      const other = Object.assign(Object.create({}), options);
      expect(outcome(() => checkOptions(table, options))).toEqual(
        outcome(() => checkOptions(table, other)),
      );
    }),
    { numRuns: 2_000 },
  );
});
