import {
  InvalidOptionError,
  type OptionTable,
  option,
  shape,
  type WaitOptions,
  waitOptions,
} from '@piecework/protocol';
import { completionCursor } from '../results/completion-order.js';

export interface RequestEventsOptions extends WaitOptions {
  /** The `cursor` of the last event that was processed: continues behind it, in any process. @default none */
  readonly cursor?: string | undefined;
  /** Time between two `progress` events, in ms, from 10 to 3600000; 0: none, and nothing is polled. @default 1000 */
  readonly progressMs?: number | undefined;
  /**
   * Whether there is an event for each sub-request that succeeds or fails. `false` reads no results: only `progress`
   * and `completed` come. @default true
   */
  readonly outcomes?: boolean | undefined;
  /** As of `results`: whether workers settle each outcome soon for this reader. @default true */
  readonly live?: boolean | undefined;
}

export const requestEventsOptions: OptionTable = {
  cursor: option.custom(shape.text(1, 200), 'the cursor of an event of this request'),
  progressMs: option.custom(
    shape.either(shape.word(0), shape.integer(10, 3_600_000)),
    '0, or a time between 10 and 3600000 (ms)',
    1_000,
  ),
  outcomes: option.boolean(true),
  live: option.boolean(true),
  ...waitOptions,
};

/** The options after the check, defaults filled in. */
export type CheckedEventsOptions = Required<
  Pick<RequestEventsOptions, 'progressMs' | 'outcomes' | 'live'>
> &
  Pick<RequestEventsOptions, 'cursor'> &
  WaitOptions;

/** What a cursor says: the consumer has processed the completion of a generation, and outcomes up to a position. */
export interface EventCursor {
  /** The generation whose completion was processed; 0: none. */
  readonly completed: number;
  /** The cursor of the last outcome; undefined: none. */
  readonly outcome: string | undefined;
}

export const encodeCursor = ({ completed, outcome = '' }: EventCursor): string =>
  `e${completed}.${outcome}`;

/** @throws InvalidOptionError when it is not the cursor of an event */
export function decodeCursor(cursor: string | undefined): EventCursor {
  if (cursor === undefined) return { completed: 0, outcome: undefined };
  const [, completed, outcome] = /^e(\d{1,16})\.(.*)$/.exec(cursor) ?? [];
  if (completed === undefined)
    throw new InvalidOptionError('cursor', cursor, 'the cursor of an event of this request');
  if (outcome) completionCursor(outcome);
  return { completed: Number(completed), outcome: outcome || undefined };
}
