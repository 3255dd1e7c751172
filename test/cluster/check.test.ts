/**
 * What is looked at before a cluster is used, and what is left when it is not used any more.
 * @module-tag processes
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { startCluster } from '@piecework/embedded';
import { Connection } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { expect, onTestFinished, test } from 'vitest';
import { ClusterOperator } from '../../tools/chaos/src/cluster/moves.js';
import { mastersOf } from '../support/flow.js';
import { testCluster } from '../support/redis.js';

test('how full a master is, is asked of the one that holds the key', async () => {
  const { nodes } = await testCluster();
  const connection = Connection.open({ nodes: nodes.map(({ host, port }) => ({ host, port })) });
  onTestFinished(() => connection.close());
  await connection.check();
  for (const [i, master] of mastersOf(connection).entries()) {
    const most = (i + 1) * 1_000_000_000;
    await master.config('SET', 'maxmemory', most);
    const { host, port } = master.options;
    const use = await connection.memoryOf(`${host}:${port}`);
    expect(use).toMatchObject({ most });
    expect(use?.used).toBeGreaterThan(0);
    await master.config('SET', 'maxmemory', '0');
  }
  expect(await connection.memoryOf('127.0.0.1:1')).toBeUndefined();
  expect(mastersOf(connection).map(({ options: { host, port } }) => `${host}:${port}`)).toContain(
    connection.knownAddressOf('request:{any}'),
  );
});

test('a master that would evict keys is found, whichever it is', async () => {
  const { nodes } = await testCluster();
  const open = () => {
    const connection = Connection.open({ nodes: nodes.map(({ host, port }) => ({ host, port })) });
    onTestFinished(() => connection.close());
    return connection;
  };
  const first = open();
  await first.check();
  const masters = mastersOf(first);
  expect(masters).toHaveLength(3);
  for (const master of masters) {
    await master.config('SET', 'maxmemory', '1gb', 'maxmemory-policy', 'allkeys-lru');
    const another = open();
    await expect(another.check()).rejects.toMatchObject({ code: 'EVICTING' });
    await master.config('SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction');
    // Who was refused may look again.
    await another.check();
  }
});

test('connections closed while they read the slot map let their process end', async () => {
  const { nodes } = await testCluster();
  const program = `
    import { Connection } from '@piecework/protocol';
    const nodes = JSON.parse(process.argv[1]);
    const open = () => Connection.open({ nodes, options: { slotsRefreshInterval: 1 } });
    const connections = Array.from({ length: 5 }, open);
    for (const one of connections) await one.check();
    for (const one of connections) await new Promise((look) => one.client.once('refresh', look));
    await Promise.all(connections.map((one) => one.close()));
  `;
  const child = spawn(
    process.execPath,
    ['--input-type=module', '-e', program, JSON.stringify(nodes)],
    { stdio: 'inherit' },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test('a close while a cluster is away answers every call', async () => {
  // Nobody listens there. A port that is free now may be a server's of another test in a moment.
  const ports = [1, 2];
  const connection = Connection.open(ports.map((port) => `redis://127.0.0.1:${port}`).join());
  const refused = { code: 'CONNECTION' };
  await expect(connection.check()).rejects.toMatchObject(refused);
  await new Promise((resolve) => void connection.client.once('reconnecting', resolve));
  const state = () => new RequestCommands(connection, 'any').state();
  const asked = state();
  // As behind a look at the agenda that is under way.
  const closed = connection.closeSoon(asked.catch(() => {}));
  await expect(asked).rejects.toMatchObject(refused);
  await closed;
  await expect(state()).rejects.toMatchObject(refused);
});

test('a cluster that is not whole yet, or of which a node hangs, is reached all the same', async () => {
  const cluster = await startCluster({ password: '', masters: 3, replicasPerMaster: 0 });
  onTestFinished(() => cluster.close());
  const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }));
  const operator = new ClusterOperator(nodes);
  onTestFinished(() => operator.close());
  const open = () => {
    const connection = Connection.open({ nodes });
    onTestFinished(() => connection.closeSoon());
    return connection;
  };
  const slot = await operator.slotOf('any');
  const owner = await operator.masterOf(slot);
  for (const node of nodes) await operator.at(node).cluster('DELSLOTS', slot);
  const early = open();
  const checked = early.check();
  checked.catch(() => {});
  await new Promise((resolve) => void early.client.once('reconnecting', resolve));
  await operator.at(owner).cluster('ADDSLOTS', slot);
  await checked;

  for (const node of nodes)
    await operator.at(node).config('SET', 'cluster-require-full-coverage', 'no');
  const pid = Number(/process_id:(\d+)/.exec(await operator.at(owner).info('server'))?.[1]);
  process.kill(pid, 'SIGSTOP');
  try {
    // Which of the three each asks first is left to chance.
    await Promise.all([open().check(), open().check()]);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
});
