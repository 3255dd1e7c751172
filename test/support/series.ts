import { INTERVAL_MS } from '@piecework/protocol';
import { moveClock } from './clock.js';
import { given, type Scene } from './given.js';

/* What workers report for the series of their queue, by hand, and what is there of it. */

export type Done = readonly [succeeded: number, failed: number, cancelled: number, retried: number];
export const NONE: Done = [0, 0, 0, 0];

/** The JSON of a worker with ten slots. `answered`: what its last answered report contained. */
export const report = (running: number, done: Done, answered: Done = NONE) =>
  JSON.stringify({ figures: [running, 10, ...done, ...answered].join(' '), tasks: '*' });

/** Nothing reported yet; an interval has just begun. */
export async function fresh(): Promise<Scene> {
  const scene = await given.opened();
  const { now } = await scene.queue.series(1);
  moveClock(INTERVAL_MS - (now % INTERVAL_MS));
  return scene;
}

export const seriesOf = async ({ queue }: Scene) => (await queue.series(999)).intervals;

/** The same without times: succeeded, failed, cancelled, retried, in flight, slots, workers. */
export const rowsOf = async (scene: Scene) =>
  (await seriesOf(scene)).map(({ at: _, ...row }) => Object.values(row));

export const succeededOf = async (scene: Scene) =>
  (await seriesOf(scene)).map(({ succeeded }) => succeeded);
