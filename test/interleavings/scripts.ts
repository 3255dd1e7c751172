import { installTestClock } from '@piecework/protocol/testing';
import type { Redis } from 'ioredis';
import {
  type BuiltScripts,
  buildScripts,
  type ScriptMutation,
  type ScriptName,
  shaOf,
} from '../../scripts/lua-source.mjs';

/** How the test build tells the time, and how it does in a history: by the caller's word alone. */
const MOVED = 'return t[1] * 1000 + math.floor(t[2] / 1000) + clockOffset';
const VIRTUAL = 'return clockOffset';

/** Scripts that the server knows, to be run instead of all others from `use` on. */
export interface Loaded {
  /** By sha. */
  readonly names: ReadonlyMap<string, string>;
  readonly use: () => void;
}

/**
 * Scripts that go by virtual time, in which these cures are switched off.
 */
export async function loadScripts(
  redis: Redis,
  mutations: readonly ScriptMutation[] = [],
): Promise<Loaded> {
  const scripts: BuiltScripts = buildScripts({ clock: 'test', mutations });
  const names = Object.keys(scripts) as ScriptName[];
  const change = (script: ScriptName, from: string, to: string) => {
    const found = scripts[script].lua.split(from).length - 1;
    if (found !== 1) throw new Error(`found ${found} times in ${script}: ${from}`);
    const lua = scripts[script].lua.replace(from, () => to);
    scripts[script] = { lua, sha: shaOf(lua) };
  };
  for (const name of names) {
    if (scripts[name].lua.includes(MOVED)) change(name, MOVED, VIRTUAL);
  }
  for (const name of names) await redis.script('LOAD', scripts[name].lua);
  return {
    names: new Map(names.map((name) => [scripts[name].sha, name])),
    use: () => installTestClock(scripts),
  };
}

/** The same, run from here on. Answers their names by sha. */
export async function installScripts(
  redis: Redis,
  mutations: readonly ScriptMutation[] = [],
): Promise<ReadonlyMap<string, string>> {
  const { names, use } = await loadScripts(redis, mutations);
  use();
  return names;
}
