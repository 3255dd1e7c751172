const CALLS = /redis\.p?call\('([A-Z]+)'(?:, '([A-Z]+)')?/g;

/** Commands whose rights are given by subcommand. */
const CONTAINERS = new Set(['XGROUP', 'XINFO']);

/** The Redis commands in a text in Lua, as ACL rules name them: 'hset', 'xinfo|groups'. */
export function commandsInText(lua: string): string[] {
  const found = new Set<string>();
  for (const [, command = '', first = ''] of lua.matchAll(CALLS)) {
    const name = CONTAINERS.has(command) ? `${command}|${first}` : command;
    found.add(name.toLowerCase());
  }
  return [...found].sort();
}
