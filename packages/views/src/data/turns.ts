import { setImmediate } from 'node:timers/promises';

let last: Promise<void> = Promise.resolve();

/**
 * Resolves when it is the caller's turn to compute for some milliseconds. Between two turns the process answers whoever
 * asked meanwhile: many searches that were read together would otherwise keep it busy for as long as all of them take.
 */
export function turn(): Promise<void> {
  last = last.then(() => setImmediate());
  return last;
}
