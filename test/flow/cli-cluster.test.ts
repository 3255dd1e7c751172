/*
 * The command line and the addresses of a cluster.
 */
import { startRedis } from '@piecework/embedded';
import type { Connection } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { expect, onTestFinished } from 'vitest';
import { cli } from '../support/cli.js';
import { jsonLines, test } from '../support/command-line.js';
import { mastersOf } from '../support/flow.js';
import { keysNaming } from '../support/own-keys.js';
import { until } from '../support/until.js';

/** One id for each of the three masters, who have a third of the hash slots each. */
async function anIdForEachMaster(connection: Connection, name: string): Promise<string[]> {
  const [master] = mastersOf(connection);
  const ids = new Map<number, string>();
  for (let n = 0; ids.size < 3 && n < 1_000; n += 1) {
    const slot = Number(await master?.cluster('KEYSLOT', `${name}-${n}`));
    ids.set(Math.floor((slot * 3) / 16_384), `${name}-${n}`);
  }
  return [...ids.values()].sort();
}

test('one address given twice leads to the whole cluster, also the address of a replica', {
  tags: 'only-cluster',
}, async ({ commandLine }) => {
  const { file, queue, connection } = commandLine;
  const nodes = commandLine.redis.split(',');
  const input = await file('two.txt', 'a\nb\n');
  // The masters come first, then the replicas.
  const [master = '', replica = ''] = [nodes.at(0), nodes.at(-1)];
  for (const redis of [master, replica]) {
    const alone = await cli(['list', '--queue', queue, '--json'], { redis });
    expect(alone.code).toBe(1);
    expect(JSON.parse(alone.stderr).error).toMatchObject({
      code: 'CLUSTER',
      message: expect.stringContaining('one of the 3 masters'),
    });
  }

  const on = (url: string, ...args: string[]) =>
    cli([...args, '--queue', queue, '--redis', `${url},${url}`]);
  const ids = await anIdForEachMaster(connection, queue);
  for (const id of ids) {
    expect(await on(master, 'submit', '--input', input, '--id', id)).toMatchObject({ code: 0 });
  }
  for (const each of mastersOf(connection)) {
    const requests = (await keysNaming(each, queue)).filter((key) => key.startsWith('request:'));
    expect(requests).toHaveLength(1);
  }
  const listed = jsonLines<{ id: string }>((await on(replica, 'list', '--json')).stdout);
  expect(listed.map(({ id }) => id).sort()).toEqual(ids);

  const handler = await file('handler.mjs', "export default (text) => text + '!';");
  const ran = await on(replica, 'run', '--input', input, '--handler', handler, '--out', '-');
  expect(ran.code, ran.stderr).toBe(0);
  expect(jsonLines(ran.stdout).map(({ value }) => value)).toEqual(['a!', 'b!']);
});

const NODE = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'];

/** A server with all slots of a cluster, or a single one. */
async function server(isNode: boolean): Promise<string> {
  const args = isNode ? NODE : [];
  const { url, close } = await startRedis({ args });
  onTestFinished(close);
  if (!isNode) return url;
  const client = new Redis(url);
  await client.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
  await until(async () => String(await client.call('CLUSTER', 'INFO')).includes('state:ok'));
  client.disconnect();
  return url;
}

const placeOf = (url: string) => new URL(url).host;

test('a cluster that cannot be reached is refused with what its nodes said', {
  tags: 'processes',
}, async ({ commandLine: { file } }) => {
  const input = await file('one.txt', 'a\n');
  const node = await server(true);
  const client = new Redis(node);
  await client.config('SET', 'requirepass', 'secret');
  client.disconnect();
  const wrong = node.replace(/:[^:@]*@/, ':wrong@');
  for (const [urls, code, says] of [
    [['redis://127.0.0.1:1', 'redis://127.0.0.1:2'], 'CONNECTION', 'ECONNREFUSED 127.0.0.1:'],
    [[wrong, wrong], 'PASSWORD', 'WRONGPASS'],
  ] as const) {
    const args = ['submit', '--input', input, '--redis', urls.join(','), '--json'];
    const { stderr } = await cli(args);
    expect(JSON.parse(stderr).error).toEqual({ code, message: expect.stringContaining(says) });
  }
});

test('addresses that are no nodes of one cluster are refused before anything is written, with the cure', {
  tags: 'processes',
}, async ({ commandLine: { file } }) => {
  const input = await file('two.txt', 'a\nb\n');
  const [single, other] = await Promise.all([server(false), server(false)]);
  const [one, two] = await Promise.all([server(true), server(true)]);
  const isSingle = `${placeOf(single)} is a single server, and no node of a cluster:`;
  // All nodes of a cluster share a password.
  for (const url of [one, two, single, other]) {
    const client = new Redis(url);
    await client.config('SET', 'requirepass', 'shared');
    client.disconnect();
  }
  const shared = (url: string) => url.replace(/:[^:@]*@/, ':shared@');
  for (const [urls, says] of [
    [[one, two], `${placeOf(one)} and ${placeOf(two)} are nodes of different clusters: name only`],
    [[single, other], `${isSingle} name one URL, without commas`],
    [[single, single], `${isSingle} name one URL, without commas`],
    [[one, single], `${isSingle} leave it out`],
  ] as const) {
    const args = ['submit', '--input', input, '--redis', urls.map(shared).join(','), '--json'];
    const { code, stderr } = await cli(args);
    expect(code).toBe(1);
    expect(JSON.parse(stderr).error).toEqual({
      code: 'CLUSTER',
      message: expect.stringContaining(says),
    });
  }
  for (const url of [one, two, single, other]) {
    const client = new Redis(shared(url));
    expect(await client.dbsize()).toBe(0);
    client.disconnect();
  }
  // A node that is away is no reason.
  const gone = await startRedis();
  await gone.close();
  const redis = [shared(gone.url), shared(one)].join(',');
  expect(await cli(['list', '--redis', redis])).toMatchObject({ code: 0 });
});
