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
}

export interface Payload {
  /** The number of the item: what its handler returns. */
  readonly item: number;
  readonly fails: boolean;
  readonly workMs: number;
  /** Whether its handler goes on although its signal tells it to stop. */
  readonly deaf: boolean;
}

/** How many waiters there are; the last one hears no notices. */
export const WAITERS = 3;
const LONGEST_WORK_MS = 20;
/** A few take long, some longer than a lease: those are what a zombie runs beside somebody else. */
const LONG_WORK = 0.003;
const LONG_WORK_MS = 3_000;
/** Items for each of the limit, at most: nobody should have to work at one request for minutes. */
const ITEMS_PER_LIMIT = 120;

export function planOf(seed: number, number: number): Plan {
  const dice = new Dice(seed, number);
  const limit = dice.chance(0.5) ? dice.whole(1, 50) : dice.magnitude(1, 50);
  const size = dice.magnitude(1, Math.min(5_000, limit * ITEMS_PER_LIMIT));
  const inPieces = dice.chance(0.4);
  const first = dice.chance(0.12) ? WAITERS - 1 : dice.whole(0, WAITERS - 2);
  const second = (first + 1) % (WAITERS - 1);
  return {
    number,
    id: `s${seed}-r${number}`,
    ...{ size, limit },
    priority: dice.pick([0, 10, 50, 50, 50, 99]),
    manner: inPieces ? 'in pieces' : 'at once',
    piece: dice.magnitude(1, 500),
    window: inPieces && dice.chance(0.3) ? Math.max(20, limit * 8) : 0,
    failing: dice.chance(0.2) ? 0.02 : 0,
    waiters: dice.chance(0.25) ? [first, second] : [first],
    lateMs: dice.between(0, 4_000),
  };
}

export function payloadOf(seed: number, { number, failing }: Plan, item: number): Payload {
  const dice = new Dice(seed, number, item);
  return {
    item,
    fails: failing > 0 && dice.chance(failing),
    workMs: dice.whole(0, dice.chance(LONG_WORK) ? LONG_WORK_MS : LONGEST_WORK_MS),
    deaf: dice.chance(0.5),
  };
}
