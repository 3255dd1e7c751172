/**
 * The embedded server where nothing but Docker has one.
 * @module-tag own-server
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { findServer, startRedis } from '@piecework/embedded';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { askDocker, needsDocker } from '../support/docker.js';
import { testImage } from '../support/mode.js';
import { until } from '../support/until.js';

needsDocker();

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'piecework-docker-'));
  await mkdir(join(folder, 'path'));
  for (const directory of (process.env['PATH'] ?? '').split(':')) {
    const docker = join(directory, 'docker');
    if (existsSync(docker)) await symlink(docker, join(folder, 'path', 'docker')).catch(() => {});
  }
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** The environment of a machine that has Docker and no server. */
const environment = () => ({
  ...process.env,
  PATH: join(folder, 'path'),
  PIECEWORK_CACHE_DIR: join(folder, 'cache'),
  PIECEWORK_REDIS_IMAGE: testImage,
});

const find = () => findServer({ machine: { env: environment(), osRelease: 'ID=alpine\n' } });

/** The containers that process `pid` has started and that are still there. */
const containersOf = (pid: number | undefined, format = '{{.ID}}') =>
  askDocker('ps', '--all', '--filter', `name=piecework-redis-${pid}-`, '--format', format);

async function ask<T>(url: string, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url);
  try {
    return await question(client);
  } finally {
    client.disconnect();
  }
}

test('serves on loopback only, and after stop container and folder are gone', async () => {
  const redis = await startRedis({ server: await find() });
  expect(redis.origin).toBe('docker');
  expect(await containersOf(process.pid, '{{.Ports}}')).toBe(`127.0.0.1:${redis.port}->6379/tcp`);
  expect(await ask(redis.url, (client) => client.config('GET', 'maxmemory-policy'))).toEqual([
    'maxmemory-policy',
    'noeviction',
  ]);
  await redis.close();
  expect(await containersOf(process.pid)).toBe('');
  expect(existsSync(redis.dir)).toBe(false);
});

test('needs its password, which docker does not show, and keeps its files from other users', async () => {
  const dir = join(folder, 'data');
  await using redis = await startRedis({ server: await find(), dir, persistence: 'aof' });
  const open = new Redis(redis.port, '127.0.0.1');
  open.on('error', () => {});
  await expect(open.ping()).rejects.toThrow('NOAUTH');
  open.disconnect();
  const shown = await askDocker('inspect', await containersOf(process.pid));
  expect(shown).not.toContain(new URL(redis.url).password);
  const { mode } = await stat(join(dir, 'appendonlydir', 'appendonly.aof.1.incr.aof'));
  expect(mode & 0o077).toBe(0);
});

test('is removed when it is killed, and stops though it is frozen', async () => {
  const server = await find();
  const killed = await startRedis({ server });
  await killed.kill('SIGKILL');
  await until(() => !existsSync(killed.dir), { what: 'the folder is removed' });
  await killed.close();
  const frozen = await startRedis({ server });
  await frozen.kill('SIGSTOP');
  await frozen.close();
  expect(await containersOf(process.pid)).toBe('');
});

test('finds its data again on the same folder and port', async () => {
  const dir = join(folder, 'data');
  const server = await find();
  const first = await startRedis({ server, dir, persistence: 'aof' });
  await ask(first.url, (client) => client.set('kept', 'yes'));
  await first.close();
  await using second = await startRedis({ server, dir, port: first.port, persistence: 'aof' });
  expect(await ask(second.url, (client) => client.get('kept'))).toBe('yes');
});

test('says why when it does not start', async () => {
  const server = await find();
  await using holder = await startRedis({ server });
  const taken = await startRedis({ server, port: holder.port }).catch((error) => error);
  expect(taken).toMatchObject({ code: 'REDIS_NOT_STARTED' });
  expect(taken.message).toMatch(/port is already allocated|address already in use/i);
  const wrong = await startRedis({ server, args: ['--no-such-setting', '1'] }).catch((e) => e);
  expect(wrong.message).toContain('no-such-setting');
});

test('ends with its parent, also when that is killed', async () => {
  const program = fileURLToPath(new URL('../support/programs/redis-parent.mjs', import.meta.url));
  const parent = spawn(process.execPath, [program], {
    env: environment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [line] = await once(createInterface(parent.stdout), 'line');
    const { url, dir } = JSON.parse(line);
    expect(await ask(url, (client) => client.ping())).toBe('PONG');
    expect(await containersOf(parent.pid)).not.toBe('');
    parent.kill('SIGKILL');
    await until(async () => (await containersOf(parent.pid)) === '', { what: 'it is removed' });
    await until(() => !existsSync(dir), { what: 'its folder is removed' });
  } finally {
    parent.kill('SIGKILL');
  }
});
