import { afterAll, expect, it } from 'vitest';
import { aimedAt, aimedAtCode } from './aimed.js';
import { type Aim, aimedScheduler } from './aims.js';
import { clockScheduler, randomScheduler } from './choosers.js';
import { explore } from './explore.js';
import { foundHistories, keepFound } from './found.js';
import { mutants } from './mutants.js';
import { closeEar, type History, play, realConnections } from './play.js';
import { renewed } from './renew.js';
import { reportOf } from './report.js';
import { installScripts } from './scripts.js';
import { FAULTS } from './trip.js';
import { played, smallest, worlds } from './worlds.js';

/*
 * The long forms, for run.mjs, which says by PIECEWORK_INTERLEAVINGS which one.
 */

interface Plan {
  readonly mode: 'random' | 'exhaustive' | 'mutants' | 'code' | 'renew';
  /** The cure that the code lacks. */
  readonly cure?: string;
  /** Without the histories that aim at a cure. */
  readonly byChance?: boolean;
  readonly seeds: number;
  readonly seed: number;
  readonly minutes: number;
  readonly depth: number;
  readonly faultDepth: number;
  /** Parts of the names of worlds or cures, to play these only. */
  readonly only: readonly string[];
}

const given = process.env['PIECEWORK_INTERLEAVINGS'];
const plan = JSON.parse(given ?? '{}') as Plan;
// Histories have a clock of their own; this one is the machine's.
const secondsSince = (from: bigint) => Number(process.hrtime.bigint() - from) / 1e9;
const started = process.hrtime.bigint();
const isLate = () => secondsSince(started) > plan.minutes * 60;
const isWanted = (name: string) =>
  plan.only.length === 0 || plan.only.some((part) => name.includes(part));

afterAll(closeEar);

/** The n-th history: each world in turn, each time with the next seed. */
async function nth(n: number, scripts: ReadonlyMap<string, string>) {
  const all = Object.entries(played).filter(
    ([name]) => plan.mode === 'mutants' || plan.mode === 'code' || isWanted(name),
  );
  const [name, world] = all[n % all.length]!;
  const seed = plan.seed + Math.floor(n / all.length);
  // Of what is searched for mutants none has a clock that is set: they need other faults.
  const scheduler =
    plan.mode === 'random' && seed % 2 === 0 ? clockScheduler(seed) : randomScheduler(seed);
  return { name, world, seed, history: await play(world, scheduler, scripts) };
}

async function random(): Promise<number> {
  const scripts = await installScripts((await realConnections()).shared);
  const count = Object.keys(played).filter(isWanted).length * plan.seeds;
  let [n, steps, faults, failed, slowest] = [0, 0, 0, 0, 0];
  for (; n < count && !isLate(); n += 1) {
    const { name, world, seed, history } = await nth(n, scripts);
    steps += history.steps;
    faults += history.deviations.filter(({ fault }) => fault).length;
    slowest = Math.max(slowest, history.healedMs);
    if (history.wrong.length === 0) continue;
    failed += 1;
    console.log(`seed ${seed}: ${await reportOf(name, world, scripts, history)}`);
  }
  const perMinute = Math.round((n / secondsSince(started)) * 60);
  console.log(
    `${n} histories, ${perMinute} a minute, ${steps} steps, ${faults} faults; the slowest was over ${slowest} ms after its last fault; ${failed} failed`,
  );
  return failed;
}

async function exhaustive(): Promise<number> {
  const scripts = await installScripts((await realConnections()).shared);
  let found = 0;
  for (const [name, world] of Object.entries(smallest)) {
    if (!isWanted(name)) continue;
    for (const [depth, faults] of [
      [plan.depth, []],
      [plan.faultDepth, FAULTS],
    ] as const) {
      const from = process.hrtime.bigint();
      const bounds = { depth, faults, most: isLate() ? 0 : 1_000_000 };
      const { played, exhausted, failed } = await explore(world, scripts, bounds, isLate);
      const what = faults.length > 0 ? 'at most one fault' : 'no fault';
      const how = exhausted ? 'all' : 'not all';
      console.log(
        `${name}: ${played} schedules (${how}), ${depth} steps deep, ${what}, ${Math.round(secondsSince(from))} s`,
      );
      if (!failed) continue;
      found += 1;
      console.log(await reportOf(name, world, scripts, failed));
    }
  }
  return found;
}

interface Hunted {
  readonly how: string;
  readonly report: string;
}

/** How a mutant is found out: by a history that aims at it, by a few orders, or by chance. */
async function hunt(
  scripts: ReadonlyMap<string, string>,
  courses: readonly { readonly world: string; readonly aims: readonly Aim[] }[],
): Promise<Hunted | undefined> {
  const told = async (how: string, name: string, failed: History): Promise<Hunted> => {
    return { how, report: await reportOf(name, worlds[name]!, scripts, failed) };
  };
  for (const { world, aims } of plan.byChance ? [] : courses) {
    const failed = await play(worlds[world]!, aimedScheduler(aims), scripts);
    if (failed.wrong.length > 0) return told(`aiming, in '${world}'`, world, failed);
  }
  const bounds = { depth: plan.depth, faults: [], most: 60 };
  for (const [name, world] of Object.entries(smallest)) {
    const { played: n, failed } = await explore(world, scripts, bounds);
    if (failed) return told(`schedule ${n} of '${name}'`, name, failed);
  }
  const count = Object.keys(played).length * plan.seeds;
  for (let n = 0; n < count; n += 1) {
    const { name, seed, history } = await nth(n, scripts);
    if (history.wrong.length > 0) {
      return told(`history ${n + 1} ('${name}', seed ${seed})`, name, history);
    }
  }
  return undefined;
}

/** In a copy of the repository whose code lacks the cure that is named. */
async function oneOfCode(): Promise<number> {
  const scripts = await installScripts((await realConnections()).shared);
  const courses = aimedAtCode.filter(({ cure }) => cure === plan.cure);
  const caught = await hunt(scripts, courses);
  console.log(`${plan.cure}: ${caught ? `caught by ${caught.how}\n${caught.report}` : 'not seen'}`);
  return caught ? 0 : 1;
}

async function allMutants(): Promise<number> {
  const all = (await mutants()).filter(({ cure, history }) => isWanted(`${cure} (${history})`));
  let [caught, tried] = [0, 0];
  for (const mutant of all) {
    if (isLate()) break;
    tried += 1;
    const scripts = await installScripts((await realConnections()).shared, mutant.mutations);
    const found = await hunt(scripts, aimedAt(mutant.history, mutant.part));
    if (found) caught += 1;
    const title = `${mutant.cure} (${mutant.history}, part ${mutant.part})`;
    console.log(`${title}: ${found ? `caught by ${found.how}\n${found.report}` : 'not seen'}`);
  }
  console.log(`${caught} of ${tried} mutants caught`);
  return tried > 0 && caught > 0 ? 0 : 1;
}

/** Kept histories that a change of the protocol made others. */
async function renewAll(): Promise<number> {
  let lost = 0;
  for (const [name, one] of foundHistories) {
    if (!one.without || !isWanted(one.says)) continue;
    const now = await renewed(one);
    if (!now) lost += 1;
    else if (now !== one) keepFound(name, now);
    if (now !== one) console.log(`${one.says}: ${now ? 'found anew' : 'LOST'}`);
  }
  return lost;
}

const modes = { random, exhaustive, mutants: allMutants, code: oneOfCode, renew: renewAll };

it.runIf(given)(
  'plays the long form',
  { timeout: 24 * 3_600_000, tags: ['own-server', 'one-server'] },
  async () => {
    expect(await modes[plan.mode]()).toBe(0);
  },
);
