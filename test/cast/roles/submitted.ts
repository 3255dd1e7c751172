import { given, type Options, PRODUCER, type Scene } from '../../support/given.js';

/* Requests as a producer leaves them, for worlds in which none takes part. */

/** Appends payloads to a request and pushes its tokens. */
export async function fill(scene: Scene, payloads: readonly string[]): Promise<void> {
  const { id, generation, queue, request } = scene;
  const encoded = payloads.map((payload) => JSON.stringify(payload));
  const appended = await request.append(generation, PRODUCER, 0, encoded);
  if (appended.verdict !== 'ok') throw new Error(`append: ${appended.verdict}`);
  await queue.push({ id, generation, ...appended });
}

/** A request that has its sub-requests and its tokens, and is sealed. */
export async function sealed(payloads: readonly string[], options: Options): Promise<Scene> {
  const scene = await given.created(options);
  await fill(scene, payloads);
  await scene.request.seal(scene.generation, PRODUCER, payloads.length);
  return scene;
}
