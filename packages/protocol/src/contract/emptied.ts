/** Greatest depth that is checked. Deeper values are encoded as JSON.stringify does it. */
const DEEPEST = 100;

/** Most characters of a path that an error shows. */
const SHOWN = 100;

interface Emptied {
  readonly path: string;
  readonly what: string;
}

/**
 * Finds the first value that JSON would silently encode as nothing, such as a Map or a promise: the given value or one
 * inside it. Answers where it is and what to do about it, or undefined when there is none. An object with `toJSON` is
 * accepted, and so are properties that are `undefined`, which JSON leaves out. `JSON.stringify` has accepted the value,
 * so it has no circles.
 *
 * This runs for each payload and result, and takes about a tenth of the time of `JSON.stringify`.
 */
export function emptiedIn(value: unknown): string | undefined {
  const found = find(value, 0);
  if (!found) return undefined;
  const { path, what } = found;
  const shown = path.length > SHOWN ? `${path.slice(0, SHOWN)}…` : path;
  return `${shown || 'it'} is ${what}`;
}

function find(value: unknown, depth: number): Emptied | undefined {
  if (typeof value !== 'object' || value === null) {
    const what = depth === 0 && typeof value !== 'number' ? undefined : ofPlain(value);
    return what === undefined ? undefined : { path: '', what };
  }
  if (Array.isArray(value)) return depth < DEEPEST ? inArray(value, depth) : undefined;
  const { then, toJSON } = value as { then?: unknown; toJSON?: unknown };
  if (typeof then === 'function')
    return { path: '', what: 'a promise; await it first, all of an array by Promise.all' };
  if (toJSON !== undefined) {
    const isInvalid = value instanceof Date && Number.isNaN(value.getTime());
    return isInvalid ? { path: '', what: 'an invalid Date; use null instead' } : undefined;
  }
  if (depth >= DEEPEST || ArrayBuffer.isView(value)) return undefined;
  return inObject(value as Record<string, unknown>, depth);
}

function inArray(list: readonly unknown[], depth: number): Emptied | undefined {
  for (let i = 0; i < list.length; i += 1) {
    const one = list[i];
    if (typeof one === 'string') continue;
    const found = find(one, depth + 1);
    if (found) return { ...found, path: `[${i}]${found.path}` };
  }
  return undefined;
}

function inObject(object: Record<string, unknown>, depth: number): Emptied | undefined {
  let isEmpty = true;
  // Faster than Object.keys. Inherited properties, which JSON ignores, are excluded below.
  for (const key in object) {
    isEmpty = false;
    const one = object[key];
    if (typeof one === 'string') continue;
    const found = find(one, depth + 1);
    if (found && Object.hasOwn(object, key))
      return { ...found, path: `${named(key)}${found.path}` };
  }
  const what = isEmpty ? ofEmpty(object) : undefined;
  return what === undefined ? undefined : { path: '', what };
}

const named = (key: string): string =>
  /^[\p{L}_$][\p{L}\d_$]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;

function ofPlain(value: unknown): string | undefined {
  if (typeof value === 'number')
    return Number.isFinite(value) ? undefined : `${value}; use null or a text instead`;
  if (typeof value === 'function' || typeof value === 'symbol')
    return `a ${typeof value}; leave it out`;
  return undefined;
}

/** What to do about an object without a property that JSON would encode. */
function ofEmpty(value: object): string | undefined {
  if (value instanceof Map) return 'a Map; spread it into an array, or use Object.fromEntries';
  if (value instanceof Set) return 'a Set; spread it into an array';
  if (value instanceof Error) return 'an Error; throw it, or use its message';
  if (value instanceof RegExp) return 'a RegExp; use its source';
  if (Symbol.asyncIterator in value) return 'an async iterable; gather it into an array first';
  if (Symbol.iterator in value) return 'an iterable; spread it into an array';
  return undefined;
}
