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
  const groups = rest
    .filter((_, i) => each.length > 0 && i % each.length === 0)
    .map((_, n) => new Map(each.map(({ name }, i) => [name, rest[n * each.length + i]])));
  const of = (wanted: string): string => {
    const value = values[rows.findIndex(({ name }) => name === wanted)];
    if (value === undefined) throw new Error(`a call of ${script} has no ${wanted}`);
    return value;
  };
  return { of, rest, groups };
}
