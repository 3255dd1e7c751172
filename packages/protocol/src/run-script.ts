import type { Cluster, Redis } from 'ioredis';
import type { PieceworkError } from './errors.js';
import { redisError } from './redis-error.js';
import { type ScriptName, scripts } from './scripts.generated.js';
import { sendOnce } from './send-once.js';

export type Client = Redis | Cluster;
export type Argument = string | number;

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
 * EVALSHA; EVAL where the server does not know the script (new, restarted, flushed, promoted). Of a script
 * that was changed for its caller, `text` is what is sent.
 */
export async function runScript(
  client: Client,
  name: ScriptName,
  keys: readonly string[],
  args: readonly Argument[],
  text: ScriptText = build.scripts[name],
): Promise<unknown[]> {
  const { sha, lua } = text;
  const rest = [...keys, ...args, ...build.clock()];
  try {
    try {
      return (await client.evalsha(sha, keys.length, ...rest)) as unknown[];
    } catch (error) {
      if (!hasNoScript(error)) throw error;
      return (await client.eval(lua, keys.length, ...rest)) as unknown[];
    }
  } catch (error) {
    throw redisError(error, name, { text, keys });
  }
}

/**
 * The same over the connection that stands now, and over no later one.
 * @returns undefined when that connection gave no reply: the script may have been carried out or not
 */
export async function runScriptOnce(
  client: Redis,
  { name, keys, args }: ScriptCall,
): Promise<unknown[] | undefined> {
  const { sha, lua } = build.scripts[name];
  const rest = [keys.length, ...keys, ...args, ...build.clock()];
  try {
    try {
      return (await sendOnce(client, 'evalsha', [sha, ...rest])) as unknown[] | undefined;
    } catch (error) {
      if (!hasNoScript(error)) throw error;
      return (await sendOnce(client, 'eval', [lua, ...rest])) as unknown[] | undefined;
    }
  } catch (error) {
    throw redisError(error, name);
  }
}

/** A script with its keys and arguments. */
export interface ScriptCall {
  readonly name: ScriptName;
  readonly keys: readonly string[];
  readonly args: readonly Argument[];
}

/**
 * Several scripts in one round trip, carried out in this order, each whatever became of the ones
 * before it: a script must tell by the state that one of them was refused. Answers the reply of each,
 * its error, or undefined where the server did not know the script: nothing is sent again here.
 */
export async function runScripts(
  client: Client,
  calls: readonly ScriptCall[],
): Promise<(unknown[] | PieceworkError | undefined)[]> {
  const commands = calls.map(({ name, keys, args }) => {
    const { sha } = build.scripts[name];
    return ['evalsha', sha, keys.length, ...keys, ...args, ...build.clock()];
  });
  const answers = await client
    .pipeline(commands)
    .exec()
    .catch((error: unknown) => {
      throw redisError(error, calls.map(({ name }) => name).join(', '));
    });
  return calls.map(({ name, keys }, i) => {
    const [error, reply] = answers?.[i] ?? [];
    if (!error) return reply as unknown[];
    return hasNoScript(error)
      ? undefined
      : redisError(error, name, { text: build.scripts[name], keys });
  });
}
