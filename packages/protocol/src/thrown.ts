import type { KeptError } from './codec.js';

/*
 * What was thrown may be anything, also something that throws when it is looked at: an error with a getter
 * that fails, a revoked proxy. What code of the user threw is looked at here, where nothing throws.
 */

/** Most characters that are kept of an error. */
const NAME_LENGTH = 128;
const MESSAGE_LENGTH = 1_024;
const STACK_LENGTH = 4_096;

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

/** Its name, message and stack, each capped; of what is no error, what `String` makes of it. */
export function readThrown(thrown: unknown): KeptError {
  const text = (read: () => unknown, length: number) =>
    attempt(() => String(read()).slice(0, length));
  if (!isThrown(thrown, Error))
    return { name: 'Error', message: text(() => thrown, MESSAGE_LENGTH) ?? UNREADABLE };
  const stack = text(() => thrown.stack ?? '', STACK_LENGTH);
  return {
    name: text(() => thrown.name, NAME_LENGTH) ?? 'Error',
    message: text(() => thrown.message, MESSAGE_LENGTH) ?? UNREADABLE,
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
