import { commandsInLine } from './commands-in-text.js';

/*
 * The replies of a server that lacks a command, or to a user whose ACL rules lack a right. For a plain command every
 * version names the command. For a command in a script Redis 7.0 names only the line, so we read the command there.
 */

/** Some servers quote by backquotes. Without SENTINEL a server is no Sentinel, which redis-error.ts says. */
const UNKNOWN =
  /unknown command [`'](?!sentinel)([^`']+)|unknown subcommand [`']([^`']+)[`'].*\b(\w+) HELP/i;
const UNKNOWN_IN_SCRIPT = /unknown redis command called from/i;
const REFUSAL = /NOPERM|user executing the script can't|ACL failure in script/;

/** What the server refused. */
export interface Sent {
  /** Of the script. */
  readonly text: { readonly lua: string };
  readonly keys: readonly string[];
}

/** How many keys a message names at most. */
const MOST_KEYS = 3;

/** Which command the server lacks, or which right, in words, and what to do; undefined when the error is another one. */
export function missingRight(message: string, sent?: Sent): string | undefined {
  const unknown = unknownIn(message, sent);
  if (unknown)
    return `the server does not have the command ${unknown} (docs/operations.md#commands says what needs it; piecework doctor says what else is missing)`;
  const right = refusedRight(message, sent);
  return (
    right &&
    `${right} (docs/operations.md lists the rights of each role; piecework doctor --users checks them)`
  );
}

/** Which right is missing and which ACL rule grants it. */
function refusedRight(message: string, sent?: Sent): string | undefined {
  if (!REFUSAL.test(message)) return undefined;
  if (message.includes('channel')) {
    const channel = /'([^']+)' channel/.exec(message)?.[1];
    const what = channel ? `the channel ${channel}` : 'one of its channels';
    return `the Redis user may not use ${what}: its ACL needs &CHANNEL`;
  }
  if (/\bkeys?\b/.test(message)) {
    const key = /'([^']+)' key/.exec(message)?.[1];
    return `the Redis user may not use ${keysNamed(key ? [key] : (sent?.keys ?? []))}: its ACL needs ~KEY`;
  }
  const commands = commandsOf(message, sent);
  const rights = commands.map((command) => `+${command}`).join(' ');
  if (rights === '') return `the Redis user lacks a right: ${message}`;
  return `the Redis user may not run ${commands.join(' or ')}: its ACL needs ${rights}`;
}

function keysNamed(keys: readonly string[]): string {
  const [first = ''] = keys;
  if (keys.length <= 1) return first === '' ? 'one of its keys' : `the key ${first}`;
  const more = keys.length > MOST_KEYS ? ', …' : '';
  return `one of the keys ${keys.slice(0, MOST_KEYS).join(', ')}${more}`;
}

function unknownIn(message: string, sent: Sent | undefined): string | undefined {
  if (UNKNOWN_IN_SCRIPT.test(message))
    return commandsOf(message, sent).join(' or ') || 'of a script';
  const [, command, sub, container] = UNKNOWN.exec(message) ?? [];
  const name = sub === undefined ? command : `${container}|${sub}`;
  return name?.toLowerCase();
}

function commandsOf(message: string, sent: Sent | undefined): string[] {
  const command = /permissions to run the '([^']+)'/.exec(message)?.[1];
  if (command) return [command];
  const number = /user_script:(\d+)/.exec(message)?.[1];
  const lua = sent?.text.lua ?? '';
  return commandsInLine(lua, lua.split('\n')[Number(number) - 1] ?? '');
}
