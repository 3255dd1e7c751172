import {
  buildScripts,
  parseHeader,
  readSource,
  type ScriptName,
} from '../../scripts/lua-source.mjs';

const names = new Map<string, ScriptName>();
for (const clock of ['server', 'test'] as const) {
  for (const [name, { sha, lua }] of Object.entries(buildScripts({ clock }))) {
    names.set(sha, name as ScriptName).set(lua, name as ScriptName);
  }
}

/** The script that a command runs, by its hash or its text. */
export const scriptOf = (verb: string, [script]: readonly unknown[]): ScriptName | undefined =>
  /^eval(sha)?$/i.test(verb) ? names.get(String(script)) : undefined;

/** The arguments of a call, by their names in the header of the script. */
export function argumentsOf(script: ScriptName, [, keys, ...args]: readonly unknown[]) {
  const rows = parseHeader(script, readSource(script)).args;
  const values = args.slice(Number(keys)).map(String);
  const each = rows.at(-1)?.each ?? [];
  /** All that the last row stands for, if it repeats. */
  const rest = rows.at(-1)?.rest ? values.slice(rows.length - 1) : [];
  const groups: Map<string, string>[] = [];
  for (let at = 0; each.length > 0 && at < rest.length; ) {
    const group = new Map<string, string>();
    for (const { name, type } of each) {
      const value = rest[at] as string;
      // A list among them follows its length, by which it is known here.
      at += type === 'values' ? 1 + Number(value) : 1;
      group.set(name, value);
    }
    groups.push(group);
  }
  const of = (wanted: string): string => {
    const value = values[rows.findIndex(({ name }) => name === wanted)];
    if (value === undefined) throw new Error(`a call of ${script} has no ${wanted}`);
    return value;
  };
  return { of, rest, groups };
}

/** What a call of this script names for each of its requests, by the names in its header; none: it is another call. */
export function requestsOf(
  script: ScriptName,
  { name, args }: { readonly name: string; readonly args: readonly unknown[] },
): { readonly key: string; readonly of: (wanted: string) => string }[] {
  if (scriptOf(name, args) !== script) return [];
  const { groups } = argumentsOf(script, args);
  const perRequest = Number(args[1]) / groups.length;
  return groups.map((group, i) => ({
    key: String(args[2 + i * perRequest]),
    of: (wanted) => {
      const value = group.get(wanted);
      if (value === undefined) throw new Error(`a call of ${script} has no ${wanted}`);
      return value;
    },
  }));
}
