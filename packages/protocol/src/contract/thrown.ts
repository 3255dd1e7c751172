import type { KeptError } from './kept-error.js';

/*
 * User code may throw anything, even a value that itself throws when it is read: an error with a getter that fails, a
 * revoked proxy. Thrown values are read here only, by functions that never throw.
 */

/** Most characters that are kept of an error. */
const NAME_LENGTH = 128;
const MESSAGE_LENGTH = 1_024;
const STACK_LENGTH = 4_096;
/** Most causes whose messages are added. */
const MOST_CAUSES = 5;

const UNREADABLE = 'the thrown value cannot be described: it throws when it is read';

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** `thrown instanceof kind`, which asks a proxy for its prototype, and may throw. */
// cure: a thrown value is examined where nothing can throw
export const isThrown = <T>(
  thrown: unknown,
  kind: abstract new (...args: never[]) => T,
): thrown is T => attempt(() => thrown instanceof kind) ?? false;

/** Its name, whether it is an error of this realm or not; undefined: it has none that can be read. */
export const nameOf = (thrown: unknown): unknown =>
  attempt(() => (thrown as { name?: unknown } | null | undefined)?.name);

const text = (read: () => unknown, length: number): string | undefined =>
  attempt(() => String(read()).slice(0, length));

/** The property `key` of a thrown object, if it is a text. */
const textIn = (thrown: unknown, key: string, length: number): string | undefined =>
  attempt(() => {
    const value = (thrown as Record<string, unknown> | null | undefined)?.[key];
    return typeof value === 'string' ? value.slice(0, length) : undefined;
  });

/** Its cause, or the first of its errors if it is an AggregateError. */
const causeOf = (thrown: unknown): unknown =>
  attempt(() => (thrown as { cause?: unknown } | null | undefined)?.cause) ??
  attempt(() => (thrown as { errors?: readonly unknown[] } | null | undefined)?.errors?.[0]);

/** `message` followed by those of its causes, as 'fetch failed: connect ECONNREFUSED 127.0.0.1:1'. */
function withCauses(message: string, thrown: unknown): string {
  let whole = message;
  let cause = causeOf(thrown);
  for (let depth = 0; depth < MOST_CAUSES && cause !== undefined; depth += 1) {
    const why =
      typeof cause === 'string'
        ? cause.slice(0, MESSAGE_LENGTH)
        : textIn(cause, 'message', MESSAGE_LENGTH) || textIn(cause, 'code', NAME_LENGTH);
    // Many messages quote their cause.
    if (why && !whole.includes(why)) whole = whole === '' ? why : `${whole}: ${why}`;
    cause = typeof cause === 'string' ? undefined : causeOf(cause);
  }
  return whole.slice(0, MESSAGE_LENGTH);
}

/** The message for a value that is no error and has none: what `String` makes of it, or else its JSON. */
function wordsOf(thrown: unknown): string {
  const said = text(() => thrown, MESSAGE_LENGTH);
  if (typeof thrown !== 'object' || (said && !said.includes('[object '))) return said ?? UNREADABLE;
  const json = attempt(() => JSON.stringify(thrown)?.slice(0, MESSAGE_LENGTH));
  return json ?? said ?? UNREADABLE;
}

function codeOf(thrown: unknown): { readonly code?: string } {
  const code = textIn(thrown, 'code', NAME_LENGTH);
  return code ? { code } : {};
}

/**
 * Reads its name, its message with those of its causes, its code and its stack, each cut to a length. The message of a
 * value that is no error and has none is what `String` makes of it, or its JSON where that says nothing.
 */
export function readThrown(thrown: unknown): KeptError {
  const isError = isThrown(thrown, Error);
  const said = textIn(thrown, 'message', MESSAGE_LENGTH);
  if (!isError && said === undefined)
    return { name: 'Error', message: wordsOf(thrown), ...codeOf(thrown) };
  const message = said ?? text(() => (thrown as Error).message, MESSAGE_LENGTH) ?? UNREADABLE;
  const name = isError ? text(() => thrown.name, NAME_LENGTH) : textIn(thrown, 'name', NAME_LENGTH);
  const stack = textIn(thrown, 'stack', STACK_LENGTH);
  return {
    name: name ?? 'Error',
    message: withCauses(message, thrown),
    ...codeOf(thrown),
    ...(stack ? { stack } : {}),
  };
}

/** The same as an Error that a logger or a listener can read safely. */
export function errorOf(thrown: unknown): Error {
  const { name, message, stack = `${name}: ${message}` } = readThrown(thrown);
  return Object.assign(new Error(message), { name, stack });
}

/** For a value returned by user code that nobody awaits: a promise that rejects would end the process. */
export function ignoreRejection(answered: unknown): void {
  new Promise((resolve) => resolve(answered)).catch(() => {});
}
