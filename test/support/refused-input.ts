import { PayloadError } from '@piecework/protocol';
import { expect } from 'vitest';

/** Expects that reading an input ends with an error that names the file, and says why. */
export async function expectRefused(
  reading: Promise<unknown>,
  input: string,
  why: string,
): Promise<void> {
  const error = await reading.then(
    () => new Error('it was read'),
    (thrown: Error) => thrown,
  );
  expect(error).toBeInstanceOf(PayloadError);
  expect(error.message.startsWith(`${input}: `), error.message).toBe(true);
  expect(error.message).toContain(why);
}
