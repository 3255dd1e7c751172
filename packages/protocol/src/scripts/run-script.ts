import type { Argument, Client } from '../redis/client.js';
import { Command, type Redis } from '../redis/ioredis.js';
import { asFlat } from '../redis/ioredis-internals/flat-arguments.js';
import { sendOnce } from '../redis/ioredis-internals/send-once.js';
import { LONG_TEXT } from '../redis/long-text.js';
import { redisError } from '../redis/redis-error.js';
import { calls } from './calls.generated.js';
import { type ScriptName, scripts } from './scripts.generated.js';

/** Keys, arguments and reply of a script, by the names in its header in lua/. */
export type Keys<Name extends ScriptName> = Parameters<(typeof calls)[Name]['keys']>[0];
export type Arguments<Name extends ScriptName> = Parameters<(typeof calls)[Name]['args']>[0];
export type Reply<Name extends ScriptName> = ReturnType<(typeof calls)[Name]['reply']>;

/** A script with its keys and arguments in the order in which they are sent. */
export interface ScriptCall<Name extends ScriptName = ScriptName> {
  readonly name: Name;
  readonly keys: readonly string[];
  readonly args: readonly Argument[];
}

export function callOf<Name extends ScriptName>(
  name: Name,
  keys: Keys<Name>,
  args: Arguments<Name>,
): ScriptCall<Name> {
  const { keys: inOrder, args: asSent } = calls[name];
  return { name, keys: inOrder(keys as never), args: asSent(args as never) };
}

const read = <Name extends ScriptName>(name: Name, reply: readonly unknown[]): Reply<Name> =>
  calls[name].reply(reply) as Reply<Name>;

/** The text of a script as it is sent to the server, and its SHA-1 digest, by which the server knows it. */
export interface ScriptText {
  readonly sha: string;
  readonly lua: string;
}

interface Build {
  readonly scripts: Readonly<Record<ScriptName, ScriptText>>;
  /** Arguments that the clock of this build removes from the end; the server's clock needs none. */
  readonly clock: () => readonly Argument[];
}

let build: Build = { scripts, clock: () => [] };

/** Only for tests (see testing.ts): makes this process run another build of the scripts from now on. */
export function useBuild(other: Build): void {
  build = other;
}

/** The text of a script as this process runs it. */
export const textOf = (name: ScriptName): ScriptText => build.scripts[name];

const hasNoScript = (error: unknown) => String((error as Error).message).startsWith('NOSCRIPT');

/**
 * Runs a script: EVALSHA; EVAL where the server does not know it (new, restarted, flushed, promoted).
 * @throws ServerError, or another error of the server as errors.md lists them
 */
export const run = <Name extends ScriptName>(
  client: Client,
  name: Name,
  keys: Keys<Name>,
  args: Arguments<Name>,
): Promise<Reply<Name>> => runCall(client, callOf(name, keys, args));

/** The same for a call made by `callOf`. `text`: the text to send, when the script was changed for its caller. */
export async function runCall<Name extends ScriptName>(
  client: Client,
  { name, keys, args }: ScriptCall<Name>,
  text: ScriptText = build.scripts[name],
): Promise<Reply<Name>> {
  try {
    return read(name, (await send(client, 'evalsha', commandArgs(text.sha, keys, args))) as []);
  } catch (error) {
    if (!hasNoScript(error)) throw redisError(error, name, { text, keys });
  }
  try {
    return read(name, (await send(client, 'eval', commandArgs(text.lua, keys, args))) as []);
  } catch (error) {
    throw redisError(error, name, { text, keys });
  }
}

/** `script`: its digest, or its text. */
function commandArgs(
  script: string,
  keys: readonly string[],
  args: readonly Argument[],
): Argument[] {
  const all: Argument[] = [script, keys.length, ...keys, ...args, ...build.clock()];
  // One Buffer among the arguments has ioredis write all of them into a buffer, and not join them to a text.
  if (isLong(args)) all[0] = Buffer.from(script);
  return all;
}

function isLong(args: readonly Argument[]): boolean {
  let length = 0;
  for (const arg of args) if (typeof arg === 'string') length += arg.length;
  return length > LONG_TEXT;
}

/** As the methods of the client do, without their copies of the arguments and their options. */
const send = (client: Client, name: 'evalsha' | 'eval', args: Argument[]) =>
  client.sendCommand(new Command(name, asFlat(args), UTF8)) as Promise<unknown>;
const UTF8 = { replyEncoding: 'utf8' } as const;

/**
 * The same over the current connection, and over no later one.
 * @returns undefined when that connection gave no reply: the script may have been carried out
 */
export async function runCallOnce<Name extends ScriptName>(
  client: Redis,
  { name, keys, args }: ScriptCall<Name>,
): Promise<Reply<Name> | undefined> {
  const text = build.scripts[name];
  const once = async (command: 'evalsha' | 'eval', script: string) => {
    const reply = await sendOnce(client, command, commandArgs(script, keys, args));
    return reply === undefined ? undefined : read(name, reply as unknown[]);
  };
  try {
    return await once('evalsha', text.sha).catch((error: unknown) => {
      if (!hasNoScript(error)) throw error;
      return once('eval', text.lua);
    });
  } catch (error) {
    throw redisError(error, name, { text, keys });
  }
}
