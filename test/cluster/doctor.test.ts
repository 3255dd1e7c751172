/**
 * What the doctor says of a cluster: one without replicas, so that a master can be missed.
 * @module-tag processes
 */

import { type EmbeddedCluster, startCluster } from '@piecework/embedded';
import { queueKeys } from '@piecework/protocol';
import { Cluster, Redis } from 'ioredis';
import { Admin, type Check, type Finding, Piecework } from 'piecework';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AheadProxy } from '../support/ahead-proxy.js';
import { freshName } from '../support/given.js';
import { until } from '../support/until.js';

let cluster: EmbeddedCluster;
let nodes: { host: string; port: number }[];
beforeAll(async () => {
  cluster = await startCluster({ password: '', replicasPerMaster: 0 });
  nodes = cluster.nodes.map(({ host, port }) => ({ host, port }));
});
afterAll(() => cluster?.close());

const of = (findings: readonly Finding[], check: Check) =>
  findings.filter((one) => one.check === check).map(({ level, what }) => `${level} ${what}`);

async function examine(deep = false): Promise<Finding[]> {
  await using admin = new Admin({ redis: { nodes }, queue: 'doctor' });
  return await admin.doctor({ deep });
}

test('the doctor checks every master, and every request on its own server', async () => {
  await using pw = new Piecework({ redis: { nodes }, queue: 'doctor' });
  const ids = Array.from({ length: 20 }, () => freshName('request'));
  for (const id of ids) await pw.submit([1, 2], { id });
  const findings = await examine(true);
  expect(of(findings, 'memory')).toHaveLength(3);
  expect(of(findings, 'replicas')).toHaveLength(3);
  expect(of(findings, 'cluster')).toEqual(['ok 3 masters serve all 16384 hash slots']);
  expect(of(findings, 'clocks').join()).toMatch(/^ok /);
  expect(of(findings, 'acl')).toHaveLength(3);
  expect(of(findings, 'books')).toEqual(['ok the counts of 20 open requests are right']);
  expect(of(findings, 'orphans').every((one) => one.startsWith('ok '))).toBe(true);
  const [lost = ''] = ids;
  await pw.admin.doctor({ repair: true });
  await using keys = new Admin({ redis: { nodes }, queue: 'doctor' });
  await keys.drop(lost);
  expect(of(await examine(), 'books')).toEqual(['ok the counts of 19 open requests are right']);
});

test('what the queue has lost is found by who asks for nothing else before', async () => {
  const queue = freshName('lost');
  await using pw = new Piecework({ redis: { nodes }, queue });
  const { id } = await pw.submit([1]);
  const client = new Cluster(nodes);
  await client.hdel(queueKeys(queue).open, id);
  client.disconnect();
  await using admin = new Admin({ redis: { nodes }, queue });
  expect(await admin.repair()).toEqual([id]);
});

test('one master of several, named like a single server, is reported', async () => {
  const [first] = nodes;
  await using admin = new Admin({ redis: `redis://${first?.host}:${first?.port}` });
  const findings = await admin.doctor();
  expect(findings).toHaveLength(1);
  expect(of(findings, 'cluster').join()).toMatch(/^error .*3 masters/);
});

test('hash slots that are being moved are named', async () => {
  const [from, to] = nodes.slice(0, 2).map((at) => new Redis(at)) as [Redis, Redis];
  const [fromId, toId] = await Promise.all([from.cluster('MYID'), to.cluster('MYID')]);
  await to.cluster('SETSLOT', 5, 'IMPORTING', String(fromId));
  await from.cluster('SETSLOT', 5, 'MIGRATING', String(toId));
  const moving = of(await examine(), 'cluster');
  await from.cluster('SETSLOT', 5, 'STABLE');
  await to.cluster('SETSLOT', 5, 'STABLE');
  expect(moving).toEqual(['warning hash slots are being moved: 5']);
  expect(of(await examine(), 'cluster').join()).toMatch(/^ok /);
  from.disconnect();
  to.disconnect();
});

test('a master whose clock is ahead of the others is named', async () => {
  const [{ port = 0 } = {}] = nodes;
  await using ahead = await AheadProxy.open(port, 3);
  const natMap = { [`127.0.0.1:${port}`]: { host: '127.0.0.1', port: ahead.port } };
  await using admin = new Admin({ redis: { nodes, options: { natMap } }, queue: 'doctor' });
  expect(of(await admin.doctor(), 'clocks').join()).toMatch(
    new RegExp(`^warning the clock of 127.0.0.1:${ahead.port} is [23]\\.\\d s ahead`),
  );
});

test('a master that is gone leaves hash slots to nobody', async () => {
  await cluster.kill(2);
  const said = await until(
    async () => {
      const seen = of(await examine(), 'cluster');
      // One node may know it before another one does.
      const whole = [/^error .*the cluster is fail/, /^warning .*nodes fail: /].every((what) =>
        seen.some((one) => what.test(one)),
      );
      return whole && seen;
    },
    { timeoutMs: 50_000 },
  );
  expect(said.join('\n')).toMatch(
    new RegExp(`^warning 1 of the cluster's nodes fail: 127.0.0.1:${nodes[2]?.port}`, 'm'),
  );
});
