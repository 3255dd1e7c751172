import { buildScripts, type ScriptName } from '../../scripts/lua-source.mjs';

const names = new Map<string, ScriptName>();
for (const clock of ['server', 'test'] as const) {
  for (const [name, { sha, lua }] of Object.entries(buildScripts({ clock }))) {
    names.set(sha, name as ScriptName).set(lua, name as ScriptName);
  }
}

/** The script that a command runs, by its hash or its text. */
export const scriptOf = (verb: string, [script]: readonly unknown[]): ScriptName | undefined =>
  /^eval(sha)?$/i.test(verb) ? names.get(String(script)) : undefined;
