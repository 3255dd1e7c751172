import type { Taken, TakerEvent } from '../../history.js';
import type { RoleArgument } from '../../messages.js';

type Step = Extract<TakerEvent, { failed: string }>['failed'];

/** What one kind of queue is given: where it is, and how to write down what is done. */
export interface TakerTools {
  readonly argument: RoleArgument;
  readonly queue: Taken;
  /** `atMs`: since when it is in this hand, by the server's clock, where that is told. */
  readonly took: (key: string, atMs?: number) => void;
  readonly ends: (key: string) => void;
  readonly ended: (key: string, counted: boolean) => void;
  readonly failed: (step: Step, error: unknown, key?: string) => void;
  /** This process is told to end. */
  readonly isOver: () => boolean;
}

export interface Opened {
  /**
   * Puts key number `n` of this process; asked again after an error that is retryable. What took more than one
   * call says since when it is known to be in.
   */
  put(key: string, n: number): Promise<string | undefined>;
  /** Takes and ends what comes, until the process ends. */
  take(): Promise<void>;
}

/** How long one may be in a hand, in ms. */
export const HOLD_MS = 2_000;
/** One in so many is not ended: it comes back when its time in this hand is over. */
export const LEFT_LYING = 50;
/** Keys that are put to come later do so within this time. */
export const LATER_MS = 1_500;

/** The number at the end of a key. */
export const numberOf = (key: string): number => Number(key.slice(key.lastIndexOf('-') + 1));
