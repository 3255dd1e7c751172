import { AsyncLocalStorage } from 'node:async_hooks';
import { installTestClock, removeTestClock, setClockOffset } from '@piecework/protocol/testing';
import { afterAll, afterEach, beforeAll } from 'vitest';
import {
  type BuiltScripts,
  buildScripts,
  type ScriptName,
  shaOf,
} from '../../scripts/lua-source.mjs';

/*
 * The clock of the scripts in the hand of the test. It moves the scripts' own time only: TTLs of
 * keys, and processes that the test starts, go by the server's.
 */

/** How far a clock is ahead of the server's, in ms. */
interface Clock {
  ahead: number;
}

const shared: Clock = { ahead: 0 };
const own = new AsyncLocalStorage<Clock>();
const clock = () => own.getStore() ?? shared;

/** From here on the scripts' clock is `ms` further ahead. */
export function moveClock(ms: number): void {
  clock().ahead += ms;
}

/** How far the scripts' clock is ahead of the server's. */
export const clockOffset = (): number => clock().ahead;

setClockOffset(clockOffset);

/**
 * Does `work` by a clock of its own, which starts at the server's time: everything that it calls and
 * leaves behind, timers and sockets too. So tests that move the clock may run side by side, as long
 * as they share neither a queue nor a request.
 */
export const withOwnClock = <T>(work: () => Promise<T>): Promise<T> => own.run({ ahead: 0 }, work);

let built: BuiltScripts | undefined;

/** Built once, as that reads and checks every script. */
function testScripts(): BuiltScripts {
  built ??= buildScripts({ clock: 'test' });
  return built;
}

/** Lets the scripts of this file run by a clock that starts at the server's time in each test. */
export function useTestClock(): void {
  beforeAll(() => installTestClock(testScripts()));
  afterEach(() => moveClock(-clockOffset()));
  // The next file may share this process.
  afterAll(removeTestClock);
}

/** A change to the text of a built script (comments and indentation are stripped there). */
export interface Mutation {
  readonly script: ScriptName;
  readonly from: string;
  readonly to: string;
}

/**
 * Runs `work` against scripts that are changed in these places.
 * @throws Error when a text that is to be changed does not occur exactly once
 */
export async function withMutations(
  mutations: readonly Mutation[],
  work: () => Promise<void>,
): Promise<void> {
  const scripts = { ...testScripts() };
  for (const { script, from, to } of mutations) {
    const { lua } = scripts[script];
    const found = lua.split(from).length - 1;
    if (found !== 1) throw new Error(`found ${found} times in ${script}: ${from}`);
    const changed = lua.replace(from, () => to);
    scripts[script] = { lua: changed, sha: shaOf(changed) };
  }
  installTestClock(scripts);
  try {
    await work();
  } finally {
    installTestClock(testScripts());
  }
}
