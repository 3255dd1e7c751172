/**
 * What the value of an option looks like. A library for schemas would be a fifth of the modules that a process loads at
 * its start (65 of 275 with zod: 50 ms of CPU and 4 MB of 76), and all checks here are simple.
 */
export type Shape = (value: unknown) => boolean;

type Constructor = abstract new (...args: never[]) => unknown;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether each field of the object has its shape. A field that may be left out has an `optional` shape. */
const fieldsFit = (value: Record<string, unknown>, fields: Readonly<Record<string, Shape>>) =>
  Object.entries(fields).every(([name, fits]) => fits(value[name]));

export const shape = {
  /** Neither undefined nor null. */
  given: (value: unknown): boolean => value !== undefined && value !== null,
  boolean: (value: unknown): boolean => typeof value === 'boolean',
  callable: (value: unknown): boolean => typeof value === 'function',
  /** A valid Date. */
  date: (value: unknown): boolean => value instanceof Date && !Number.isNaN(value.getTime()),
  number:
    (min: number, max: number): Shape =>
    (value) =>
      typeof value === 'number' && value >= min && value <= max,
  integer:
    (min: number, max: number): Shape =>
    (value) =>
      Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max,
  /** A text of so many UTF-16 units. */
  text:
    (least: number, most: number): Shape =>
    (value) =>
      typeof value === 'string' && value.length >= least && value.length <= most,
  /** A text that matches; the pattern has no flag `g`. */
  match:
    (pattern: RegExp): Shape =>
    (value) =>
      typeof value === 'string' && pattern.test(value),
  word:
    (...words: readonly unknown[]): Shape =>
    (value) =>
      words.includes(value),
  instance:
    (of: Constructor): Shape =>
    (value) =>
      value instanceof of,
  /** An array of so many values of one shape; a hole is undefined. */
  array:
    (of: Shape, least = 0, most = Number.POSITIVE_INFINITY): Shape =>
    (value) =>
      Array.isArray(value) &&
      value.length >= least &&
      value.length <= most &&
      Array.from(value).every(of),
  /** An object with these fields; others are ignored. */
  object:
    (fields: Readonly<Record<string, Shape>>): Shape =>
    (value) =>
      isObject(value) && fieldsFit(value, fields),
  /** An object with these fields, and no other. */
  exactly:
    (fields: Readonly<Record<string, Shape>>): Shape =>
    (value) =>
      isObject(value) &&
      Object.keys(value).every((name) => Object.hasOwn(fields, name)) &&
      fieldsFit(value, fields),
  optional:
    (of: Shape): Shape =>
    (value) =>
      value === undefined || of(value),
  either:
    (...shapes: readonly Shape[]): Shape =>
    (value) =>
      shapes.some((fits) => fits(value)),
  both:
    (...shapes: readonly Shape[]): Shape =>
    (value) =>
      shapes.every((fits) => fits(value)),
};
