import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EmbeddedRedis, startRedis } from '@piecework/embedded';
import { Redis } from 'ioredis';
import { formCluster } from '../../packages/embedded/dist/form-cluster.js';
import { makeCertificate, tlsSettings } from './certificate.js';
import { onFreePort } from './on-free-port.js';

/*
 * A cluster of three masters whose certificate has the name `localhost` and no address, as rented ones have names only.
 * Nodes announce that name, and speak TLS among each other too.
 */

export interface NamedCluster extends AsyncDisposable {
  readonly nodes: readonly { readonly host: 'localhost'; readonly port: number }[];
  /** The certificate, which is its own authority: the text, and a file of it. */
  readonly ca: string;
  readonly caFile: string;
  /** A client of each node for the test. */
  readonly operators: readonly Redis[];
}

/** `endpoint`: by what CLUSTER SLOTS names the nodes. */
export async function startNamedCluster(endpoint: 'hostname' | 'ip'): Promise<NamedCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'piecework-named-'));
  const { cert, certFile, keyFile } = await makeCertificate(folder, ['localhost']);
  const started = await Promise.all(
    [1, 2, 3].map(() => startNode(endpoint, { certFile, keyFile })),
  );
  const operators = started.map(
    ({ port }) =>
      new Redis({ host: '127.0.0.1', port, tls: { ca: cert, servername: 'localhost' } }),
  );
  await formCluster(operators, { masters: 3, replicasPerMaster: 0 });
  return {
    nodes: started.map(({ port }) => ({ host: 'localhost', port })),
    ...{ ca: cert, caFile: certFile, operators },
    async [Symbol.asyncDispose]() {
      for (const operator of operators) operator.disconnect();
      await Promise.all(started.map(({ redis }) => redis.close()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const startNode = (
  endpoint: string,
  files: { certFile: string; keyFile: string },
): Promise<{ port: number; redis: EmbeddedRedis }> =>
  onFreePort(async (port) => {
    const args = [
      ...['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'],
      ...['--cluster-node-timeout', '15000', '--tls-cluster', 'yes'],
      ...['--cluster-announce-hostname', 'localhost'],
      ...['--cluster-preferred-endpoint-type', endpoint, ...tlsSettings(port, files)],
    ];
    return { port, redis: await startRedis({ password: '', args }) };
  });
