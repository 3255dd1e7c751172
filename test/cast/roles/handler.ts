import type { Runs } from '../runs.js';

/*
 * Payloads that say what their handler does, and the handler that does it and notes its runs.
 */

/** Payloads of which this is a part: the handler throws, takes long, or ends its process. */
export const BAD = 'bad';
export const SLOW = 'slow';
export const DEADLY = 'deadly';

/** Payloads 'item 0' …; those of `bad` throw. */
export const payloads = (n: number, ...bad: number[]): string[] =>
  Array.from({ length: n }, (_, i) => (bad.includes(i) ? BAD : `item ${i}`));

/** What a handler needs to know of its sub-request. */
export interface Ran {
  readonly requestId: string;
  readonly index: number;
}

/** Runs a handler and notes that it began, and whether it failed. One that ends for good has used up its attempts. */
export async function noted<T>(
  runs: Runs,
  { requestId, index }: Ran,
  work: () => Promise<T>,
  isFinal: (error: unknown) => boolean = () => false,
): Promise<T> {
  const run = runs.of(requestId, index);
  run.began += 1;
  try {
    return await work();
  } catch (error) {
    run.failed += isFinal(error) ? Number.POSITIVE_INFINITY : 1;
    throw error;
  }
}

/** Answers with the payload, or throws if it is bad. */
export const handled = async (payload: unknown): Promise<unknown> => {
  if (String(payload).includes(BAD)) throw new Error(BAD);
  return payload;
};
