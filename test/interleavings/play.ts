import type { Redis } from 'ioredis';
import { leftAfterDrop } from '../cast/judge.js';
import { connected, tickOnce } from '../support/given.js';
import { allKeys } from '../support/own-keys.js';
import { Cast } from './cast.js';
import { type Expected, isOver, wrongAtEnd, wrongNow, wrongWhenIdle } from './judge.js';
import { Rules } from './rules.js';
import type { Deviation, Option, Scheduler } from './schedule.js';
import { QUEUE, Stage } from './stage.js';
import { befalls } from './trip.js';
import {
  endVirtualTime,
  passMs,
  passTime,
  quiet,
  startVirtualTime,
  virtualNow,
} from './virtual-time.js';

/*
 * Plays one history: a world, as a scheduler wants it. At each step everything that could move waits
 * at the gate; the scheduler takes one, or lets time pass; then it is waited until all that follows
 * from it has come to the gate. So the decisions determine the history.
 */

/** Who is there, and what is to come of it. */
export interface World {
  readonly priorities?: readonly number[];
  /** What is in Redis before. */
  readonly before?: (stage: Stage) => Promise<void>;
  readonly enter: (cast: Cast) => void;
  readonly requests: readonly Expected[];
  /** Whether work waits for nobody as long as nothing goes wrong. @default true */
  readonly atOnce?: boolean;
  /** How much time may pass after the last fault until all is over. @default 90 s */
  readonly lateMs?: number;
  /** How much time it takes when nothing goes wrong, at most. */
  readonly withinMs?: number;
  /** Whether keys vanish when their time to live is over in virtual time. @default false */
  readonly expires?: boolean;
}

/** How much time may pass after the last fault until all is over; see docs/evidence/interleavings.md. */
const LATE_MS = 90_000;
const MOST_STEPS = 3_000;

export interface History {
  /** What was wrong; empty when nothing was. */
  readonly wrong: readonly string[];
  readonly deviations: readonly Deviation[];
  readonly lines: readonly string[];
  /** Steps that were decided. */
  readonly steps: number;
  /** Time that passed after the last deviation. */
  readonly healedMs: number;
}

let ear: Redis | undefined;
let mute: Redis | undefined;

/** The real connections of this file's histories; closed with those of the tests. */
export async function realConnections() {
  const connection = await connected();
  const shared = connection.client as Redis;
  ear ??= shared.duplicate();
  if (!mute) {
    await shared.call('ACL', 'SETUSER', 'mute', 'on', 'nopass', '+@all', '~*', 'resetchannels');
    mute = shared.duplicate({ username: 'mute', password: 'any' });
  }
  return { connection, shared, ear, mute };
}

export function closeEar(): void {
  ear?.disconnect();
  mute?.disconnect();
  ear = mute = undefined;
}

export async function play(
  world: World,
  scheduler: Scheduler,
  scriptNames: ReadonlyMap<string, string>,
): Promise<History> {
  const { connection, shared, ...others } = await realConnections();
  for (const one of [others.ear, others.mute]) if (one.status === 'wait') await one.connect();
  await others.ear.sunsubscribe();
  await shared.flushall();
  startVirtualTime();
  const stage = new Stage(connection, others, scriptNames, world.priorities ?? [50]);
  const cast = new Cast(stage);
  const rules = new Rules(stage, cast, { isTaskWorld: world.atOnce === false });
  const lateMs = world.lateMs ?? LATE_MS;
  const wrong: string[] = [];
  const deviations: Deviation[] = [];
  let step = 0;
  let lastAt = virtualNow();
  const faultless = () => deviations.every(({ fault }) => !fault);
  const calmSince = () => Math.max(lastAt, stage.backAt, stage.fullUntil, stage.thawedAt);
  const undisturbed = () => deviations.every(({ fault }) => !fault) && !stage.timePassed;
  try {
    await world.before?.(stage);
    await stage.refresh([QUEUE, ...world.requests.map(({ id }) => id)]);
    world.enter(cast);
    for (;;) {
      await quiet(() => stage.stirred);
      if (world.expires) await stage.expire(world.requests.map(({ id }) => id));
      cast.forget();
      wrong.push(...wrongNow(stage, cast));
      wrong.push(...rules.wrongStep(faultless()), ...rules.wrongNow());
      if (wrong.length > 0 || isOver(stage, cast)) break;
      const trips = stage.possible();
      if (trips.length === 0) {
        if (undisturbed() && world.atOnce !== false) wrong.push(...wrongWhenIdle(stage, cast));
        wrong.push(...rules.wrongWhenIdle(calmSince(), undisturbed()));
        if (wrong.length > 0) break;
        if (virtualNow() - calmSince() > lateMs || !passTime()) {
          wrong.push(`not over ${virtualNow() - calmSince()} ms after the last fault`);
          break;
        }
        stage.stirred += 1;
        continue;
      }
      const options: Option[] = [...trips, 'time'];
      const decided = scheduler.decide(options, step);
      const pick = decided.pick % options.length;
      const option = options[pick] as Option;
      // A schedule that was made smaller may name what cannot befall this step.
      const fits = option !== 'time' && decided.fault && befalls(decided.fault, option);
      const fault = fits ? decided.fault : undefined;
      if (pick > 0 || fault) {
        deviations.push({ step, pick, ...(fault ? { fault } : {}) });
        lastAt = virtualNow();
      }
      step += 1;
      if (step > MOST_STEPS) {
        wrong.push(`not over after ${step} steps`);
        break;
      }
      if (option === 'time') {
        stage.timePassed = true;
        stage.lines.push('time passes');
        passTime();
        stage.stirred += 1;
      } else {
        if (fault === 'stands still') cast.crash(option.actor);
        // What arrives late is a fault of its own.
        if (option.patient) lastAt = virtualNow();
        await stage.carryOut(option, fault);
      }
    }
    const healedMs = virtualNow() - calmSince();
    if (undisturbed() && healedMs > (world.withinMs ?? lateMs)) wrong.push(`took ${healedMs} ms`);
    if (wrong.length === 0) {
      for (const one of world.requests) wrong.push(...wrongAtEnd(one, stage, cast, undisturbed()));
    }
    for (const actor of cast.actors) actor.dead = true;
    await stage.makeRoom();
    // What ended by its time to live is nobody's to drop.
    if (wrong.length === 0 && !world.expires) wrong.push(...(await leftBehind(stage, world)));
    return { wrong, deviations, lines: stage.lines, steps: step, healedMs };
  } finally {
    for (const actor of cast.actors) actor.dead = true;
    await stage.makeRoom();
    endVirtualTime();
  }
}

/** What is left when all is dropped. */
async function leftBehind(stage: Stage, { requests }: World): Promise<string[]> {
  passMs(61_000);
  await tickOnce(stage.scene(''));
  // A sign of life that lay ahead counts from that tick on.
  if (stage.clockSteps.length > 0) passMs(61_000);
  await tickOnce(stage.scene(''));
  const scenes = requests.map(({ id }) => stage.scene(id));
  const { shared } = stage;
  return leftAfterDrop(scenes, [stage.scene('').queue], shared, () => allKeys(shared));
}
