import { Dice } from './dice.js';

/*
 * The requests that are submitted. Everything about one follows from the seed of the run and the number of the request,
 * so the successor of a killed process needs no data from it.
 */

export interface Plan {
  readonly number: number;
  readonly id: string;
  readonly size: number;
  readonly limit: number;
  readonly priority: number;
  /** As an array in one call, or opened, filled piece by piece and sealed. */
  readonly manner: 'at once' | 'in pieces';
  /** How many items one piece has. */
  readonly piece: number;
  /** How many unsettled items Redis may hold; 0: any number. */
  readonly window: number;
  /** Share of its items that fail. */
  readonly failing: number;
  /** Places of the waiters that await it. The second one comes `lateMs` after the seal. */
  readonly waiters: readonly number[];
  readonly lateMs: number;
  /** Whether its waiters read the results while it runs, and not only afterwards. */
  readonly live: boolean;
  /** Attempts of each of its items, and the approximate time between two of them. */
  readonly attempts: number;
  readonly backoffMs: number;
  /** Time from its creation to its deadline; 0: no deadline. */
  readonly deadlineMs: number;
  /** Control steps that are taken while it runs, one after the other. */
  readonly steps: readonly Step[];
}

/** A control step: the process of `role` and `place` takes it, `afterMs` after the step before. */
export interface Step {
  readonly act: Act;
  readonly afterMs: number;
  readonly role: 'producer' | 'waiter';
  readonly place: number;
  /** The limit that is in force when it is done; 0 while it is paused. */
  readonly limit: number;
  /** For 'priority'. */
  readonly priority: number;
}

export type Act = 'pause' | 'resume' | 'limit' | 'priority' | 'cancel' | 'drop' | 'redrive';

export interface Payload {
  /** The number of the item: what its handler returns. */
  readonly item: number;
  readonly fate: Fate;
  /** A process that gets it for the first time calls `holdRequest` with this time; 0: it does not. */
  readonly holdMs: number;
  readonly workMs: number;
  /** Whether its handler ignores its signal and continues. */
  readonly deaf: boolean;
}

/**
 * 'fails': at every attempt · 'fails for good': at the first, and for good · 'fails first': at the first
 * attempt only. Once its request was redriven nothing fails.
 */
export type Fate = 'succeeds' | 'fails' | 'fails for good' | 'fails first';

/** Number of waiters; the last one receives no notices. */
export const WAITERS = 3;
const LONGEST_WORK_MS = 20;
/** A few take long, some of them longer than a lease: these a zombie runs while another worker runs them too. */
const LONG_WORK = 0.003;
const LONG_WORK_MS = 3_000;
/** At most this many items per unit of the limit, so that no request takes minutes. */
const ITEMS_PER_LIMIT = 120;
/** Share of the requests that have control steps, and of those that have a deadline. */
const MEDDLED = 0.5;
const WITH_DEADLINE = 0.05;
/** Number of producer places from which a step may be taken. */
const PRODUCERS = 2;
const HOLDS = 0.001;
const READ_LIVE = 0.3;

export function planOf(seed: number, number: number): Plan {
  const dice = new Dice(seed, number);
  const limit = dice.chance(0.5) ? dice.whole(1, 50) : dice.magnitude(1, 50);
  const most = Math.min(5_000, limit * ITEMS_PER_LIMIT);
  const course = new Dice(seed, number, -1);
  const meddled = course.chance(MEDDLED);
  const deadlineMs = course.chance(WITH_DEADLINE) ? course.whole(3_000, 15_000) : 0;
  // Large enough that it still runs when its first step is taken.
  const size = dice.magnitude(meddled ? Math.min(100, most) : 1, most);
  const inPieces = dice.chance(0.4);
  const first = dice.chance(0.12) ? WAITERS - 1 : dice.whole(0, WAITERS - 2);
  const second = (first + 1) % (WAITERS - 1);
  return {
    number,
    id: `s${seed}-r${number}`,
    ...{ size, limit },
    priority: dice.pick([0, 10, 50, 50, 50, 99]),
    // If a request ended while items are added, it would not be known which of them were acknowledged.
    manner: inPieces && deadlineMs === 0 ? 'in pieces' : 'at once',
    piece: dice.magnitude(1, 500),
    window: inPieces && dice.chance(0.3) ? Math.max(20, limit * 8) : 0,
    // Now and then so many that a redrive takes several calls, with workers between them.
    failing: dice.chance(0.3) ? course.pick([0.02, 0.05, 0.5]) : 0,
    waiters: dice.chance(0.25) ? [first, second] : [first],
    lateMs: dice.between(0, 4_000),
    // A redrive begins another generation, and a dropped request cannot be read.
    live: !meddled && new Dice(seed, number, -2).chance(READ_LIVE),
    attempts: course.whole(1, 3),
    backoffMs: course.whole(0, 400),
    deadlineMs,
    steps: meddled ? stepsOf(course, limit, deadlineMs === 0) : [],
  };
}

/** Some changes while it runs, and perhaps an end: cancelled, dropped, or redriven. */
function stepsOf(dice: Dice, first: number, mayRedrive: boolean): Step[] {
  const steps: Step[] = [];
  let limit = first;
  const add = (act: Act, longestMs: number) => {
    const role = dice.pick(['producer', 'waiter'] as const);
    steps.push({
      ...{ act, role, limit: act === 'pause' ? 0 : limit },
      afterMs: dice.whole(0, longestMs),
      place: dice.whole(0, (role === 'producer' ? PRODUCERS : WAITERS) - 1),
      priority: dice.pick([0, 10, 50, 99]),
    });
  };
  for (let n = dice.whole(0, 3); n > 0; n -= 1) {
    const act = dice.pick(['pause', 'limit', 'limit', 'priority'] as const);
    if (act === 'limit') limit = dice.magnitude(1, 50);
    add(act, 1_000);
    if (act === 'pause') add('resume', 2_000);
  }
  const end = dice.pick(['none', 'cancel', 'drop', 'redrive', 'redrive'] as const);
  if (end !== 'none' && (end !== 'redrive' || mayRedrive)) add(end, 1_500);
  return steps;
}

/** A slow request takes this long to be added, so that an outage that outlasts leases may come in between. */
const SLOW_MS = 15_000;
const SLOW_EVERY = 4;

/** How long its producer pauses after adding this many items. */
export const pauseMs = ({ number, size }: Plan, added: number): number =>
  number % SLOW_EVERY === 0 ? (SLOW_MS * added) / size : 0;

/** Whether its limit changes while it runs. */
export const changesLimit = ({ steps }: Plan): boolean =>
  steps.some(({ act }) => act === 'limit' || act === 'pause');

export function payloadOf(seed: number, { number, failing }: Plan, item: number): Payload {
  const dice = new Dice(seed, number, item);
  const fate = new Dice(seed, number, item, -1);
  return {
    item,
    fate:
      failing > 0 && fate.chance(failing)
        ? fate.pick(['fails', 'fails for good', 'fails first'])
        : 'succeeds',
    holdMs: fate.chance(HOLDS) ? fate.whole(50, 1_000) : 0,
    workMs: dice.whole(0, dice.chance(LONG_WORK) ? LONG_WORK_MS : LONGEST_WORK_MS),
    deaf: dice.chance(0.5),
  };
}
