import { aimedAt } from './aimed.js';
import { aimedScheduler } from './aims.js';
import { randomScheduler } from './choosers.js';
import { type Found, mutantOf, worldOf } from './found.js';
import { type History, play, realConnections, type World } from './play.js';
import { type Deviation, replay, type Scheduler } from './schedule.js';
import { loadScripts } from './scripts.js';
import { shrink } from './shrink.js';
import { worlds } from './worlds.js';

/*
 * A kept history names steps by their number, so a change of the protocol that adds or saves one makes
 * it another history. This finds it anew: a history that fails without the cure and with it does not.
 */

type Wrong = readonly string[];
/** What is wrong with a schedule without the cure; nothing when it is wrong with the cure as well. */
type Judge = (world: World, scheduler: () => Scheduler) => Promise<Failing | undefined>;
type Failing = Pick<History, 'wrong' | 'deviations'>;
type Candidate = { readonly name: string; readonly scheduler: () => Scheduler };

/** How far steps are moved, and how many of these and how many seeds are tried. */
const REACH = 4;
const MOST_MOVED = 60;
const SEEDS = 100;
/** How often a smaller one is tried. */
const MOST_SHRUNK = 60;

/** The same as it is, or as it has to be now; undefined when none is found. */
export async function renewed(one: Found): Promise<Found | undefined> {
  const judge = await judgeOf(one);
  const sought = one.wrong ?? '';
  const asItIs = () => replay(one);
  const still = await judge(worldOf(one), asItIs);
  if (still && tells(still.wrong, sought)) return one;
  // What goes wrong in the same way first, then whatever does.
  for (const wanted of [sought, '']) {
    for (const { name, scheduler } of candidates(one, wanted !== '')) {
      const world = worlds[name] as World;
      const failing = await judge(world, scheduler);
      if (!failing || !tells(failing.wrong, wanted)) continue;
      const wrong = wanted || withoutTimes(failing.wrong[0] as string);
      const fails = async (deviations: readonly Deviation[]) =>
        tells((await judge(world, () => replay({ deviations })))?.wrong ?? [], wrong);
      const deviations = await shrink(failing.deviations, fails, MOST_SHRUNK);
      return { ...one, world: name, deviations, wrong };
    }
  }
  return undefined;
}

const tells = (wrong: Wrong, part: string): boolean =>
  wrong.length > 0 && wrong.join('; ').includes(part);

const withoutTimes = (what: string): string => what.replace(/,? (for )?\d+ ms.*/, '');

/** Each history is played by the scripts that are in use, so they are changed before each. */
async function judgeOf(one: Found): Promise<Judge> {
  const { shared } = await realConnections();
  const ill = await loadScripts(shared, (await mutantOf(one)).mutations);
  const healthy = await loadScripts(shared);
  return async (world, scheduler) => {
    ill.use();
    const without = await play(world, scheduler(), ill.names);
    if (without.wrong.length === 0) return undefined;
    healthy.use();
    // By its schedule, which is what is kept.
    const { wrong } = await play(world, replay(without), healthy.names);
    return wrong.length === 0 ? without : undefined;
  };
}

function* candidates(one: Found, widely: boolean): Generator<Candidate> {
  const { history, part } = one.without as NonNullable<Found['without']>;
  for (const { world, aims } of aimedAt(history, part))
    yield { name: world, scheduler: () => aimedScheduler(aims) };
  for (const deviations of movedSteps(one.deviations))
    yield { name: one.world, scheduler: () => replay({ deviations }) };
  if (!widely) return;
  for (let seed = 1; seed <= SEEDS; seed += 1)
    yield { name: one.world, scheduler: () => randomScheduler(seed) };
}

/** The steps of a schedule moved by the same, and then the later ones by more. */
function* movedSteps(all: readonly Deviation[]): Generator<readonly Deviation[]> {
  const by = Array.from({ length: 2 * REACH + 1 }, (_, i) => (i % 2 ? -1 : 1) * ((i + 1) >> 1));
  const move = (list: readonly Deviation[], from: number, n: number) =>
    list.map((one, i) => (i < from ? one : { ...one, step: Math.max(0, one.step + n) }));
  const moved = by.map((n) => move(all, 0, n));
  yield* moved;
  let count = 0;
  for (const first of moved) {
    for (let i = 1; i < all.length; i += 1) {
      for (const later of by) {
        if (later === 0) continue;
        count += 1;
        if (count > MOST_MOVED) return;
        yield move(first, i, later);
      }
    }
  }
}
