import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { vi } from 'vitest';
import { parseHeader, readSource, scriptNames } from '../../scripts/lua-source.mjs';
import { flagCure, luaCures } from '../mutations/cures.mjs';
import type { Mutation } from '../support/clock.js';
import type { Trace } from '../support/trace.js';

/*
 * The cures of the scripts, switched off. The texts stand in the histories of the tests that cures.mjs names, but
 * for the flags; here those files are loaded with a `playTraces` that plays nothing and remembers.
 */

/** A cure, and one way to switch it off. */
export interface Mutant {
  readonly cure: string;
  /** Name of the history that shows it, and which of its mutations this is, from 1. */
  readonly history: string;
  readonly part: number;
  readonly mutations: readonly Mutation[];
}

let loaded: Promise<Mutant[]> | undefined;

/** All mutants of the scripts. The files are loaded once; a second time they would say nothing. */
export function mutants(): Promise<Mutant[]> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<Mutant[]> {
  const known: { [history: string]: Trace } = {};
  vi.doMock('../support/trace.js', () => ({
    playTraces: (_: string, traces: { [history: string]: Trace }) => Object.assign(known, traces),
  }));
  for (const test of new Set(luaCures.map((one) => one.test)))
    await import(pathToFileURL(resolve(test)).href);
  vi.doUnmock('../support/trace.js');
  const flags = scriptNames
    .filter((script) => parseHeader(script, readSource(script)).flags.includes('allow-oom'))
    .map((script) => {
      const mutation = { script, from: '#!lua flags=allow-oom', to: '#!lua' };
      return { cure: flagCure.cure, history: `full, ${script}`, part: 1, mutations: [mutation] };
    });
  const cures = luaCures.flatMap(({ cure, history }) => {
    const { without } = known[history] as Trace;
    return without.map((mutation, i) => {
      return { cure, history, part: i + 1, mutations: [mutation].flat() };
    });
  });
  return [...cures, ...flags];
}
