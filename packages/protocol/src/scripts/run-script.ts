import type { Redis } from 'ioredis';
import type { PieceworkError } from '../contract/errors.js';
import type { Argument, Client } from '../redis/client.js';
import { redisError } from '../redis/redis-error.js';
import { sendOnce } from '../redis/send-once.js';
import { calls } from './calls.generated.js';
import { type ScriptName, scripts } from './scripts.generated.js';

/** What a script is given, and what it answers, by the names of its header in lua/. */
export type Keys<Name extends ScriptName> = Parameters<(typeof calls)[Name]['keys']>[0];
export type Arguments<Name extends ScriptName> = Parameters<(typeof calls)[Name]['args']>[0];
export type Reply<Name extends ScriptName> = ReturnType<(typeof calls)[Name]['reply']>;

/** A script with its keys and arguments in the order in which the server wants them. */
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

/** What the server is sent: the text of a script, and the name by which it knows it. */
export interface ScriptText {
  readonly sha: string;
  readonly lua: string;
}

interface Build {
  readonly scripts: Readonly<Record<ScriptName, ScriptText>>;
  /** Arguments that the build's clock takes off the end; the server's clock takes none. */
  readonly clock: () => readonly Argument[];
}

let build: Build = { scripts, clock: () => [] };

/** Only for tests (see testing.ts): from here on this process runs another build of the scripts. */
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

/** The same for a call that is put together; of a script that was changed for its caller, `text` is what is sent. */
export async function runCall<Name extends ScriptName>(
  client: Client,
  { name, keys, args }: ScriptCall<Name>,
  text: ScriptText = build.scripts[name],
): Promise<Reply<Name>> {
  const rest = [...keys, ...args, ...build.clock()];
  try {
    const reply = await bySha(text, (command, script) =>
      client[command](script, keys.length, ...rest),
    );
    return read(name, reply as unknown[]);
  } catch (error) {
    throw redisError(error, name, { text, keys });
  }
}

/** Sends a script by its name; by its text where the server does not know it. */
async function bySha<Answer>(
  { sha, lua }: ScriptText,
  send: (command: 'evalsha' | 'eval', script: string) => Promise<Answer>,
): Promise<Answer> {
  try {
    return await send('evalsha', sha);
  } catch (error) {
    if (!hasNoScript(error)) throw error;
    return send('eval', lua);
  }
}

/**
 * The same over the connection that stands now, and over no later one.
 * @returns undefined when that connection gave no reply: the script may have been carried out or not
 */
export async function runCallOnce<Name extends ScriptName>(
  client: Redis,
  { name, keys, args }: ScriptCall<Name>,
): Promise<Reply<Name> | undefined> {
  const rest = [keys.length, ...keys, ...args, ...build.clock()];
  try {
    const reply = await bySha(build.scripts[name], (command, script) =>
      sendOnce(client, command, [script, ...rest]),
    );
    return reply === undefined ? undefined : read(name, reply as unknown[]);
  } catch (error) {
    throw redisError(error, name);
  }
}

/** What each of several calls brought; see `runCalls`. */
export type Replies<Calls extends readonly ScriptCall[]> = {
  [I in keyof Calls]: Calls[I] extends ScriptCall<infer Name>
    ? Reply<Name> | PieceworkError | undefined
    : never;
};

/**
 * Several scripts in one round trip, carried out in this order, each whatever became of the ones
 * before it: a script must tell by the state that one of them was refused. Answers the reply of each,
 * its error, or undefined where the server did not know the script: nothing is sent again here.
 */
export async function runCalls<const Calls extends readonly ScriptCall[]>(
  client: Client,
  together: Calls,
): Promise<Replies<Calls>> {
  const commands = together.map(({ name, keys, args }) => {
    const { sha } = build.scripts[name];
    return ['evalsha', sha, keys.length, ...keys, ...args, ...build.clock()];
  });
  const answers = await client
    .pipeline(commands)
    .exec()
    .catch((error: unknown) => {
      throw redisError(error, together.map(({ name }) => name).join(', '));
    });
  return together.map(({ name, keys }, i) => {
    const [error, reply] = answers?.[i] ?? [];
    if (!error) return read(name, reply as unknown[]);
    return hasNoScript(error)
      ? undefined
      : redisError(error, name, { text: build.scripts[name], keys });
  }) as Replies<Calls>;
}
