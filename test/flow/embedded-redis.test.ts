/**
 * What is tested are the servers themselves.
 * @module-tag processes
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import {
  type EmbeddedRedis,
  EmbeddedRedisError,
  findServer,
  resolveRedisUrl,
  startRedis,
  thisMachine,
} from '@piecework/embedded';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { freePort, releasePort } from '../../packages/embedded/dist/free-port.js';
import { playsAll } from '../support/mode.js';
import { runs } from '../support/processes.js';
import { testCluster } from '../support/redis.js';
import { until } from '../support/until.js';

let folder: string;
const children: ChildProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'piecework-test-'));
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

describe('an embedded Redis', () => {
  it('answers, keeps nothing on disk by default, and refuses to evict', async () => {
    await using redis = await startRedis();
    const answers = await withClient(redis.url, async (client) => ({
      ping: await client.ping(),
      save: await client.config('GET', 'save'),
      eviction: await client.config('GET', 'maxmemory-policy'),
      bind: await client.config('GET', 'bind'),
    }));
    expect(answers).toEqual({
      ping: 'PONG',
      save: ['save', ''],
      eviction: ['maxmemory-policy', 'noeviction'],
      bind: ['bind', '127.0.0.1'],
    });
  });

  it('says what to do when no port is free', async () => {
    const refuse = vi.spyOn(Server.prototype, 'listen').mockImplementation(function (this: Server) {
      process.nextTick(() =>
        this.emit('error', Object.assign(new Error(), { code: 'EADDRINUSE' })),
      );
      return this;
    });
    await expect(startRedis().finally(() => refuse.mockRestore())).rejects.toMatchObject({
      code: 'REDIS_NOT_STARTED',
      message: expect.stringMatching(/^no free port found .* choose a port, or end servers/),
    });
  });

  it('has ended after close, without its folder, and may be closed again', async () => {
    const redis = await startRedis();
    expect(existsSync(redis.dir)).toBe(true);
    await redis.close();
    await redis.close();
    expect(runs(redis.pid)).toBe(false);
    expect(existsSync(redis.dir)).toBe(false);
  });

  it('cleans up when it is killed itself', async () => {
    const redis = await startRedis();
    await redis.kill('SIGKILL');
    await until(() => !existsSync(redis.dir), { what: 'the folder is removed' });
    await redis.kill('SIGKILL');
    await redis.close();
  });

  it('can be closed even when it is frozen', async () => {
    const redis = await startRedis();
    await redis.kill('SIGSTOP');
    await redis.close();
    expect(runs(redis.pid)).toBe(false);
  });

  it('has its data again in the same folder with an append-only file', async () => {
    const dir = join(folder, 'data');
    const first = await startRedis({ dir, persistence: 'aof', args: ['--appendfsync', 'always'] });
    await withClient(first.url, (client) => client.set('kept', 'yes'));
    await first.kill('SIGKILL');
    await first.ended;
    await using second = await startRedis({ dir, port: first.port, persistence: 'aof' });
    expect(second.port).toBe(first.port);
    expect(await withClient(second.url, (client) => client.get('kept'))).toBe('yes');
  });

  it.runIf(process.platform === 'linux')(
    'keeps its port from others until it is closed, also while it is down',
    async () => {
      const redis = await startRedis();
      expect(await isClaimed(redis.port)).toBe(true);
      await redis.kill('SIGKILL');
      await redis.ended;
      expect(await isClaimed(redis.port)).toBe(true);
      await redis.close();
      expect(await isClaimed(redis.port)).toBe(false);
    },
  );

  it('gets a port that no other server got', async () => {
    // So many that without it some would be the same.
    const ports: number[] = [];
    for (let i = 0; i < 300; i += 1) ports.push(await freePort());
    for (const port of ports) releasePort(port);
    expect(new Set(ports).size).toBe(300);
  });

  it('says why when it does not start', async () => {
    await using holder = await startRedis();
    const taken = await startRedis({ port: holder.port }).catch((error) => error);
    expect(taken).toBeInstanceOf(EmbeddedRedisError);
    expect(taken).toMatchObject({ code: 'REDIS_NOT_STARTED', retryable: false });
    expect(taken.message).toBe(
      `port ${holder.port}: address already in use; choose another port, or none for a free one`,
    );
    const wrong = await startRedis({ args: ['--no-such-setting', '1'] }).catch((error) => error);
    expect(wrong.message).toContain('no-such-setting');
  });

  it('sends nothing to a program that took its port', async () => {
    const received: Buffer[] = [];
    const other = createServer((socket) => socket.on('data', (data) => received.push(data)));
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    await expect(startRedis({ port })).rejects.toMatchObject({ code: 'REDIS_NOT_STARTED' });
    other.close();
    expect(Buffer.concat(received).toString()).toBe('');
  });
});

describe('the end of the parent', () => {
  it('ends the server when the parent is killed with SIGKILL', async () => {
    const { child, server } = await startProgram('redis-parent.mjs');
    child.kill('SIGKILL');
    await untilGone(server);
  });

  it('ends the server when the parent forgets to, and does not keep the parent alive', async () => {
    const { child, server } = await startProgram('redis-forgetful.mjs');
    if (child.exitCode === null) await once(child, 'exit');
    expect(child.exitCode).toBe(0);
    await untilGone(server);
  });

  it('comes before that of the server: Ctrl-C in the terminal does not reach the server', async () => {
    const { child, server } = await startProgram('redis-parent.mjs', { detached: true });
    process.kill(-child.pid!, 'SIGSTOP');
    // To the whole process group, as a terminal does it. The frozen parent cannot stop anything.
    process.kill(-child.pid!, 'SIGINT');
    await withClient(server.url, async (client) => {
      expect(await client.ping()).toBe('PONG');
    });
    process.kill(-child.pid!, 'SIGCONT');
    await untilGone(server);
  });
});

describe('an embedded cluster', () => {
  it('is complete and has a replica for every master', async () => {
    const { nodes } = await testCluster();
    expect(nodes).toHaveLength(6);
    for (const { host, port } of nodes) {
      const info = await withClient(`redis://${host}:${port}`, async (client) =>
        String(await client.call('CLUSTER', 'INFO')),
      );
      expect(info).toContain('cluster_state:ok');
      expect(info).toContain('cluster_slots_ok:16384');
    }
  });
});

describe('the choice of a server', () => {
  it('is REDIS_URL when that is set, and then nothing is started', async () => {
    vi.stubEnv('REDIS_URL', 'redis://redis.example:7000/3');
    const resolved = await resolveRedisUrl();
    expect(resolved).toMatchObject({ url: 'redis://redis.example:7000/3', origin: 'environment' });
    await resolved.close();
  });

  it('is an embedded server when REDIS_URL is not set', async () => {
    vi.stubEnv('REDIS_URL', undefined);
    await using resolved = await resolveRedisUrl();
    expect(resolved.origin).not.toBe('environment');
    expect(await withClient(resolved.url, (client) => client.ping())).toBe('PONG');
  });

  it('prefers redis-server on PATH, then valkey-server', async () => {
    await program('valkey-server', 'echo "Valkey server v=8.1.1 sha=0"');
    expect(await findHere()).toMatchObject({ origin: 'path', title: /valkey-server 8\.1\.1/ });
    await program('redis-server', 'echo "Redis server v=7.2.4 sha=0"');
    expect(await findHere()).toMatchObject({ origin: 'path', title: /redis-server 7\.2\.4/ });
  });

  it('is the program that PIECEWORK_REDIS_SERVER names, and no other', async () => {
    await program('redis-server', 'echo "Redis server v=7.2.4 sha=0"');
    await program('valkey-9', 'echo "Valkey server v=9.1.2 sha=0"');
    const named = (name: string) => findHere({ PIECEWORK_REDIS_SERVER: name });
    for (const name of ['valkey-9', join(folder, 'valkey-9')]) {
      const title = `valkey-9 9.1.2 (${join(folder, 'valkey-9')})`;
      expect(await named(name)).toMatchObject({ origin: 'path', title });
    }
    await program('old', 'echo "Redis server v=6.2.14 sha=0"');
    const refused = (name: string) => named(name).catch((thrown: Error) => thrown.message);
    expect(await refused('absent')).toBe('PIECEWORK_REDIS_SERVER: absent is not on PATH');
    expect(await refused('old')).toMatch(/old is version 6\.2\.14, older than 7\.0$/);
    expect(await refused(join(folder, 'absent'))).toMatch(/absent does not run$/);
  });

  it('skips a server that is too old or does not run, and says so', async () => {
    await program('redis-server', 'echo "Redis server v=6.2.14 sha=0"');
    await program('valkey-server', 'exit 127');
    const error = await findHere().catch((reason) => reason);
    expect(error).toMatchObject({ code: 'NO_REDIS' });
    expect(error.message).toMatch(/redis-server is version 6\.2\.14, older than 7\.0/);
    expect(error.message).toMatch(/valkey-server does not run/);
  });

  it('is Docker when nothing else is there, with a port on loopback only', async () => {
    await program('docker', 'exit 0');
    const server = await findHere({ PIECEWORK_REDIS_IMAGE: 'valkey/valkey:8' });
    expect(server).toMatchObject({ origin: 'docker', title: 'docker image valkey/valkey:8' });
    const { args, container } = server.command({ dir: '/data', port: 21_000, settings: [] });
    expect(args).toContain('127.0.0.1:21000:6379');
    // Its secret settings come by standard input.
    expect(args).toContain('--interactive');
    expect(args.at(-1)).toBe('-');
    expect(args).toContain('--rm');
    expect(args).toContain(container);
  });

  it('fails with advice when there is nothing at all', async () => {
    const error = await findHere().catch((reason) => reason);
    expect(error).toBeInstanceOf(EmbeddedRedisError);
    expect(error.code).toBe('NO_REDIS');
    expect(error.message).toMatch(/install redis-server or valkey-server, version 7\.0/);
    expect(error.message).toContain('REDIS_URL');
    expect(error.message).toContain('Docker');
  });
});

const canFetch = /^ID(_LIKE)?=.*(debian|ubuntu)/m.test(thisMachine().osRelease) && hasApt();

const whyNot = canFetch ? {} : { skipped: 'fetching a server needs Debian or Ubuntu with apt-get' };

describe.skipIf(!canFetch)('a fetched server', { meta: whyNot }, () => {
  // Shared by repeated runs, so that only the first one downloads.
  const shared = join(tmpdir(), `piecework-test-cache-${process.getuid?.()}`);

  it('serves where none is installed', async () => {
    const server = await findWithoutServers(shared);
    expect(server.origin).toBe('fetched');
    await using redis = await startRedis({ server });
    expect(redis.origin).toBe('fetched');
    expect(await withClient(redis.url, (client) => client.ping())).toBe('PONG');
  });

  it.runIf(playsAll)('is fetched again when its folder is incomplete', async () => {
    await findWithoutServers(shared);
    const name = (await readdir(shared)).find((each) => /^redis-[^.]*$/.test(each))!;
    const cache = join(folder, 'cache');
    // What a killed process leaves: a working folder, and at worst a tree without a server.
    await mkdir(join(cache, `${name}.fetching-abcdef`, 'root', 'usr', 'bin'), { recursive: true });
    await mkdir(join(cache, name, 'usr', 'bin'), { recursive: true });
    await writeFile(join(cache, name, 'usr', 'bin', 'redis-server'), 'half of', { mode: 0o755 });
    await using redis = await startRedis({ server: await findWithoutServers(cache) });
    expect(redis.origin).toBe('fetched');
  });

  it.runIf(playsAll)('can be fetched by two processes at the same time', async () => {
    const cache = join(folder, 'cache');
    const servers = await Promise.all([findWithoutServers(cache), findWithoutServers(cache)]);
    expect(servers.map(({ origin }) => origin)).toEqual(['fetched', 'fetched']);
    const left = await readdir(cache);
    expect(left.filter((name) => name.includes('fetching'))).toEqual([]);
    await using redis: EmbeddedRedis = await startRedis({ server: servers[1]! });
    expect(redis.origin).toBe('fetched');
  });
});

/** Looks for a server on a machine whose PATH is the test's folder and that is no Debian. */
function findHere(env: NodeJS.ProcessEnv = {}) {
  return findServer({ machine: { env: { ...env, PATH: folder }, osRelease: 'ID=alpine\n' } });
}

/** Looks for a server on this machine, as if none were installed. */
async function findWithoutServers(cache: string) {
  const path = await mkdtemp(join(folder, 'path-'));
  for (const directory of (process.env['PATH'] ?? '').split(':')) {
    for (const name of await readdir(directory).catch(() => [])) {
      if (/^(redis|valkey)-|^docker$/.test(name)) continue;
      await symlink(join(directory, name), join(path, name)).catch(() => {});
    }
  }
  const { env, osRelease } = thisMachine();
  return findServer({
    machine: {
      env: { ...env, PATH: path, PIECEWORK_CACHE_DIR: cache, PIECEWORK_REDIS_SERVER: '' },
      osRelease,
    },
  });
}

async function program(name: string, body: string): Promise<void> {
  await writeFile(join(folder, name), `#!/bin/sh\n${body}\n`);
  await chmod(join(folder, name), 0o755);
}

interface ServerOfProgram {
  url: string;
  pid: number;
  dir: string;
}

/** Starts a program of test/support/programs that says which server it has started. */
async function startProgram(name: string, options: { detached?: boolean } = {}) {
  const file = fileURLToPath(new URL(`../support/programs/${name}`, import.meta.url));
  const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit'];
  const child = spawn(process.execPath, [file], { ...options, stdio });
  children.push(child);
  const [line] = await once(createInterface(child.stdout), 'line');
  return { child, server: JSON.parse(line) as ServerOfProgram };
}

async function untilGone({ pid, dir }: ServerOfProgram): Promise<void> {
  await until(() => !runs(pid), { what: 'the server has ended' });
  await until(() => !existsSync(dir), { what: 'its folder is removed' });
}

async function withClient<T>(url: string, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url);
  try {
    return await use(client);
  } finally {
    client.disconnect();
  }
}

/** Whether a process keeps others from this port. */
function isClaimed(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(`\0piecework-port-${port}`);
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

function hasApt(): boolean {
  return ['/usr/bin/apt-get', '/bin/apt-get'].some((file) => existsSync(file));
}
