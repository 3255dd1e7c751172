import type { Argument } from '../client.js';

/*
 * The constructor of ioredis' Command copies its arguments by their method `flat`, for which V8 takes 2 to 4 µs with the
 * twenty arguments of a script. Where ioredis does not call it any more, nothing changes.
 */

/** These arguments, whose `flat` answers them instead of a copy. They must be flat, and of this one command only. */
export function asFlat(args: Argument[]): Argument[] {
  Object.assign(args, { flat: itself });
  return args;
}

function itself(this: Argument[]): Argument[] {
  return this;
}
