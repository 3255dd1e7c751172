import type { SubmitBody, SubmitHead } from '@piecework/protocol';
import { fieldsOf, items, type Options, type Scene } from './given.js';

/** What the requests of a `submit` have in common. */
export function headOf(options: Options, queue: string): SubmitHead {
  const { priority = 50, expedite = false, producerLeaseMs: leaseMs = 600_000 } = options;
  const fields = JSON.stringify(fieldsOf(options, queue).map(String));
  return { priority, isExpedited: expedite, leaseMs, options: fields };
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
  const [generation = -1] = await queue.submit(head, [bodyOf(scene, options, call, payloads)]);
  return generation;
}
