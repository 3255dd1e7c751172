/** So deep is looked; what lies deeper is put through as JSON has it. */
const DEEPEST = 100;

/** Most characters that are shown of where something stands. */
const SHOWN = 100;

interface Emptied {
  readonly path: string;
  readonly what: string;
}

/**
 * The first thing in a value, or itself, of which JSON would keep nothing without a word, and what to do about
 * it; undefined: there is none. An object that says by `toJSON` what is kept of it means that, and `undefined` is
 * left out as ever. The value is one that `JSON.stringify` took, so it has no circles.
 *
 * It is looked at for each payload and result: about a tenth of the time of `JSON.stringify`.
 */
export function emptiedIn(value: unknown): string | undefined {
  const found = look(value, 0);
  if (!found) return undefined;
  const { path, what } = found;
  const shown = path.length > SHOWN ? `${path.slice(0, SHOWN)}…` : path;
  return `${shown || 'it'} is ${what}`;
}

function look(value: unknown, depth: number): Emptied | undefined {
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
    const found = look(one, depth + 1);
    if (found) return { ...found, path: `[${i}]${found.path}` };
  }
  return undefined;
}

function inObject(object: Record<string, unknown>, depth: number): Emptied | undefined {
  let isEmpty = true;
  // Faster than Object.keys; what is inherited, which JSON passes over, is told apart where it matters.
  for (const key in object) {
    isEmpty = false;
    const one = object[key];
    if (typeof one === 'string') continue;
    const found = look(one, depth + 1);
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

/** An object without a property that JSON would see. */
function ofEmpty(value: object): string | undefined {
  if (value instanceof Map) return 'a Map; spread it into an array, or use Object.fromEntries';
  if (value instanceof Set) return 'a Set; spread it into an array';
  if (value instanceof Error) return 'an Error; throw it, or use its message';
  if (value instanceof RegExp) return 'a RegExp; use its source';
  if (Symbol.asyncIterator in value) return 'an async iterable; gather it into an array first';
  if (Symbol.iterator in value) return 'an iterable; spread it into an array';
  return undefined;
}
