import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

export interface CommandResult {
  /** Exited with status 0. */
  ok: boolean;
  stdout: string;
  stderr: string;
}

export interface CommandOptions {
  env: NodeJS.ProcessEnv;
  /** Default: the folder of this process. */
  cwd?: string;
  /** Killed after this long, in milliseconds. Default 5 minutes. */
  timeoutMs?: number;
}

/** Runs a command to its end without a shell. Never rejects: a command that cannot start is not `ok`. */
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
    // A command that asks a question gets no answer instead of hanging.
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
    // An empty part means the current folder: a program found by chance is not what we want.
    if (folder === '') continue;
    const file = join(folder, name);
    try {
      await access(file, constants.X_OK);
      if ((await stat(file)).isFile()) return file;
    } catch {
      // Not there, or not for us: look on.
    }
  }
  return undefined;
}
