import {
  parseHeader,
  readSource,
  type ScriptMutation,
  scriptNames,
} from '../../scripts/lua-source.mjs';
import { flagCure, luaCures } from '../mutations/cures.mjs';
import { historiesOf } from '../mutations/histories.js';
import type { Trace } from '../support/trace.js';

/*
 * The cures of the scripts, switched off. What is changed stands in the histories of the tests that cures.mjs names, but
 * for the flags.
 */

/** A cure, and one way to switch it off. */
export interface Mutant {
  readonly cure: string;
  /** Name of the history that shows it, and which of its mutations this is, from 1. */
  readonly history: string;
  readonly part: number;
  readonly mutations: readonly ScriptMutation[];
}

let loaded: Promise<Mutant[]> | undefined;

/** All mutants of the scripts. The files are loaded once; a second time they would say nothing. */
export function mutants(): Promise<Mutant[]> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<Mutant[]> {
  const histories = await historiesOf(luaCures.map(({ test }) => test));
  const flags = scriptNames
    .filter((script) => parseHeader(script, readSource(script)).flags.includes('allow-oom'))
    .map((script) => {
      const mutation = { script, flags: false } as const;
      return { cure: flagCure.cure, history: `full, ${script}`, part: 1, mutations: [mutation] };
    });
  const cures = luaCures.flatMap(({ cure, test, history }) => {
    const { without } = (histories.get(test) as Record<string, Trace>)[history] as Trace;
    return without.map((mutation, i) => {
      return { cure, history, part: i + 1, mutations: [mutation].flat() };
    });
  });
  return [...cures, ...flags];
}
