import { RedriveCommands } from '@piecework/protocol';
import { failure, given, Hand, type Options, type Scene, success } from './given.js';

/** Who redrives in the tests of the scripts. */
export const REDRIVER = 'redriver';
export const REDRIVE_LEASE_MS = 30_000;

export const redriveOf = ({ connection, id }: Scene) => new RedriveCommands(connection, id);

/** Complete: of its sub-requests those of `failing` failed, the others succeeded. */
export async function completeWithFailures(
  failing: readonly number[],
  options: Options = {},
): Promise<Scene> {
  const items = options.items ?? 4;
  const scene = await given.sealed({ items, limit: items, ...options });
  const hand = new Hand(scene);
  const entries = await hand.hold(items);
  const settled = await hand.trySettle(
    entries.map((entry) => (failing.includes(entry.index) ? failure(entry) : success(entry))),
  );
  if (settled.verdict !== 'complete') throw new Error(settled.verdict);
  await scene.queue.finish(scene.id, scene.generation, settled.outcome);
  return scene;
}

/** The next life of a complete request, with nothing moved into it yet. */
export async function openedAgain(scene: Scene): Promise<Scene> {
  const generation = await scene.queue.intent(scene.id);
  const opened = await redriveOf(scene).open(generation, REDRIVER, REDRIVE_LEASE_MS);
  if (opened.verdict !== 'opened') throw new Error(opened.verdict);
  return { ...scene, generation };
}

/** Moves these failures into the open life, and pushes the tokens. */
export async function runAgain(scene: Scene, indexes: readonly number[]): Promise<void> {
  const { id, generation, queue } = scene;
  const moved = await redriveOf(scene).runAgain(generation, REDRIVER, indexes);
  if (moved.verdict !== 'ok') throw new Error(moved.verdict);
  if (moved.mint > 0) await queue.push({ id, generation, ...moved });
}
