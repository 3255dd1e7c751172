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
          return { options: checked, digest: optionsDigest('req', checked) };
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
  expect(prepared.of({ id: 'b', ...options }, undefined)).toBe(first);
  expect(prepared.of({ ...options, id: 'b', limit: 6 }, undefined)).not.toBe(first);
  expect(prepared.of({ ...options, signal: new AbortController().signal }, undefined)).not.toBe(
    first,
  );
  backoff.delayMs = 6;
  const now = prepared.of(options, undefined).options.backoff;
  expect([first.options.backoff, now]).toEqual([{ type: 'fixed', delayMs: 5 }, backoff]);
  expect(() => prepared.of({ ...options, id: 'not a name' }, undefined)).toThrow(/id:/);
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
