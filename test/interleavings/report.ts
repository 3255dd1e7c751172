import { type History, play, type World } from './play.js';
import { replay, type Schedule } from './schedule.js';
import { shrink } from './shrink.js';

/** A history that failed, made small, as text to read and to keep in found/. */
export async function reportOf(
  name: string,
  world: World,
  scriptNames: ReadonlyMap<string, string>,
  failed: History,
): Promise<string> {
  const again = (deviations: Schedule['deviations']) =>
    play(world, replay({ deviations }), scriptNames);
  const fails = async (deviations: Schedule['deviations']) =>
    (await again(deviations)).wrong.length > 0;
  const deviations = await shrink(failed.deviations, fails);
  const { wrong, lines } = await again(deviations);
  const schedule: Schedule = { world: name, deviations };
  const steps = lines.map((line) => `  ${line.replace(/ → .*/s, '')}`);
  return [`${name}: ${wrong.join('; ')}`, ...steps, JSON.stringify(schedule)].join('\n');
}
