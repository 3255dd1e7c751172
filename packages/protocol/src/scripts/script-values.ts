/*
 * How the values of a script's arguments and replies are represented in TypeScript. Used by calls.generated.ts.
 */

/** An entry of a stream: its id, and field, value, … */
export type StreamRow = readonly [string, readonly string[]];

const isNone = (value: unknown): value is null | undefined => value === null || value === undefined;

/** '' for nil. */
export const textIn = (value: unknown): string => (isNone(value) ? '' : String(value));

export const optionalText = (value: unknown): string | undefined =>
  isNone(value) ? undefined : String(value);

export const numberIn = (value: unknown): number | undefined =>
  isNone(value) ? undefined : Number(value);

/** Several numbers, which a script joins to one text: the client takes a third of the time to read that. */
export const numbersIn = (text: unknown): number[] => (text as string).split(' ').map(Number);

/** Field, value, … as an object without a prototype: a field may have any name. */
export function pairsIn(value: unknown): Readonly<Record<string, string>> {
  const flat = value as readonly string[];
  const fields: Record<string, string> = Object.create(null);
  for (let i = 0; i < flat.length; i += 2) fields[flat[i] as string] = flat[i + 1] as string;
  return fields;
}

/** A list that holds several values of each thing in turn, from `from` on. */
export function groupsIn<T>(
  value: unknown,
  from: number,
  size: number,
  read: (flat: readonly unknown[], i: number) => T,
): T[] {
  const flat = value as readonly unknown[];
  const found: T[] = [];
  for (let i = from; i < flat.length; i += size) found.push(read(flat, i));
  return found;
}

/** The server runs a script by the hash of its text, so only a changed text can answer another word. */
export const unknownReply = (reply: readonly unknown[]): Error =>
  new Error(`a script answered ${JSON.stringify(reply[0])}, which its header does not list`);
