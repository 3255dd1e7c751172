import {
  type Condition,
  Connection,
  type OptionTable,
  option,
  type RedisInput,
  TIMES,
} from '@piecework/protocol';
import { z } from 'zod';

/** What a `Scheduler` and a `RetryQueue` have in common. */
export interface TimedOptions {
  /** Where Redis is, or a connection that is shared. A client that is passed in is never closed. */
  readonly redis: RedisInput | Connection;
  /** Whoever gives the same name has the same queue. Also its hash tag. */
  readonly name?: string | undefined;
  /**
   * How long each call goes on trying while Redis is unreachable, in ms; 0: not at all. A Redis that was never
   * reached is told at once. @default 30000
   */
  readonly unavailableMs?: number | undefined;
  /**
   * Holds the queue back: a predicate in Lua, registered here and never made of input, which says at
   * each take how many may be taken now. Every process of the queue has to give the same.
   * @default none
   */
  readonly condition?: Condition | undefined;
  /** Told what a stream that waits bears and goes on after. @default nobody is told */
  readonly onError?: ((error: unknown) => void) | undefined;
}

export interface CheckedTimedOptions {
  readonly redis: RedisInput | Connection;
  readonly name: string;
  readonly unavailableMs: number;
  readonly condition?: Condition;
  readonly onError: (error: unknown) => void;
}

const condition = z.strictObject({
  lua: z.string().min(1),
  keys: z.array(option.name().schema),
});

export const timedOptions = (name: string): OptionTable => ({
  redis: option.custom(
    z.any().refine((v) => v !== undefined && v !== null),
    'where Redis is',
  ),
  name: option.name(name),
  unavailableMs: option.ms(0, 86_400_000, TIMES.unavailableMs),
  condition: option.custom(
    condition,
    '{ lua, keys }: the body of a Lua function, names of its keys',
  ),
  onError: option.custom(
    z.custom((value) => typeof value === 'function'),
    'a function',
    () => {},
  ),
});

/** A moment by the clock of Redis. */
export type Moment = Date | number;

export const moment = option.custom(
  z.union([z.date().min(new Date(0)), z.number().int().min(0).max(8.64e15)]),
  'a Date from 1970 on, or a whole number of ms since 1970',
);

export const signal = option.custom(z.instanceof(AbortSignal), 'an AbortSignal');

/** How long something may be taken: a lease or a lock, in ms. */
export const leaseMs = option.ms(100, 86_400_000, 30_000);
export const demand = option.integer(1, 10_000, 1);
export const pollMs = option.ms(1, 86_400_000);

export const isConnection = (redis: RedisInput | Connection): redis is Connection =>
  redis instanceof Connection;

/** What a stream of `RetryQueue.tasks` takes, and how it waits. */
export interface TakeOptions {
  /** Most tasks that are held at once, given out or not. 1 to 10000. @default 1 */
  readonly demand?: number | undefined;
  /** How long a task is believed to be in work without a sign of life, in ms. 100 to a day. @default 30000 */
  readonly leaseMs?: number | undefined;
  /** Looks so often, in ms, instead of being woken when something is due. @default it is woken */
  readonly pollMs?: number | undefined;
  /** Ends the stream, without an error; what was given out is still renewed and can be settled. */
  readonly signal?: AbortSignal | undefined;
}
