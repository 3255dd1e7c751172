import type { RecentEnd, RequestReads, ResultsEntry } from '@piecework/protocol';
import type { NamedChannel } from './caller-channel.js';
import type { Subscription } from './subscription.js';

/** A request that somebody waits for, or several. */
export interface Watch {
  readonly request: RequestReads;
  readonly subscriptions: Set<Subscription>;
  /** The generation that was seen last, or 0. */
  seen: number;
  /** Whether its notice is expected on the channel of this process, and not on its own. */
  isTold: boolean;
  /** Whether its state was read because a notice may be lost. */
  isSwept: boolean;
}

/** Who joins a watch. */
export interface Joining {
  /** A generation that the request is known to have; 0: none. @default 0 */
  readonly seen?: number;
  /** Of a request that this process submitted. */
  readonly named?: NamedChannel | undefined;
  /** Whether the caller awaits the completion. @default false */
  readonly awaits?: boolean;
  /** Whether the state is to be read, also if an end is remembered. @default false */
  readonly afresh?: boolean;
}

/** How a request ended, and all its results. */
export type EndWithResults = RecentEnd & { readonly results: readonly ResultsEntry[] };

/** Whether a caller who knows that the request has reached the generation `seen` (0: none) may take this for its end. */
export const isKnown = ({ state }: RecentEnd, seen: number): boolean =>
  seen === 0 || state.generation === seen;

/** Whether this is the generation that was seen last, and that every caller knows of who knows any. */
export const areOf = ({ seen, subscriptions }: Watch, of: number): boolean =>
  seen === of &&
  [...subscriptions].every(({ generation }) => generation === 0 || generation === of);
