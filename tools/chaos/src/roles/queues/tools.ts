import type { Taken, TakerEvent } from '../../contract/history.js';
import type { RoleArgument } from '../../contract/messages.js';

type Step = Extract<TakerEvent, { failed: string }>['failed'];

/** Given to the code of each kind of queue: where the queue is, and how to write the journal. */
export interface TakerTools {
  readonly argument: RoleArgument;
  readonly queue: Taken;
  /** `atMs`: when it was taken, by the server's clock, if the queue reports that. */
  readonly took: (key: string, atMs?: number) => void;
  readonly ends: (key: string) => void;
  readonly ended: (key: string, counted: boolean) => void;
  readonly failed: (step: Step, error: unknown, key?: string) => void;
  /** Whether this process is about to end. */
  readonly isOver: () => boolean;
}

export interface Opened {
  /**
   * Puts key number `n` of this process; called again after a retryable error. If a put takes several calls, it returns
   * when the call was sent that confirmed it.
   */
  put(key: string, n: number): Promise<string | undefined>;
  /** Takes and ends what comes, until the process ends. */
  take(): Promise<void>;
}

/** A taken key goes to another process after this time, in ms. */
export const HOLD_MS = 2_000;
/** One key in this many is taken and not ended: it comes back after HOLD_MS. */
export const LEFT_LYING = 50;
/** Longest delay of a key that is put with a delay, in ms. */
export const LATER_MS = 1_500;

/** The number at the end of a key. */
export const numberOf = (key: string): number => Number(key.slice(key.lastIndexOf('-') + 1));
