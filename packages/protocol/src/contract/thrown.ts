import type { KeptError } from './kept-error.js';

/*
 * What was thrown may be anything, also something that throws when it is looked at: an error with a getter
 * that fails, a revoked proxy. What code of the user threw is looked at here, where nothing throws.
 */

/** Most characters that are kept of an error. */
const NAME_LENGTH = 128;
const MESSAGE_LENGTH = 1_024;
const STACK_LENGTH = 4_096;
/** Most causes of which the message tells. */
const MOST_CAUSES = 5;

const UNREADABLE = 'what was thrown cannot be put into words: it throws when it is looked at';

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** `thrown instanceof kind`, which asks a proxy for its prototype, and may throw. */
export const isThrown = <T>(
  thrown: unknown,
  kind: abstract new (...args: never[]) => T,
): thrown is T => attempt(() => thrown instanceof kind) ?? false;

/** Its name, whether it is an error of this realm or not; undefined: it has none that can be read. */
export const nameOf = (thrown: unknown): unknown =>
  attempt(() => (thrown as { name?: unknown } | null | undefined)?.name);

const text = (read: () => unknown, length: number): string | undefined =>
  attempt(() => String(read()).slice(0, length));

/** What an object says of itself under `key`, if that is a text. */
const textIn = (thrown: unknown, key: string, length: number): string | undefined =>
  attempt(() => {
    const value = (thrown as Record<string, unknown> | null | undefined)?.[key];
    return typeof value === 'string' ? value.slice(0, length) : undefined;
  });

/** What it was thrown for: its cause, or the first of several errors. */
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
    // Many a message quotes its cause.
    if (why && !whole.includes(why)) whole = whole === '' ? why : `${whole}: ${why}`;
    cause = typeof cause === 'string' ? undefined : causeOf(cause);
  }
  return whole.slice(0, MESSAGE_LENGTH);
}

/** What is neither an error nor has a message: what it says of itself, or else its JSON. */
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
 * Its name, message with those of its causes, code and stack, each capped; of what is neither an error nor has a
 * message, what `String` makes of it, or its JSON where that says nothing.
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

/** The same as an error of ours, which a logger or a listener may look at. */
export function errorOf(thrown: unknown): Error {
  const { name, message, stack = `${name}: ${message}` } = readThrown(thrown);
  return Object.assign(new Error(message), { name, stack });
}

/** For what code of the user answered and nobody awaits: a promise that rejects would end the process. */
export function ignoreRejection(answered: unknown): void {
  new Promise((resolve) => resolve(answered)).catch(() => {});
}
