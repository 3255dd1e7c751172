import type { Actor } from './actor.js';

/*
 * A step of a history: one round trip of one actor, the end of a handler, or a notice that arrives.
 * It waits at the gate until the scheduler has it carried out, in full, before any other.
 */

/**
 * What may become of a step, besides being done:
 *
 * - not sent: the connection broke before. A notice: it never comes
 * - reply lost: done; the caller is told that the connection broke. A notice: its connection breaks
 * - sent again: done twice by the client library, which hands out the second reply
 * - late, much later: the caller is told that the connection broke, and it is done at any later time;
 *   not before a lease is over
 * - ends before, ends after: the process dies before it is sent, or when it is done
 * - ends, much later: the process dies, and what it sent is done, not before a lease is over
 * - stands still: done; its process stops for longer than a lease, and goes on with the reply then
 * - Redis stands still: done; then it answers nobody for longer than a lease
 * - Redis is full: from here on, for a while, it refuses whatever fills it
 * - no answer: a pop whose connection died without a word
 * - not published: done by a server that may not publish
 */
export const FAULTS = [
  'not sent',
  'reply lost',
  'sent again',
  'late',
  'much later',
  'ends before',
  'ends after',
  'ends, much later',
  'stands still',
  'Redis stands still',
  'Redis is full',
  'not published',
  'no answer',
] as const;

/** The server's clock is set by so many ms right before the step, which goes well. */
export const CLOCK_STEPS = {
  'clock an hour back': -3_600_000,
  'clock a minute back': -60_000,
  'clock 5 s back': -5_000,
  'clock a minute forward': 60_000,
  'clock an hour forward': 3_600_000,
} as const;
export type ClockStep = keyof typeof CLOCK_STEPS;
export const CLOCK_FAULTS = Object.keys(CLOCK_STEPS) as ClockStep[];

export type Fault = (typeof FAULTS)[number] | ClockStep;

export type TripKind = 'call' | 'pop' | 'connect' | 'handler' | 'notice';

export interface Trip {
  /** Whose, and the how-manieth of it: the same in every history that begins alike. */
  readonly key: string;
  readonly actor: Actor;
  readonly kind: TripKind;
  readonly name: string;
  /** Arguments behind the keys. */
  readonly argv?: readonly string[];
  /** Hash tags of the keys that it touches. None: it is out of everybody's way. */
  readonly tags: readonly string[];
  readonly readsOnly: boolean;
  /** Not in a hurry: carried out when nothing else is to do, unless the scheduler wants it before. */
  readonly patient: boolean;
  readonly arrivedAt: number;
  /** Not carried out before this time. */
  readonly notBefore?: number;
  /** Carries it out; again, when called again. */
  readonly send: () => Promise<unknown>;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
}

const FITTING: Record<TripKind, readonly (typeof FAULTS)[number][]> = {
  call: FAULTS.filter((fault) => fault !== 'no answer'),
  pop: FAULTS.filter((fault) => !['not published', 'Redis is full'].includes(fault)),
  connect: ['not sent', 'ends before', 'stands still'],
  handler: ['ends before', 'stands still'],
  notice: ['not sent', 'reply lost', 'ends before'],
};

/** Which faults can befall a step. One that nobody waits for any more goes well. */
export const faultsFor = ({ kind, patient }: Trip): readonly Fault[] =>
  patient ? [] : FITTING[kind];

/** The same, and steps of the clock, which do not belong to any one step. */
export const befalls = (fault: Fault, trip: Trip): boolean =>
  fault in CLOCK_STEPS ? !trip.patient : faultsFor(trip).includes(fault);

export const broken = (): Error => new Error('Connection is closed.');

/** How a step is called in a history. */
export const titleOf = ({ actor, name, tags }: Trip): string =>
  [actor.name, name, ...tags].join(' ');

/** What of a step decides whether it commutes with others. */
export type Footprint = Pick<Trip, 'key' | 'tags' | 'readsOnly'>;

const ownerOf = ({ key }: Footprint) => key.slice(0, key.indexOf('#'));

/** Whether two steps may change places without anybody noticing. */
export function commute(a: Footprint, b: Footprint): boolean {
  if (ownerOf(a) === ownerOf(b)) return false;
  if (a.readsOnly && b.readsOnly) return true;
  return !a.tags.some((tag) => b.tags.includes(tag));
}
