import { given, type Options, PRODUCER } from '../support/given.js';
import { BAD } from './cast.js';
import { QUEUE } from './stage.js';

/*
 * The requests of the worlds.
 */

/** Payloads 'item 0' …; those of `bad` throw. */
export const payloads = (n: number, ...bad: number[]): string[] =>
  Array.from({ length: n }, (_, i) => (bad.includes(i) ? BAD : `item ${i}`));

/** A request that is sealed, its tokens out, as a producer leaves it. */
export async function sealed(
  id: string,
  items: readonly string[],
  options: Options,
): Promise<void> {
  const scene = await given.created({ ...options, id, queue: QUEUE });
  const { generation, queue, request } = scene;
  const encoded = items.map((item) => JSON.stringify(item));
  const appended = await request.append(generation, PRODUCER, 0, encoded);
  if (appended.verdict !== 'ok') throw new Error(`append: ${appended.verdict}`);
  await queue.push({ id, generation, ...appended });
  await request.seal(generation, PRODUCER, items.length);
}

export const submitted = (id: string, items: readonly string[], options: object = {}) => ({
  id,
  items,
  options: { id, limit: 1, ...options },
});

/** A request that is complete, without sub-requests, and kept for so long. */
export async function retained(id: string, retentionMs: number): Promise<void> {
  const { queue, generation } = await given.sealed({ id, queue: QUEUE, items: 0, retentionMs });
  await queue.finish(id, generation, 'succeeded');
}
