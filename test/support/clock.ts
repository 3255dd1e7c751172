import { AsyncLocalStorage } from 'node:async_hooks';
import { installTestClock, removeTestClock, setClockOffset } from '@piecework/protocol/testing';
import { afterAll, afterEach, beforeAll } from 'vitest';
import type { Change } from '../../scripts/anchors.mjs';
import {
  type BuiltScripts,
  buildScript,
  buildScripts,
  type ScriptMutation,
  type ScriptName,
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

/** A cure of a script that is switched off: what stands behind its anchor there is changed (scripts/anchors.mjs). */
export interface Mutation {
  readonly script: ScriptName;
  readonly cure: string;
  /** `skip`, unless it says otherwise. */
  readonly change?: Change;
}

/** Runs `work` against scripts in which these cures are switched off. */
export async function withMutations(
  mutations: readonly ScriptMutation[],
  work: () => Promise<void>,
): Promise<void> {
  const scripts = { ...testScripts() };
  for (const { script } of mutations) {
    const mine = mutations.filter((one) => one.script === script);
    scripts[script] = buildScript(script, 'test', mine);
  }
  await withScripts(scripts, work);
}

/** Runs `work` against these scripts instead of those of the test build. */
export async function withScripts(
  scripts: Partial<BuiltScripts>,
  work: () => Promise<void>,
): Promise<void> {
  installTestClock({ ...testScripts(), ...scripts });
  try {
    await work();
  } finally {
    installTestClock(testScripts());
  }
}
