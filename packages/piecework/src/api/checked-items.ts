import { type Items, isArray } from '@piecework/producer';
import { InvalidOptionError } from '@piecework/protocol';
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { check } from './task.js';

/** What can be iterated has one of these. */
type Begin<Item> = (() => AsyncIterator<Item> | Iterator<Item>) | undefined;

/** An array is checked before anything is written; a stream as it is read. */
export async function checkedItems<Payload>(
  items: Items<Payload>,
  schema: StandardSchemaV1,
): Promise<Items<Payload>> {
  if (isArray(items)) {
    for (const [index, item] of items.entries()) await check(schema, item, index);
    return items;
  }
  const { [Symbol.asyncIterator]: later, [Symbol.iterator]: now } = (items ?? {}) as {
    readonly [Symbol.asyncIterator]?: Begin<Payload>;
    readonly [Symbol.iterator]?: Begin<Payload>;
  };
  const begin = later ?? now;
  if (typeof items !== 'object' || typeof begin !== 'function')
    throw new InvalidOptionError('items', items, 'an Iterable, AsyncIterable or ReadableStream');
  return { [Symbol.asyncIterator]: () => checkedIterator(begin.call(items), schema) };
}

/** No generator: its `return` would wait for a read that does not end. */
function checkedIterator<Payload>(
  source: AsyncIterator<Payload> | Iterator<Payload>,
  schema: StandardSchemaV1,
): AsyncIterator<Payload> {
  let index = 0;
  let released = false;
  const release = async () => {
    if (released) return;
    released = true;
    await source.return?.();
  };
  return {
    async next() {
      const read = await source.next();
      if (read.done) return read;
      // As `for await` does with the promises of an iterable.
      const value = await read.value;
      try {
        await check(schema, value, index);
      } catch (error) {
        release().catch(() => {});
        throw error;
      }
      index += 1;
      return { done: false, value };
    },
    async return() {
      await release();
      return { done: true, value: undefined };
    },
  };
}
