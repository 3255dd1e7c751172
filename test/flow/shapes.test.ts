/**
 * The shapes of options. That each option of each table refuses wrong values is tested in options.test.ts.
 */
import { shape } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';

describe('the shape of an option', () => {
  it('integer: a whole number that a double holds exactly, within the bounds', () => {
    const fits = shape.integer(0, Number.MAX_SAFE_INTEGER);
    expect([0, 1, Number.MAX_SAFE_INTEGER].map(fits)).toEqual([true, true, true]);
    const wrong = [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '1', null, undefined];
    expect(wrong.filter(fits)).toEqual([]);
  });

  it('number: within the bounds, and no NaN', () => {
    expect([0, 0.5, 1].filter(shape.number(0, 1))).toHaveLength(3);
    expect([-0.1, 1.1, Number.NaN, '1', null].filter(shape.number(0, 1))).toEqual([]);
  });

  it('array: so many values of one shape, and no hole', () => {
    const fits = shape.array(shape.text(1, 2), 1, 2);
    expect([['a'], ['a', 'bb']].filter(fits)).toHaveLength(2);
    expect([[], ['a', 'b', 'c'], ['abc'], [1], new Array(1), 'a', { 0: 'a' }].filter(fits)).toEqual(
      [],
    );
  });

  it('object and exactly: fields of their shapes; exactly refuses others', () => {
    const fields = { a: shape.boolean, b: shape.optional(shape.callable) };
    for (const fits of [shape.object(fields), shape.exactly(fields)]) {
      expect([{ a: true }, { a: false, b: () => 1 }, { a: true, b: undefined }].every(fits)).toBe(
        true,
      );
      expect([{}, { a: 1 }, { a: true, b: 1 }, null, [], 'a'].some(fits)).toBe(false);
    }
    expect(shape.object(fields)({ a: true, c: 1 })).toBe(true);
    expect(shape.exactly(fields)({ a: true, c: 1 })).toBe(false);
  });

  it('date: a valid one', () => {
    expect(shape.date(new Date(0))).toBe(true);
    expect([new Date(Number.NaN), 0, '1970-01-01'].some(shape.date)).toBe(false);
  });

  it('word, match, either and both', () => {
    expect(['a', null].filter(shape.word('a', null))).toHaveLength(2);
    expect(['a1', 'a', 1].filter(shape.match(/^a\d$/))).toEqual(['a1']);
    expect(['a', 1, true].filter(shape.either(shape.boolean, shape.integer(1, 1)))).toEqual([
      1,
      true,
    ]);
    expect(['a', 'ab'].filter(shape.both(shape.text(2, 2), shape.match(/b/)))).toEqual(['ab']);
  });
});
