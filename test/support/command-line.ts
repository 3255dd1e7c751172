import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@piecework/protocol';
import { Admin } from 'piecework';
import { afterAll, test as base } from 'vitest';
import { asEverybody, nobodyDenied } from './acl.js';
import { CommandLines, canShare, cli, startCli } from './cli.js';
import { nodesOf } from './flow.js';
import { freshName } from './given.js';
import { keysOf } from './leaks.js';
import type { Finished } from './listen.js';
import { testUrl } from './redis.js';
import { until } from './until.js';

/*
 * A fixture for tests of the command line: a queue and a folder for each test. After the test, the fixture ends the
 * commands, drops the requests, and checks that no key of the queue is left.
 */

export interface CommandLine {
  /** The REDIS_URL of the commands. */
  readonly redis: string;
  readonly queue: string;
  readonly folder: string;
  readonly connection: Connection;
  /** Writes a file into the folder. @returns its path */
  file(name: string, content: string | Uint8Array): Promise<string>;
  /** Runs `piecework …` on the queue to its end, in a process that other commands of the test file may share. */
  run(...args: string[]): Promise<Finished>;
  /** Starts `piecework …` on the queue. */
  start(...args: string[]): Started;
}

export interface Started {
  readonly pid: number;
  readonly finished: Promise<Finished>;
  /** Its standard output and standard error so far. */
  readonly said: { stdout: string; stderr: string };
  kill(signal: NodeJS.Signals): void;
}

/** Of this test file. */
const shared = new CommandLines();
afterAll(() => shared.close());

/** Runs `piecework …` to its end, in a process that other commands of the test file may share. */
export const runCli = (args: readonly string[], { redis }: { redis?: string } = {}) =>
  canShare(args) ? shared.run(args, redis) : cli(args, redis === undefined ? {} : { redis });

export const test = base.extend<{ commandLine: CommandLine }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest wants the pattern
  commandLine: async ({}, use) => {
    const url = await testUrl();
    const connection = Connection.open(url);
    // The check reads the nodes of a cluster.
    await connection.check();
    const redis = await asEverybody(url, nodesOf(connection));
    const folder = await mkdtemp(join(tmpdir(), 'piecework-cli-'));
    const queue = freshName('cli');
    const started: Started[] = [];
    await use({
      redis,
      queue,
      folder,
      connection,
      file: async (name, content) => {
        const path = join(folder, name);
        await writeFile(path, content);
        return path;
      },
      run: (...args) => runCli([...args, '--queue', queue], { redis }),
      start: (...args) => {
        const { child, said, finished } = startCli([...args, '--queue', queue], { redis });
        const kill = (signal: NodeJS.Signals) => void child.kill(signal);
        const one = { pid: child.pid as number, finished, said, kill };
        started.push(one);
        return one;
      },
    });
    for (const { kill } of started) kill('SIGTERM');
    await Promise.all(started.map(({ finished }) => finished));
    await using admin = new Admin({ redis: connection, queue });
    for await (const { id } of admin.list({ state: 'all' })) await admin.drop(id);
    await until(async () => (await keysOf(connection.client, queue)).length === 0, {
      what: 'nothing of the queue is left',
    });
    await nobodyDenied(nodesOf(connection));
    await connection.close();
    await rm(folder, { recursive: true, force: true });
  },
});

/** The lines of an output, each of them JSON. */
export function jsonLines<T = Record<string, unknown>>(text: string): T[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}

/** Waits until the output of a process matches. @returns the match */
export function saysIn(started: Started, where: 'stdout' | 'stderr', what: RegExp) {
  const options = { what: `its output matches ${what}`, timeoutMs: 45_000 };
  return until(() => what.exec(started.said[where]), options);
}
