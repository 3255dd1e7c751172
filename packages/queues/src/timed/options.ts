import {
  type Condition,
  type Idle,
  idleOption,
  type OptionTable,
  option,
  type RedisInput,
  type SharedConnection,
  shape,
  TIMES,
} from '@piecework/protocol';

/** Options that a `Scheduler` and a `RetryQueue` have in common. */
export interface TimedOptions {
  /** Where Redis is, or a connection to share. A client that you pass in is never closed. */
  readonly redis: RedisInput | SharedConnection;
  /** Objects with the same name share one queue. It is also the hash tag of the queue's keys. */
  readonly name?: string | undefined;
  /**
   * How long each call is repeated while Redis is unavailable, in ms; 0: once. If Redis was never reached, a call
   * throws at once. @default 30000
   */
  readonly unavailableMs?: number | undefined;
  /**
   * Limits how many items may be taken now: the body of a Lua function that runs at each take. It is program text;
   * never build it from input. All processes of the queue have to give the same one. @default none
   */
  readonly condition?: Condition | undefined;
  /**
   * 'frugal': while it waits, it sends a tenth of the commands, for servers that bill each. After a lost notice, or the
   * death of another consumer, an item comes up to 120 s late instead of 12 s. @default 'responsive'
   */
  readonly idle?: Idle | undefined;
  /** Receives the errors after which a waiting stream continues. @default they are ignored */
  readonly onError?: ((error: unknown) => void) | undefined;
}

export interface CheckedTimedOptions {
  readonly redis: RedisInput | SharedConnection;
  readonly name: string;
  readonly unavailableMs: number;
  readonly condition?: Condition;
  readonly idle: Idle;
  readonly onError: (error: unknown) => void;
}

const condition = shape.exactly({
  lua: shape.text(1, Number.POSITIVE_INFINITY),
  keys: shape.array(option.name().fits),
});

export const timedOptions = (name: string): OptionTable => ({
  redis: option.custom(shape.given, 'where Redis is'),
  name: option.name(name),
  unavailableMs: option.ms(0, 86_400_000, TIMES.unavailableMs),
  condition: option.custom(
    condition,
    '{ lua, keys }: the body of a Lua function, names of its keys',
  ),
  idle: idleOption,
  onError: option.custom(shape.callable, 'a function', () => {}),
});

/** A point in time, by the clock of Redis: a Date, or ms since 1970. */
export type Moment = Date | number;

export const moment = option.custom(
  shape.either(
    shape.both(shape.date, (value) => Number(value) >= 0),
    shape.integer(0, 8.64e15),
  ),
  'a Date from 1970 on, or a whole number of ms since 1970',
);

export const signal = option.custom(shape.instance(AbortSignal), 'an AbortSignal');

/** Length of a lease or a lock, in ms. */
export const leaseMs = option.ms(100, 86_400_000, 30_000);
export const demand = option.integer(1, 10_000, 1);
export const pollMs = option.ms(1, 86_400_000);

/** How many items a stream of `RetryQueue.items` takes, and how it waits. */
export interface TakeOptions {
  /** At most this many unsettled items at once, handed out or not. 1 to 10000. @default 1 */
  readonly demand?: number | undefined;
  /** After a consumer has died, its items are taken by others within this time, in ms. 100 to a day. @default 30000 */
  readonly leaseMs?: number | undefined;
  /** Polls at this interval, in ms, instead of being woken when an item is due. @default it is woken */
  readonly pollMs?: number | undefined;
  /** Ends the stream, without an error. Items that were handed out are still renewed and can be settled. */
  readonly signal?: AbortSignal | undefined;
}
