import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

export interface CommandResult {
  /** Whether it exited with code 0. */
  ok: boolean;
  stdout: string;
  stderr: string;
}

export interface CommandOptions {
  env: NodeJS.ProcessEnv;
  /** Default: the folder of this process. */
  cwd?: string;
  /** The command is killed after this time, in ms. Default 5 minutes. */
  timeoutMs?: number;
}

/** Runs a command to its end, without a shell. Never rejects: for a command that cannot start, `ok` is false. */
export function runCommand(
  file: string,
  args: readonly string[],
  { env, cwd, timeoutMs = 300_000 }: CommandOptions,
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const options = {
      env,
      cwd,
      timeout: timeoutMs,
      maxBuffer: 64 << 20,
      encoding: 'utf8',
    } as const;
    const child = execFile(file, args, options, (error, stdout, stderr) => {
      resolve({ ok: error === null, stdout, stderr: stderr || (error?.message ?? '') });
    });
    // A command that asks a question gets the end of its input instead of waiting for ever.
    child.stdin?.on('error', () => {});
    child.stdin?.end();
  });
}

/** Absolute path of an executable file on the PATH of `env`, or undefined. */
export async function findOnPath(
  name: string,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    // An empty part is the current folder, where a program may be by chance.
    if (folder === '') continue;
    const file = join(folder, name);
    try {
      await access(file, constants.X_OK);
      if ((await stat(file)).isFile()) return file;
    } catch {
      // It does not exist, or we may not run it: try the next folder.
    }
  }
  return undefined;
}
