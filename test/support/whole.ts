import type { Entry, SubmitBody, SubmitHead } from '@piecework/protocol';
import { expect } from 'vitest';
import { given, Hand, items, type Options, optionsOf, type Scene } from './given.js';

/** What the requests of a `submit` have in common. */
export function headOf(options: Options, queue: string): SubmitHead {
  const { priority = 50, expedite = false, producerLeaseMs: leaseMs = 600_000 } = options;
  return { priority, isExpedited: expedite, leaseMs, options: optionsOf(options, queue) };
}

/** A request of a `submit`, by default with three items. */
export function bodyOf(
  { id }: Pick<Scene, 'id'>,
  { items: n = 3, owner = 'maker' }: Options = {},
  call = 'call',
  payloads: readonly string[] = items(n),
): SubmitBody {
  return { id, owner, call, payloads };
}

/** Submits the request of a scene in one call; answers its generation. */
export async function submitWhole(
  scene: Scene,
  options: Options = {},
  call = 'call',
  payloads?: readonly string[],
): Promise<number> {
  const { queue } = scene;
  const head = headOf(options, queue.keys.queue);
  const body = bodyOf(scene, options, call, payloads);
  const [generation = -1] = await queue.submit(head, [body]);
  return generation;
}

/** A request of three that was submitted in one call, still compact. */
export async function compact(options: Options = {}): Promise<Scene> {
  const { id, queue } = options;
  const scene = await given.nothing({ id, queue });
  const generation = await submitWhole(scene, { items: 3, limit: 3, ...options });
  expect(await isCompact(scene)).toBe(true);
  return { ...scene, generation };
}

/** Whether state and sub-requests are one string. */
export const isCompact = async ({ connection, request }: Scene): Promise<boolean> =>
  (await connection.client.type(request.keys.request)) === 'string';

/** One worker has read all three, and nothing else has happened. */
export async function readWhole(): Promise<{ scene: Scene; hand: Hand; entries: Entry[] }> {
  const scene = await compact({ limit: 3, attempts: 2 });
  const hand = new Hand(scene);
  const entries = await hand.holdAtOnce(3);
  expect(entries.map(({ payload }) => payload)).toEqual(['item 0', 'item 1', 'item 2']);
  expect(await isCompact(scene)).toBe(true);
  return { scene, hand, entries };
}
