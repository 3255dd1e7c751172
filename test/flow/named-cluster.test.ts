/**
 * A cluster by TLS whose certificates have the names of its nodes, and no addresses.
 * @module-tag own-server
 * @module-tag processes
 */
import { fileURLToPath } from 'node:url';
import { Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { cli, startCli } from '../support/cli.js';
import { type Flow, numbers, RENEWAL_THREAD, test } from '../support/flow.js';
import { type NamedCluster, startNamedCluster } from '../support/named-cluster.js';
import { until } from '../support/until.js';

async function started(flow: Flow, endpoint: 'hostname' | 'ip'): Promise<NamedCluster> {
  const cluster = await startNamedCluster(endpoint);
  flow.after(() => cluster[Symbol.asyncDispose]());
  return cluster;
}

/** How many connections all nodes have by this name. */
async function named({ operators }: NamedCluster, name: string): Promise<number> {
  const lists = await Promise.all(operators.map((operator) => operator.client('LIST')));
  return lists.join('\n').split(`name=${name} `).length - 1;
}

describe('a cluster whose certificates have names only', () => {
  test('is used by its names: by all connections, the renewal thread and the doctor, while users and passwords change', async ({
    flow,
  }) => {
    const cluster = await started(flow, 'hostname');
    const { nodes, ca, operators } = cluster;
    const everywhere = (...words: string[]) =>
      Promise.all(operators.map((operator) => operator.call(...(words as [string]))));
    await everywhere('ACL', 'SETUSER', 'app', 'on', '>p0', '~*', '&*', '+@all');
    let password = 'p0';
    const redis = {
      nodes,
      options: { redisOptions: { tls: { ca } } },
      credentials: () => ({ username: 'app', password }),
    };
    const ran: number[] = [];
    const worker = flow.worker({
      ...RENEWAL_THREAD,
      redis,
      leaseMs: 5_000,
      handler: async (n: number) => {
        ran.push(n);
        await new Promise((resolve) => setTimeout(resolve, 20));
      },
    });
    await worker.start();
    await using pw = new Piecework({ redis, queue: flow.queue });
    const request = await pw.submit(numbers(200), { id: flow.id('named'), limit: 2 });
    const completion = request.completion();
    await until(async () => (await named(cluster, 'piecework-renewal')) > 0);
    for (const next of ['p1', 'p2']) {
      await everywhere('ACL', 'SETUSER', 'app', `>${next}`, `<${password}`);
      password = next;
      await everywhere('CLIENT', 'KILL', 'USER', 'app');
      const before = ran.length;
      await until(() => ran.length > before + 20);
    }
    expect(await completion).toMatchObject({ status: 'succeeded', counts: { succeeded: 200 } });
    expect([...ran].sort((a, b) => a - b)).toEqual(numbers(200));
    await until(() => worker.health().ready && worker.health().why.length === 0);
    const findings = await pw.admin.doctor();
    expect(findings.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('is used by the command line with the URLs of some nodes', async ({ flow }) => {
    const { nodes, caFile } = await started(flow, 'hostname');
    const before = process.env['NODE_EXTRA_CA_CERTS'];
    process.env['NODE_EXTRA_CA_CERTS'] = caFile;
    flow.after(() => {
      if (before === undefined) delete process.env['NODE_EXTRA_CA_CERTS'];
      else process.env['NODE_EXTRA_CA_CERTS'] = before;
    });
    const redis = nodes.map(({ port }) => `valkeys://localhost:${port}`).join(',');
    const handler = fileURLToPath(new URL('../support/programs/handler.mjs', import.meta.url));
    const common = ['--queue', flow.queue];
    const worker = startCli(['worker', '--handler', handler, ...common], { redis });
    const args = ['submit', '--input', '-', '--id', flow.id('cli'), '--wait', '--json', ...common];
    const ended = await cli(args, { redis, input: 'a\nb\n' });
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    const { code, stdout } = await cli(['doctor', '--json', ...common], { redis });
    expect({ code, stdout: stdout.match(/"level":"error".*/)?.[0] }).toEqual({ code: 0 });
    worker.child.kill('SIGTERM');
    expect((await worker.finished).code).toBe(0);
  });

  test('that announces addresses is used with a `natMap` to names', async ({ flow }) => {
    const { nodes, ca } = await started(flow, 'ip');
    const natMap = Object.fromEntries(
      nodes.map(({ host, port }) => [`127.0.0.1:${port}`, { host, port }]),
    );
    const redis = { nodes, options: { natMap, redisOptions: { tls: { ca } } } };
    const worker = flow.worker({ ...RENEWAL_THREAD, redis, handler: async (n: number) => n });
    await worker.start();
    await using pw = new Piecework({ redis, queue: flow.queue });
    const request = await pw.submit(numbers(20), { id: flow.id('mapped') });
    expect(await request.completion()).toMatchObject({ status: 'succeeded' });
    await until(() => worker.health().why.length === 0);
  });
});
