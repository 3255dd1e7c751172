import { z } from 'zod';
import { InvalidOptionError } from './errors.js';

/**
 * Options are tables: for each its schema, its default and, in words, what is allowed. The check,
 * the messages, the command line's flags and the tests of wrong input all come from these tables.
 */
export interface OptionSpec {
  readonly schema: z.ZodType;
  /** What is allowed, in words; stands in the error. */
  readonly allowed: string;
  readonly default?: unknown;
  /** The values, where there are few. */
  readonly words?: readonly string[];
}

export type OptionTable = Readonly<Record<string, OptionSpec>>;

/** What ids, queue names and task names look like: safe in keys, hash tags and tokens. */
export const NAME = /^[A-Za-z0-9_.:-]{1,128}$/;
const NAME_ALLOWED = '1 to 128 of A-Z a-z 0-9 _ . : -';
/** Made once: every call that names a request checks one. */
const NAME_SCHEMA = z.string().regex(NAME);

const integer = (min: number, max: number, unit = ''): Omit<OptionSpec, 'default'> => ({
  schema: z.number().int().min(min).max(max),
  allowed: `a whole number from ${min} to ${max}${unit}`,
});

/** Building blocks of the tables. */
export const option = {
  integer: (min: number, max: number, byDefault?: number): OptionSpec => ({
    ...integer(min, max),
    default: byDefault,
  }),
  /** A time in milliseconds. */
  ms: (min: number, max: number, byDefault?: number): OptionSpec => ({
    ...integer(min, max, ' (ms)'),
    default: byDefault,
  }),
  word: (...words: [string, ...string[]]): OptionSpec => ({
    schema: z.enum(words),
    allowed: words.map((word) => `'${word}'`).join(' or '),
    default: words[0],
    words,
  }),
  name: (byDefault?: string): OptionSpec => ({
    schema: NAME_SCHEMA,
    allowed: NAME_ALLOWED,
    default: byDefault,
  }),
  boolean: (byDefault?: boolean): OptionSpec => ({
    schema: z.boolean(),
    allowed: 'true or false',
    default: byDefault,
  }),
  custom: (schema: z.ZodType, allowed: string, byDefault?: unknown): OptionSpec => ({
    schema,
    allowed,
    default: byDefault,
  }),
};

/**
 * Checks `input` against `table` and fills in the defaults.
 * @throws InvalidOptionError for the first option that is unknown or not allowed.
 */
export function checkOptions<T>(table: OptionTable, input: unknown, of = 'options'): T {
  const given = readOptions(table, input);
  if (!given) throw new InvalidOptionError(of, input, 'an object');
  const { unknown, values } = given;
  if (unknown) {
    const allowed = `no such option; ${of}: ${Object.keys(table).join(', ')}`;
    throw new InvalidOptionError(unknown.name, unknown.value, allowed);
  }
  const checked: Record<string, unknown> = {};
  for (const [key, spec] of Object.entries(table)) {
    const value = values.get(key);
    if (value === undefined) {
      if (spec.default !== undefined) checked[key] = spec.default;
      continue;
    }
    checkOption(key, value, spec);
    checked[key] = value;
  }
  return checked as T;
}

interface GivenOptions {
  /** The first that the table has not. */
  readonly unknown?: { readonly name: string; readonly value: unknown };
  readonly values: ReadonlyMap<string, unknown>;
}

/** Undefined: it is no object, or one that throws when it is looked at. */
function readOptions(table: OptionTable, input: unknown): GivenOptions | undefined {
  if (typeof input !== 'object' || input === null) return undefined;
  const at = (name: string) => (input as Record<string, unknown>)[name];
  try {
    if (Array.isArray(input)) return undefined;
    const name = Object.keys(input).find((key) => !Object.hasOwn(table, key));
    const values = new Map(Object.keys(table).map((key) => [key, at(key)]));
    return { values, ...(name === undefined ? {} : { unknown: { name, value: at(name) } }) };
  } catch {
    return undefined;
  }
}

/** Checks one value, as a request id that stands alone. */
export function checkOption(field: string, value: unknown, spec: OptionSpec): void {
  if (!fits(value, spec)) throw new InvalidOptionError(field, value, spec.allowed);
}

/** A value may be one that throws when it is looked at. */
function fits(value: unknown, { schema }: OptionSpec): boolean {
  try {
    return schema.safeParse(value).success;
  } catch {
    return false;
  }
}

/** Options of everything that waits. */
export interface WaitOptions {
  /** Ends the waiting with AbortError. */
  readonly signal?: AbortSignal | undefined;
  /** Ends the waiting with TimeoutError, in ms. @default none */
  readonly timeoutMs?: number | undefined;
}

export const waitOptions: OptionTable = {
  signal: option.custom(z.instanceof(AbortSignal), 'an AbortSignal'),
  timeoutMs: option.ms(0, 2_147_483_647),
};
