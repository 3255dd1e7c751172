const CALLS = /(?:redis\.p?call|someAtATime)\('([A-Z]+)'(?:, '([A-Z]+)')?/g;

/** The call in lua/lib/some-at-a-time.lua, whose command its callers name. */
const NAMED_ELSEWHERE = /redis\.call\(command,/;
const OF_CALLERS = /someAtATime\('[A-Z]+'/g;

/** Commands whose rights are given by subcommand. */
const CONTAINERS = new Set(['XGROUP', 'XINFO']);

/** The commands that a line of a script may call. */
export const commandsInLine = (lua: string, line: string): string[] =>
  commandsInText(NAMED_ELSEWHERE.test(line) ? (lua.match(OF_CALLERS) ?? []).join('\n') : line);

/** The Redis commands in a text in Lua, as ACL rules name them: 'hset', 'xinfo|groups'. */
export function commandsInText(lua: string): string[] {
  const found = new Set<string>();
  for (const [, command = '', first = ''] of lua.matchAll(CALLS)) {
    const name = CONTAINERS.has(command) ? `${command}|${first}` : command;
    found.add(name.toLowerCase());
  }
  return [...found].sort();
}
