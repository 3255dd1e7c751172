import { aimedAt } from './aimed.js';
import { aimedScheduler } from './aims.js';
import { randomScheduler } from './choosers.js';
import { type Found, withoutCure, worldOf } from './found.js';
import { type History, play, type World } from './play.js';
import { type Deviation, replay } from './schedule.js';
import { shrink } from './shrink.js';
import { worlds } from './worlds.js';

/*
 * A kept history names steps by their number, so a change of the protocol that adds or saves one makes
 * it another history. This finds it anew: a history that fails without the cure and with it does not.
 */

type Candidate = { readonly name: string; readonly play: () => Promise<History> };

/** How far steps are moved, and how many seeds are tried in each world. */
const REACH = 8;
const MOST_MOVED = 400;
const SEEDS = 300;

/** The same as it is, or as it has to be now; undefined when none is found. */
export async function renewed(
  one: Found,
  healthy: ReadonlyMap<string, string>,
): Promise<Found | undefined> {
  const ill = await withoutCure(one);
  const failure = async (world: World, deviations: readonly Deviation[]) => {
    const { wrong } = await play(world, replay({ deviations }), ill);
    if (wrong.length === 0) return undefined;
    const { wrong: withCure } = await play(world, replay({ deviations }), healthy);
    return withCure.length === 0 ? wrong : undefined;
  };
  const world = worldOf(one);
  const still = await failure(world, one.deviations);
  if (still?.join('; ').includes(one.wrong ?? '')) return one;
  for (const candidate of candidates(one, ill)) {
    const history = await candidate.play();
    if (history.wrong.length === 0) continue;
    const where = worlds[candidate.name] as World;
    if (!(await failure(where, history.deviations))) continue;
    const fails = async (deviations: readonly Deviation[]) =>
      (await failure(where, deviations)) !== undefined;
    const deviations = await shrink(history.deviations, fails);
    const wrong = (await failure(where, deviations))?.[0];
    return { ...one, world: candidate.name, deviations, ...(wrong ? { wrong } : {}) };
  }
  return undefined;
}

function* candidates(one: Found, ill: ReadonlyMap<string, string>): Generator<Candidate> {
  const { history, part } = one.without as NonNullable<Found['without']>;
  const inWorld = (name: string, scheduler: () => Parameters<typeof play>[1]): Candidate => ({
    name,
    play: () => play(worlds[name] as World, scheduler(), ill),
  });
  for (const moved of movedSteps(one.deviations))
    yield inWorld(one.world, () => replay({ deviations: moved }));
  for (const { world, aims } of aimedAt(history, part))
    yield inWorld(world, () => aimedScheduler(aims));
  for (let seed = 1; seed <= SEEDS; seed += 1)
    yield inWorld(one.world, () => randomScheduler(seed));
}

/** The steps of a schedule moved by the same, and then the later ones by more. */
function* movedSteps(all: readonly Deviation[]): Generator<readonly Deviation[]> {
  const by = Array.from({ length: 2 * REACH + 1 }, (_, i) => (i % 2 ? -1 : 1) * ((i + 1) >> 1));
  const move = (list: readonly Deviation[], from: number, n: number) =>
    list.map((one, i) => (i < from ? one : { ...one, step: Math.max(0, one.step + n) }));
  let count = 0;
  for (const first of by) {
    for (const [i] of all.entries()) {
      if (i === 0) {
        yield move(all, 0, first);
        continue;
      }
      for (const later of by) {
        if (later === 0) continue;
        count += 1;
        if (count > MOST_MOVED) return;
        yield move(move(all, 0, first), i, later);
      }
    }
  }
}
