import type { Cluster, Redis } from 'ioredis';
import type { PieceworkError } from './errors.js';
import { redisError } from './redis-error.js';
import { type ScriptName, scripts } from './scripts.generated.js';

export type Client = Redis | Cluster;
export type Argument = string | number;

interface Build {
  readonly scripts: Readonly<Record<ScriptName, { readonly sha: string; readonly lua: string }>>;
  /** Arguments that the build's clock takes off the end; the server's clock takes none. */
  readonly clock: () => readonly Argument[];
}

let build: Build = { scripts, clock: () => [] };

/** Only for tests (see testing.ts): from here on this process runs another build of the scripts. */
export function useBuild(other: Build): void {
  build = other;
}

const hasNoScript = (error: unknown) => String((error as Error).message).startsWith('NOSCRIPT');

/** EVALSHA; EVAL where the server does not know the script (new, restarted, flushed, promoted). */
export async function runScript(
  client: Client,
  name: ScriptName,
  keys: readonly string[],
  args: readonly Argument[],
): Promise<unknown[]> {
  const { sha, lua } = build.scripts[name];
  const rest = [...keys, ...args, ...build.clock()];
  try {
    try {
      return (await client.evalsha(sha, keys.length, ...rest)) as unknown[];
    } catch (error) {
      if (!hasNoScript(error)) throw error;
      return (await client.eval(lua, keys.length, ...rest)) as unknown[];
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
  return calls.map(({ name }, i) => {
    const [error, reply] = answers?.[i] ?? [];
    if (!error) return reply as unknown[];
    return hasNoScript(error) ? undefined : redisError(error, name);
  });
}

/**
 * A script and one plain command behind it in one round trip. The command's error, if any, is
 * returned beside its reply; a script that the server did not know is run after it, which every
 * caller has to bear (and can: scripts decide by state, not by order).
 */
export async function runScriptThen(
  client: Client,
  name: ScriptName,
  keys: readonly string[],
  args: readonly Argument[],
  command: readonly Argument[],
): Promise<{ reply: unknown[]; after: unknown; afterError: Error | null }> {
  const { sha } = build.scripts[name];
  const [verb, ...operands] = command;
  const both = await client
    .pipeline([
      ['evalsha', sha, keys.length, ...keys, ...args, ...build.clock()],
      [String(verb), ...operands],
    ])
    .exec()
    .catch((error: unknown) => {
      throw redisError(error, name);
    });
  const [script, after] = both ?? [];
  // Sent again on its own, because a script that ran and one that did not end in the same state.
  const reply = script?.[0]
    ? await runScript(client, name, keys, args)
    : (script?.[1] as unknown[]);
  return { reply, after: after?.[1], afterError: after?.[0] ?? null };
}
