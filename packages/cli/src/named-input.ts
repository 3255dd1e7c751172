import { PayloadError, PieceworkError } from '@piecework/protocol';

/** Items of an input; what is wrong with them says where, and what to do. */
export async function* namedInput(
  name: string,
  items: AsyncIterable<unknown>,
): AsyncIterable<unknown> {
  try {
    yield* items;
  } catch (error) {
    const { message, syscall } = error as NodeJS.ErrnoException;
    if (error instanceof PayloadError) {
      const cure = message.includes('is not JSON') ? '; correct it, or take --split lines' : '';
      throw new PayloadError(`${name}: ${message}${cure}`, error.cause);
    }
    if (syscall === undefined) throw error;
    throw new PieceworkError(`${name} cannot be read: ${message}`, { code: 'INPUT', cause: error });
  }
}
