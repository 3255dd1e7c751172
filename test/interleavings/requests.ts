import { sealed as sealedRequest } from '../cast/roles/submitted.js';
import { given, type Options } from '../support/given.js';
import { submitWhole } from '../support/whole.js';
import { QUEUE } from './stage.js';

/*
 * The requests of the worlds.
 */

/** A request that is sealed, its tokens out, as a producer leaves it. */
export async function sealed(
  id: string,
  payloads: readonly string[],
  options: Options,
): Promise<void> {
  await sealedRequest(payloads, { ...options, id, queue: QUEUE });
}

/** A small request that was submitted in one call, its token out: it is compact. */
export async function submittedWhole(
  id: string,
  payloads: readonly string[],
  options: Options,
): Promise<void> {
  const scene = await given.nothing({ id, queue: QUEUE });
  await submitWhole(
    scene,
    options,
    'call',
    payloads.map((payload) => JSON.stringify(payload)),
  );
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
