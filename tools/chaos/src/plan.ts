import { Dice } from './dice.js';

/*
 * What is submitted. All of it follows from the seed of the run and the number of the request, so
 * that a process that takes over from a killed one has nothing to inherit.
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
  /** Which part of its items fails. */
  readonly failing: number;
  /** Places of the waiters that await it. The second one comes `lateMs` after the seal. */
  readonly waiters: readonly number[];
  readonly lateMs: number;
  /** Whether its waiters read the results while it runs, and not only afterwards. */
  readonly live: boolean;
  /** Attempts of each of its items, and from one to the next about this long. */
  readonly attempts: number;
  readonly backoffMs: number;
  /** From its creation; 0: none. */
  readonly deadlineMs: number;
  /** What is done to it while it runs, one after the other. */
  readonly steps: readonly Step[];
}

/** What some process does to a request: so long after the step before, from that process' place. */
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
  /** Each process that gets it first holds its request back for so long; 0: not. */
  readonly holdMs: number;
  readonly workMs: number;
  /** Whether its handler goes on although its signal tells it to stop. */
  readonly deaf: boolean;
}

/**
 * 'fails': at every attempt · 'fails for good': at the first, and for good · 'fails first': at the first
 * attempt only. Once its request was redriven nothing fails.
 */
export type Fate = 'succeeds' | 'fails' | 'fails for good' | 'fails first';

/** How many waiters there are; the last one hears no notices. */
export const WAITERS = 3;
const LONGEST_WORK_MS = 20;
/** A few take long, some longer than a lease: those are what a zombie runs beside somebody else. */
const LONG_WORK = 0.003;
const LONG_WORK_MS = 3_000;
/** Items for each of the limit, at most: nobody should have to work at one request for minutes. */
const ITEMS_PER_LIMIT = 120;
/** How many of the requests are meddled with, and how many have a deadline. */
const MEDDLED = 0.5;
const WITH_DEADLINE = 0.05;
/** How many places a step may be done from, of each role. */
const PRODUCERS = 2;
const HOLDS = 0.001;
const READ_LIVE = 0.3;

export function planOf(seed: number, number: number): Plan {
  const dice = new Dice(seed, number);
  const limit = dice.chance(0.5) ? dice.whole(1, 50) : dice.magnitude(1, 50);
  const most = Math.min(5_000, limit * ITEMS_PER_LIMIT);
  const life = new Dice(seed, number, -1);
  const meddled = life.chance(MEDDLED);
  const deadlineMs = life.chance(WITH_DEADLINE) ? life.whole(3_000, 15_000) : 0;
  // What is over before anybody can meddle with it shows nothing.
  const size = dice.magnitude(meddled ? Math.min(100, most) : 1, most);
  const inPieces = dice.chance(0.4);
  const first = dice.chance(0.12) ? WAITERS - 1 : dice.whole(0, WAITERS - 2);
  const second = (first + 1) % (WAITERS - 1);
  return {
    number,
    id: `s${seed}-r${number}`,
    ...{ size, limit },
    priority: dice.pick([0, 10, 50, 50, 50, 99]),
    // Of one that ends while it is added to, nobody could say what of it was acknowledged.
    manner: inPieces && deadlineMs === 0 ? 'in pieces' : 'at once',
    piece: dice.magnitude(1, 500),
    window: inPieces && dice.chance(0.3) ? Math.max(20, limit * 8) : 0,
    // Now and then so many that a redrive takes several calls, with workers between them.
    failing: dice.chance(0.3) ? life.pick([0.02, 0.05, 0.5]) : 0,
    waiters: dice.chance(0.25) ? [first, second] : [first],
    lateMs: dice.between(0, 4_000),
    // A redrive begins a life of its own; what is dropped is read no more.
    live: !meddled && new Dice(seed, number, -2).chance(READ_LIVE),
    attempts: life.whole(1, 3),
    backoffMs: life.whole(0, 400),
    deadlineMs,
    steps: meddled ? stepsOf(life, limit, deadlineMs === 0) : [],
  };
}

/** Some changes while it goes on, and perhaps an end: cancelled, dropped, or run again. */
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

/** So long a slow one takes to add all of it: an outage that outlasts leases comes in between. */
const SLOW_MS = 15_000;
const SLOW_EVERY = 4;

/** For how long its producer waits when it has added so many: a piece may be larger than all that is left. */
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
