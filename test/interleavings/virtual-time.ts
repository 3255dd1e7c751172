import { setClockOffset } from '@piecework/protocol/testing';
import { vi } from 'vitest';
import { clockOffset } from '../support/clock.js';
import { currentActor } from './actor.js';

/*
 * The time of a history. The timers of the roles (pace of the ticks, renewals, backoff, watchdogs),
 * their own clock and the clock of the scripts are one virtual time, which stands still until the
 * scheduler lets it pass: to the next timer, never further. The clock of the scripts may be set by
 * so much, as that of a server. Sockets and setImmediate stay real: all
 * that is under way in the roles besides round trips and timers ends within some turns of the event
 * loop, so `quiet` waits for turns and not for a time.
 */

/** Every history starts here. Far from the real time, which so shows if it leaks in. */
const START = Date.UTC(2020, 0, 1);
/** How many turns of the event loop in a row nothing has to come up. */
const QUIET_TURNS = 4;

const realRandom = Math.random;
/** How far the server's clock is ahead of the processes'. */
let aheadMs = 0;
let faked: Pick<typeof globalThis, 'setTimeout' | 'setInterval'> | undefined;

/** From here on timers of the process are virtual, and belong to the actor that sets them. */
export function startVirtualTime(): void {
  vi.useFakeTimers({
    now: START,
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'Date'],
  });
  const { setTimeout: later, setInterval: often } = globalThis;
  faked = { setTimeout: later, setInterval: often };
  const owned = (set: typeof later | typeof often) =>
    ((work: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
      const actor = currentActor();
      const run = () => work(...args);
      return set(() => (actor ? actor.wake(run) : run()), ms);
    }) as never;
  globalThis.setTimeout = owned(later);
  globalThis.setInterval = owned(often);
  // The jitter of paces and backoffs: one of its values.
  Math.random = () => 0.5;
  aheadMs = 0;
  setClockOffset(serverNow);
}

export function endVirtualTime(): void {
  vi.clearAllTimers();
  Object.assign(globalThis, faked);
  vi.useRealTimers();
  Math.random = realRandom;
  setClockOffset(clockOffset);
}

export const virtualNow = (): number => Date.now();

/** What the server's clock says. */
export const serverNow = (): number => Date.now() + aheadMs;

/** Sets the server's clock. */
export const stepClock = (ms: number): void => {
  aheadMs += ms;
};

/** Lets time pass until the next timer. False: there is none. */
export function passTime(): boolean {
  if (vi.getTimerCount() === 0) return false;
  vi.advanceTimersToNextTimer();
  return true;
}

/** Lets so much time pass, as for the sweep at the end. */
export const passMs = (ms: number): void => void vi.advanceTimersByTime(ms);

/** Resolves when nothing came up for some turns; `seen` counts what comes up. */
export async function quiet(seen: () => number): Promise<void> {
  let before = seen();
  for (let turns = 0; turns < QUIET_TURNS; turns += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    if (seen() === before) continue;
    before = seen();
    turns = -1;
  }
}
