/**
 * What the doctor says of servers, each brought about on one of the test's own.
 * @module-tag own-server
 * @module-tag one-server
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { queueKeys, requestKeys } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { Admin, type Check, type Finding } from 'piecework';
import { describe, expect } from 'vitest';
import {
  isOlder,
  securityState,
} from '../../packages/piecework/dist/operate/doctor/servers/releases.js';
import { AheadProxy } from '../support/ahead-proxy.js';
import { cli } from '../support/cli.js';
import { jsonLines } from '../support/command-line.js';
import { type Flow, test } from '../support/flow.js';
import { startOwnRedis } from '../support/redis.js';
import { until } from '../support/until.js';

async function server(flow: Flow, settings: readonly string[] = []) {
  const started = await startOwnRedis(settings);
  flow.after(() => started.close());
  const client = new Redis(started.url);
  flow.after(() => client.disconnect());
  return { ...started, client, port: Number(new URL(started.url).port) };
}

async function examine(flow: Flow, url: string): Promise<Finding[]> {
  await using admin = new Admin({ redis: url, queue: flow.queue });
  return await admin.doctor();
}

const of = (findings: readonly Finding[], check: Check) =>
  findings.filter((one) => one.check === check).map(({ level, what }) => `${level} ${what}`);

const HEALTHY = ['--appendonly', 'yes', '--maxmemory', '200mb', '--maxmemory-policy', 'noeviction'];

test('a healthy server has no findings but, perhaps, its version', {
  tags: 'plain',
}, async ({ flow }) => {
  const master = await server(flow, HEALTHY);
  await server(flow, ['--replicaof', '127.0.0.1', String(master.port)]);
  await until(async () => /state=online/.test(await master.client.info('replication')), {
    timeoutMs: 30_000,
  });
  const worker = flow.worker({ redis: master.url, handler: (n: number) => n });
  await worker.start();
  const producer = flow.producer({ redis: master.url });
  await producer.submit([1, 2, 3], { id: flow.id('done') });
  await using admin = new Admin({ redis: master.url, queue: flow.queue });
  await until(async () => (await admin.counts()).open === 0);
  const findings = await admin.doctor({ deep: true });
  expect(findings.filter(({ level, check }) => level !== 'ok' && check !== 'version')).toEqual([]);
  expect(new Set(findings.map(({ check }) => check)).size).toBe(15);
  // The command line says the same, and that it is well by its exit code.
  const ended = await cli(['doctor', '--deep', '--json', '--queue', flow.queue], {
    redis: master.url,
  });
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  const said = jsonLines<Finding>(ended.stdout);
  expect(said.map(({ check, level }) => [check, level])).toEqual(
    findings.map(({ check, level }) => [check, level]),
  );
});

test('an error sets the exit code of the command line, which prints what to do', async ({
  flow,
}) => {
  const { client, url } = await server(flow);
  await client.config('SET', 'maxmemory', '100mb');
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  const ended = await cli(['doctor', '--queue', flow.queue], { redis: url });
  expect(ended.code).toBe(1);
  expect(ended.stdout).toMatch(/^error\s+memory\s+.*allkeys-lru/m);
  expect(ended.stdout).toMatch(/→ CONFIG SET maxmemory-policy noeviction/);
});

test('a user with few rights gets a finding for each check that could not be made, and no guess instead', async ({
  flow,
}) => {
  const { client, url } = await server(flow);
  await client.call('ACL', 'SETUSER', 'few', 'on', '>p', '+info', '+ping', '+client|setname', '~*');
  const asFew = url.replace('//', '//few:p@');
  const said = async () => {
    const ended = await cli(['doctor', '--json', '--queue', flow.queue], { redis: asFew });
    expect(ended.code).toBe(1);
    return jsonLines<Finding>(ended.stdout);
  };
  const found = await said();
  for (const check of ['persistence', 'clocks', 'acl', 'queue', 'books'] as const)
    expect(of(found, check).join()).toMatch(/^(warning|error) .*could not be checked/);
  expect(of(found, 'persistence').join()).toMatch(
    /no append-only file; .*the server does not show/,
  );
  for (const check of ['queue', 'books'] as const)
    expect(of(found, check).join()).toMatch(/^error .*may not run /);
  await client.config('SET', 'appendonly', 'yes');
  expect(of(await said(), 'persistence').join()).toMatch(
    /^warning .*append-only file; .*could not be checked/,
  );
});

test('no Redis is an error of its own', async ({ flow }) => {
  const killed = await server(flow);
  killed.client.on('error', () => {});
  await killed.kill('SIGKILL');
  await until(() => killed.client.status !== 'ready');
  const ended = await cli(['doctor', '--json'], { redis: killed.url });
  expect(ended.code).toBe(1);
  expect(JSON.parse(ended.stderr)).toMatchObject({ error: { code: 'CONNECTION' } });
});

describe('memory', () => {
  test('that would evict, is not bounded, or is nearly used up', async ({ flow }) => {
    const { client, url } = await server(flow);
    expect(of(await examine(flow, url), 'memory').join()).toContain('no maxmemory');
    await client.config('SET', 'maxmemory-policy', 'volatile-lru');
    const [policy, unbounded] = of(await examine(flow, url), 'memory');
    expect(policy).toMatch(/^warning .*volatile-lru/);
    expect(unbounded).toMatch(/^warning .*no maxmemory/);
    await client.config('SET', 'maxmemory', '100mb');
    expect(of(await examine(flow, url), 'memory').join()).toMatch(
      /^warning .*volatile-lru.*results and errors of ended requests.*Unfinished work stays/,
    );
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    expect(of(await examine(flow, url), 'memory').join()).toMatch(/^error .*work at random/);
    await client.config('SET', 'maxmemory-policy', 'noeviction');
    expect(of(await examine(flow, url), 'memory').join()).toMatch(/^ok /);
    // Beside it what connections take, and give back, is little. As a short command: a long one would stand in the
    // buffers of its connection and of the append-only file too, until the server frees them.
    await client.setrange('ballast', 20_000_000, 'x');
    const used = async () => Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
    await client.config('SET', 'maxmemory', Math.round((await used()) / 0.82));
    expect(of(await examine(flow, url), 'memory').join()).toMatch(/^warning .* are used/);
    await client.config('SET', 'maxmemory', Math.round((await used()) / 0.96));
    expect(of(await examine(flow, url), 'memory').join()).toMatch(
      /^error .* are used: workers read/,
    );
    await client.config('SET', 'maxmemory', '0');
  });
});

describe('expiry', () => {
  test('of a full memory comes first, and no other check fails because of it', async ({ flow }) => {
    const { url, client } = await server(flow, HEALTHY);
    const { id } = await flow.producer({ redis: url }).submit([1, 2, 3], { id: flow.id('waits') });
    await client.config('SET', 'maxmemory', 1_000_000);
    await expect(client.set('any', 'thing')).rejects.toThrow(/^OOM/);
    const findings = await examine(flow, url);
    expect(findings[0]).toMatchObject({ check: 'memory', level: 'error' });
    expect(findings[0]?.what).toContain('it is full and takes no new work');
    expect(findings.filter(({ what }) => /could not be checked/.test(what))).toEqual([]);
    expect(of(findings, 'books')).toEqual([expect.stringMatching(/^ok /)]);
    await client.config('SET', 'maxmemory', 200_000_000);
    await using admin = new Admin({ redis: url, queue: flow.queue });
    await admin.drop(id);
  });

  test('of ended requests that keep much, if Redis frees what expires at once', async ({
    flow,
  }) => {
    const { client, url } = await server(flow);
    const { id } = await flow.producer({ redis: url }).submit(['x'], { retentionMs: 3_600_000 });
    const large = 'x'.repeat(17_000_000);
    const maxResultBytes = 20_000_000;
    const worker = flow.worker({ redis: url, handler: () => large, maxResultBytes });
    await worker.start();
    await using admin = new Admin({ redis: url, queue: flow.queue });
    await until(async () => (await admin.counts()).open === 0);
    await until(async () => (await client.exists(queueKeys(flow.queue).spent)) === 1);
    const told = async () => of(await examine(flow, url), 'memory').join();
    expect(await told()).toContain('1 ended request of the queue may keep much');
    await client.config('SET', 'lazyfree-lazy-expire', 'yes');
    expect(await told()).not.toContain('keep much');
    await client.config('SET', 'lazyfree-lazy-expire', 'no');
    expect(await client.pttl(requestKeys(id).results)).toBeGreaterThan(3_600_000);
  });
});

describe('persistence', () => {
  test('none, snapshots, an append-only file and its modes', async ({ flow }) => {
    const { client, url } = await server(flow);
    const said = async () => of(await examine(flow, url), 'persistence').join();
    expect(await said()).toMatch(/^warning .*loses everything/);
    await client.config('SET', 'save', '3600 1');
    expect(await said()).toMatch(/^warning .*snapshots only/);
    await client.config('SET', 'appendonly', 'yes');
    await until(async () => /aof_rewrite_in_progress:0/.test(await client.info('persistence')));
    expect(await said()).toMatch(/^ok .*about a second/);
    await client.config('SET', 'appendfsync', 'no');
    expect(await said()).toMatch(/^warning .*30 s/);
    await client.config('SET', 'appendfsync', 'always');
    expect(await said()).toMatch(/^ok .*loses nothing/);
  });

  test('that fails', { tags: 'processes' }, async ({ flow }) => {
    const { client, url } = await server(flow, ['--save', '3600 1']);
    const [, dir = ''] = (await client.config('GET', 'dir')) as string[];
    // A folder stands where the snapshot is to be.
    await mkdir(join(dir, 'dump.rdb', 'full'), { recursive: true });
    await client.bgsave();
    await until(async () => /rdb_last_bgsave_status:err/.test(await client.info('persistence')));
    expect(of(await examine(flow, url), 'persistence').join()).toMatch(
      /^error .*cannot write its snapshot/,
    );
  });
});

describe('replicas', () => {
  test('none, one that is not in step, and a replica for a master', { tags: 'plain' }, async ({
    flow,
  }) => {
    const settings = ['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '3600'];
    const master = await server(flow, settings);
    expect(of(await examine(flow, master.url), 'replicas').join()).toMatch(/^warning .*no replica/);
    const replica = await server(flow, ['--replicaof', '127.0.0.1', String(master.port)]);
    await until(async () => /state=wait_bgsave/.test(await master.client.info('replication')));
    expect(of(await examine(flow, master.url), 'replicas').join()).toMatch(
      /^warning .*is wait_bgsave/,
    );
    const seen = of(await examine(flow, replica.url), 'replicas').join();
    expect(seen).toContain(`is a replica of 127.0.0.1:${master.port}`);
    expect(seen).toMatch(/^error /);
  });
});

describe('clocks', () => {
  test('of a server that is ahead of this process', { tags: 'plain' }, async ({ flow }) => {
    const { port } = await server(flow);
    await using ahead = await AheadProxy.open(port, 60);
    const asked = performance.now();
    const findings = await examine(flow, `redis://127.0.0.1:${ahead.port}`);
    const tookSeconds = (performance.now() - asked) / 1_000;
    const said = of(findings, 'clocks').join();
    const [, seconds] = /^warning .* is (\d+\.\d) s ahead of this process's/.exec(said) ?? [];
    // It is known no better than to half of the way there and back.
    expect(Math.abs(Number(seconds) - 60), said).toBeLessThanOrEqual(tookSeconds / 2 + 0.1);
    expect(of(await examine(flow, `redis://127.0.0.1:${port}`), 'clocks').join()).toMatch(/^ok /);
  });
});

describe('version', () => {
  test('is compared with what is known', () => {
    expect(isOlder('6.2.14', '7.0')).toBe(true);
    expect(isOlder('7.0.0', '7.0')).toBe(false);
    expect(isOlder('8.10.0', '8.10.1')).toBe(true);
    expect(securityState('Redis', '7.0.15')).toBe('ended');
    expect(securityState('Redis', '7.2.4')).toEqual({ to: '7.2.16' });
    expect(securityState('Redis', '8.0.6')).toBe('ended');
    expect(securityState('Redis', '8.6.3')).toEqual({ to: '8.6.7' });
    expect(securityState('Redis', '8.10.2')).toBe('fixed');
    expect(securityState('Redis', '9.0.0')).toBe('unknown');
    expect(securityState('Valkey', '8.1.3')).toEqual({ to: '8.1.9' });
    expect(securityState('Valkey', '9.1.2')).toBe('fixed');
  });

  test('is reported of the tested server', async ({ flow }) => {
    const { client, url } = await server(flow);
    const info = await client.info('server');
    // Valkey says as redis_version which Redis it is like.
    const valkey = /valkey_version:(\S+)/.exec(info)?.[1];
    const name = valkey ? `Valkey ${valkey}` : `Redis ${/redis_version:(\S+)/.exec(info)?.[1]}`;
    expect(of(await examine(flow, url), 'version').join()).toContain(name);
  });
});
