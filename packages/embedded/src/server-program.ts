import { runCommand } from './run-command.js';

/** The origin of a server program: on PATH or named, fetched into the cache folder, or an image. */
export type ServerOrigin = 'path' | 'fetched' | 'docker';

/** A Redis (or Valkey) server that can be run here. */
export interface ServerProgram {
  origin: ServerOrigin;
  /** For people, such as `redis-server 7.0.15 (/usr/bin/redis-server)`. */
  title: string;
  /**
   * The command line that serves 127.0.0.1:`port` with its data in `dir`. It reads further settings, those that are
   * secret, from its standard input.
   */
  command(place: ServerPlace): ServerCommand;
}

export interface ServerPlace {
  /** Absolute path of an existing folder. */
  dir: string;
  port: number;
  /** Further `--name value` pairs of the configuration; the last value of a name counts. */
  settings: readonly string[];
}

export interface ServerCommand {
  file: string;
  args: string[];
  /** Added to the environment of this process. */
  env: Record<string, string>;
  /** Name of the container, when the command is `docker run`; absent when it is the server itself. */
  container?: string;
}

/** The first version with the scripts' `#!lua` line, its flags, and sharded publish. */
export const OLDEST_MAJOR = 7;

/** A server that is an executable file. `env` is added to our environment. */
export function executableServer(
  origin: ServerOrigin,
  file: string,
  version: string,
  env: Record<string, string> = {},
): ServerProgram {
  const name = file.slice(file.lastIndexOf('/') + 1);
  return {
    origin,
    title: `${name} ${version} (${file})`,
    command: ({ dir, port, settings }) => ({
      file,
      args: ['-', '--bind', '127.0.0.1', '--port', String(port), '--dir', dir, ...settings],
      env,
    }),
  };
}

/** The version that a server program prints, such as `7.0.15`; undefined when it does not run. */
export async function versionOf(file: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const { ok, stdout } = await runCommand(file, ['--version'], { env, timeoutMs: 20_000 });
  return ok ? /\bv=(\d+\.\d+[\w.]*)/.exec(stdout)?.[1] : undefined;
}

/** Whether a version such as `7.0.15` is one that Piecework can use. */
export function isRecentEnough(version: string): boolean {
  return Number.parseInt(version, 10) >= OLDEST_MAJOR;
}
