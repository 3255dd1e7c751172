import {
  type EmbeddedCluster,
  type EmbeddedRedis,
  startCluster,
  startRedis,
} from 'piecework/embedded';
import { afterAll } from 'vitest';

/*
 * The servers that tests run against: one of each kind for a worker process of vitest, started
 * when the first test asks. They are stopped after the test file; a worker that is killed
 * before takes them along, because an embedded server ends with its parent.
 */

let redis: Promise<EmbeddedRedis> | undefined;
let cluster: Promise<EmbeddedCluster> | undefined;

/** The server of this test worker. Others use it too: stay within keys of your own. */
export function testRedis(): Promise<EmbeddedRedis> {
  // DEBUG lets tests freeze, age and reload a server; it listens on loopback only.
  redis ??= startRedis({ args: ['--enable-debug-command', 'local'] });
  return redis;
}

/** The cluster of this test worker: three masters, each with a replica. */
export function testCluster(): Promise<EmbeddedCluster> {
  cluster ??= startCluster({ args: ['--enable-debug-command', 'local'] });
  return cluster;
}

/** Whether the run is one against a cluster (`scripts/test.mjs --cluster`). */
export const againstCluster = process.env['PIECEWORK_TEST_REDIS'] === 'cluster';

/** The value to pass as `redis` to Piecework: the URL of `testRedis`, or the nodes of `testCluster`. */
export async function testConnection(): Promise<
  string | { nodes: { host: string; port: number }[] }
> {
  if (!againstCluster) return (await testRedis()).url;
  const { nodes } = await testCluster();
  return { nodes: nodes.map(({ host, port }) => ({ host, port })) };
}

// Registered first and hooks run last to first, so a file's own hooks still have their server.
afterAll(async () => {
  const running = [redis, cluster];
  redis = undefined;
  cluster = undefined;
  await Promise.allSettled(running.map(async (server) => (await server)?.stop()));
});
