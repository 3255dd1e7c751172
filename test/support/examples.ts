import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Connection } from '@piecework/protocol';
import { asEverybody } from './acl.js';
import { nodesOf } from './flow.js';
import { type Finished, type Heard, listen } from './listen.js';

/** Starts a program of `examples/`, as a user would, with `redis` as its REDIS_URL. */
export function startExample(
  path: string,
  args: readonly string[],
  redis: string,
  env: Readonly<Record<string, string>> = {},
): Heard {
  const program = fileURLToPath(new URL(`../../examples/${path}`, import.meta.url));
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env, REDIS_URL: redis },
  });
  return listen(child);
}

/** Runs it to its end. */
export const example = (path: string, args: readonly string[], redis: string): Promise<Finished> =>
  startExample(path, args, redis).finished;

/** How programs of `examples/` end that are used wrongly. They share a process, as they end before they begin. */
export async function wrongUsages(
  usages: readonly (readonly [path: string, args: readonly string[]])[],
  redis: string,
): Promise<Finished[]> {
  const host = fileURLToPath(new URL('./programs/wrong-usages.mjs', import.meta.url));
  const programs = usages.map(([path, args]) => [
    fileURLToPath(new URL(`../../examples/${path}`, import.meta.url)),
    args,
  ]);
  const child = spawn(process.execPath, [host, JSON.stringify(programs)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, REDIS_URL: redis },
  });
  const { stdout, stderr } = await listen(child).finished;
  if (stdout === '') throw new Error(`the process of wrong usages has ended: ${stderr}`);
  return JSON.parse(stdout) as Finished[];
}

/** What a program of `examples/` is to have as its REDIS_URL: in a run under ACL as one of its users. */
export async function exampleUrl(url: string): Promise<string> {
  const connection = Connection.open(url);
  await connection.check();
  const guarded = await asEverybody(url, nodesOf(connection));
  await connection.close();
  return guarded;
}
