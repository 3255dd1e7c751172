/** `@piecework/notifier/options`: the options of a Notifier, and option tables for the command line. */

import type { SharedConnection } from '@piecework/protocol';
import {
  type Idle,
  idleOption,
  type OptionTable,
  option,
  type RedisInput,
  shape,
  shardsOption,
  TIMES,
} from '@piecework/protocol/contract';

export { failuresOptions } from './failures/failure-options.js';

export interface NotifierOptions {
  /** Where Redis is, or a connection that is shared. A client that is passed in is never closed. */
  readonly redis: RedisInput | SharedConnection;
  /** The queue: its agenda is ticked while somebody waits, and it knows which ids have ended. @default 'req' */
  readonly queue?: string | undefined;
  /** How many shards the queue has, from 1 to 64: the same for all that use it. @default 1 */
  readonly shards?: number | undefined;
  /**
   * How often the state of everything awaited is read although no notice came, in ms, ±20 % of a tenth, from 10 to
   * 600000. A lost notice delays the completion by this time at most; by a tenth of it where up to 150 requests
   * are awaited, for up to five minutes at the default. @default 15000; 150000 if `idle` is 'frugal'
   */
  readonly sweepMs?: number | undefined;
  /**
   * 'frugal': while it waits, it sends a tenth of the commands, for servers that bill each. After a lost notice it ends
   * its wait within 18 s instead of 1.8 s (`sweepMs`), and it carries out what it finds due, such as a deadline, up to 50 s
   * late where no worker does. @default 'responsive'
   */
  readonly idle?: Idle | undefined;
  /**
   * How long `status` keeps trying while Redis is unreachable, loading, or a hash slot is being moved or
   * served by no master, in ms, before it throws the last answer; 0: not at all. Calls that wait have
   * `timeoutMs` instead. All of them fail at once when Redis was never reached. @default 30000
   */
  readonly unavailableMs?: number | undefined;
  /** Receives errors that the notifier recovers from by itself, as a broken connection. @default none */
  readonly onError?: ((error: unknown) => void) | undefined;
}

export const notifierOptions: OptionTable = {
  redis: option.custom(shape.given, 'where Redis is'),
  queue: option.name('req'),
  shards: shardsOption,
  sweepMs: option.ms(10, 600_000),
  idle: idleOption,
  unavailableMs: option.ms(0, 86_400_000, TIMES.unavailableMs),
  onError: option.custom(shape.callable, 'a function'),
};
