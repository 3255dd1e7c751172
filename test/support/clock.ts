import { installTestClock, setClockOffset } from '@piecework/protocol/testing';
import { afterEach, beforeAll } from 'vitest';
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

let ahead = 0;

/** From here on the scripts' clock is `ms` further ahead. */
export function moveClock(ms: number): void {
  ahead += ms;
  setClockOffset(ahead);
}

/** How far the scripts' clock is ahead of the server's. */
export const clockOffset = (): number => ahead;

/** Lets the scripts of this file run by a clock that starts at the server's time in each test. */
export function useTestClock(): void {
  beforeAll(() => installTestClock(buildScripts({ clock: 'test' })));
  afterEach(() => moveClock(-ahead));
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
  const scripts: BuiltScripts = buildScripts({ clock: 'test' });
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
    installTestClock(buildScripts({ clock: 'test' }));
  }
}
