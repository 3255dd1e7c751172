import { moveClock } from './clock.js';
import { type Scene, tickOnce } from './given.js';

/** Time passes by the clock of the scripts, and the agenda is ticked as often as by a fleet. */
export async function pass(scene: Scene, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1_000) {
    moveClock(Math.min(left, 1_000));
    await tickOnce(scene);
  }
}
