import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type Mutant, mutants } from './mutants.js';
import { realConnections, type World } from './play.js';
import type { Schedule } from './schedule.js';
import { installScripts } from './scripts.js';
import { worlds } from './worlds.js';

/** A history that failed once, or that fails without a cure: a file of found/. */
export interface Found extends Schedule {
  readonly says: string;
  /** The cure that it needs: name of a history of test/lua, and which of its mutations. */
  readonly without?: { readonly history: string; readonly part: number };
  /** What is wrong without it. */
  readonly wrong?: string;
}

const folder = new URL('./found/', import.meta.url);

/** By file name. */
export const foundHistories: ReadonlyMap<string, Found> = new Map(
  readdirSync(folder)
    .sort()
    .map((name) => [name, JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Found]),
);

export function keepFound(name: string, found: Found): void {
  writeFileSync(new URL(name, folder), `${JSON.stringify(found, null, 2)}\n`);
}

/** The cure that it needs, switched off. */
export async function mutantOf({ without }: Found): Promise<Mutant> {
  const { history, part } = without as NonNullable<Found['without']>;
  const all = await mutants();
  const mutant = all.find((one) => one.history === history && one.part === part);
  if (!mutant) throw new Error(`no mutant ${history}, part ${part}`);
  return mutant;
}

/** Scripts without the cure that it needs, run from here on. */
export async function withoutCure(one: Found): Promise<ReadonlyMap<string, string>> {
  const { mutations } = await mutantOf(one);
  return installScripts((await realConnections()).shared, mutations);
}

export function worldOf({ world }: Schedule): World {
  const known = worlds[world];
  if (!known) throw new Error(`no world '${world}'`);
  return known;
}
