import { isNearly } from '../common/nearly.js';
import { InvalidOptionError } from './errors.js';
import { type Shape, shape } from './shapes.js';
import { HIDDEN } from './shown-value.js';

/**
 * Options are defined in tables: for each option its shape, its default and, in words, what is allowed. The check, the
 * messages, the command line's flags and the tests of wrong input all come from these tables.
 */
export interface OptionSpec {
  readonly fits: Shape;
  /** What is allowed, in words; part of the error message. */
  readonly allowed: string;
  readonly default?: unknown;
  /** All allowed values, where there are few. */
  readonly words?: readonly string[];
  /** Whether it may hold a password; then no error shows the value. */
  readonly isSecret?: boolean;
}

export type OptionTable = Readonly<Record<string, OptionSpec>>;

/** What ids, queue names and task names look like: safe in keys, hash tags and tokens. */
export const NAME = /^[A-Za-z0-9_.:-]{1,128}$/;
const NAME_ALLOWED = '1 to 128 of A-Z a-z 0-9 _ . : -';
/** Made once: every call that names a request checks one. */
const isName = shape.match(NAME);

const integer = (min: number, max: number, unit = ''): Omit<OptionSpec, 'default'> => ({
  fits: shape.integer(min, max),
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
    fits: shape.word(...words),
    allowed: words.map((word) => `'${word}'`).join(' or '),
    default: words[0],
    words,
  }),
  name: (byDefault?: string): OptionSpec => ({
    fits: isName,
    allowed: NAME_ALLOWED,
    default: byDefault,
  }),
  boolean: (byDefault?: boolean): OptionSpec => ({
    fits: shape.boolean,
    allowed: 'true or false',
    default: byDefault,
  }),
  custom: (fits: Shape, allowed: string, byDefault?: unknown): OptionSpec => ({
    fits,
    allowed,
    default: byDefault,
  }),
};

/**
 * Checks `input` against `table` and fills in the defaults.
 * @throws InvalidOptionError for the first option that is unknown or not allowed.
 */
export function checkOptions<T>(table: OptionTable, input: unknown, of = 'options'): T {
  return (quicklyChecked(table, input) ?? thoroughlyChecked(table, input, of)) as T;
}

/** A table as the check reads it; most are read at every call. */
interface ReadTable {
  readonly specs: ReadonlyMap<string, OptionSpec>;
  readonly defaults: Readonly<Record<string, unknown>>;
}

const readTables = new WeakMap<OptionTable, ReadTable>();

function readTable(table: OptionTable): ReadTable {
  const known = readTables.get(table);
  if (known) return known;
  const entries = Object.entries(table);
  const filledIn = entries.filter(([, spec]) => spec.default !== undefined);
  const defaults = Object.fromEntries(filledIn.map(([name, spec]) => [name, spec.default]));
  const read = { specs: new Map(entries), defaults };
  readTables.set(table, read);
  return read;
}

/** For an ordinary object whose options are all allowed, which is nearly every one. Undefined for any other. */
function quicklyChecked(table: OptionTable, input: unknown): object | undefined {
  try {
    if (!isOrdinary(input)) return undefined;
    const { specs, defaults } = readTable(table);
    const checked: Record<string, unknown> = Object.assign({}, defaults);
    for (const name of Object.keys(input)) {
      const spec = specs.get(name);
      const value = input[name];
      if (!spec || (value !== undefined && !spec.fits(value))) return undefined;
      if (value !== undefined) checked[name] = value;
    }
    return checked;
  } catch {
    return undefined;
  }
}

/** Whether a value is an object of no class, so that it has no fields but its own. @throws what a proxy throws */
export const isOrdinary = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.getPrototypeOf(value) === Object.prototype;

function thoroughlyChecked(table: OptionTable, input: unknown, of: string): object {
  const given = readOptions(table, input);
  if (!given) throw new InvalidOptionError(of, input, 'an object');
  const { unknown, specs, values } = given;
  if (unknown) {
    const names = Object.keys(table);
    const meant = names.find((name) => isNearly(unknown.name, name));
    const hint = meant === undefined ? '' : ` did you mean ${meant}?`;
    const allowed = `no such option;${hint} ${of}: ${names.join(', ')}`;
    throw new InvalidOptionError(unknown.name, unknown.value, allowed);
  }
  const checked: Record<string, unknown> = {};
  for (let i = 0; i < specs.length; i += 1) {
    const [key, spec] = specs[i] as Spec;
    const value = values[i];
    if (value === undefined) {
      if (spec.default !== undefined) checked[key] = spec.default;
      continue;
    }
    checkOption(key, value, spec);
    checked[key] = value;
  }
  return checked;
}

type Spec = readonly [name: string, spec: OptionSpec];

interface GivenOptions {
  /** The first option that is not in the table. */
  readonly unknown?: { readonly name: string; readonly value: unknown };
  readonly specs: readonly Spec[];
  /** In the order of `specs`. */
  readonly values: readonly unknown[];
}

/** Undefined when the input is no object, or one that throws when it is read. */
function readOptions(table: OptionTable, input: unknown): GivenOptions | undefined {
  if (typeof input !== 'object' || input === null) return undefined;
  const at = (name: string) => (input as Record<string, unknown>)[name];
  try {
    if (Array.isArray(input)) return undefined;
    const name = Object.keys(input).find((key) => !Object.hasOwn(table, key));
    const specs = Object.entries(table);
    const values = specs.map(([key]) => at(key));
    return { specs, values, ...(name === undefined ? {} : { unknown: { name, value: at(name) } }) };
  } catch {
    return undefined;
  }
}

/** Checks one value that is not part of an options object, such as a request id. */
export function checkOption(field: string, value: unknown, spec: OptionSpec): void {
  if (!isAllowed(value, spec))
    throw new InvalidOptionError(field, spec.isSecret ? HIDDEN : value, spec.allowed);
}

/** A value that throws when it is read does not fit. */
export function isAllowed(value: unknown, { fits }: OptionSpec): boolean {
  try {
    return fits(value);
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
  signal: option.custom(shape.instance(AbortSignal), 'an AbortSignal'),
  timeoutMs: option.ms(0, 2_147_483_647),
};
