import { type EmbeddedCluster, startCluster } from '@piecework/embedded';
import { Redis } from 'ioredis';
import { afterAll, TestRunner } from 'vitest';
import { overTls, testMode, underAcl } from './mode.js';
import { embedded } from './providers/embedded.js';
import type { RedisProvider, TestServer } from './providers/provider.js';

/*
 * The servers that tests run against: one of each kind for a test file, started when the first test
 * asks and stopped after the last. mode.ts says where they come from.
 */

// Loaded when it is wanted: it brings a good deal along.
const provider = await providerOf();

async function providerOf(): Promise<RedisProvider> {
  if (testMode === 'docker') return (await import('./providers/docker.js')).docker;
  if (overTls) return (await import('./providers/tls.js')).tls;
  return embedded;
}

let redis: Promise<Pick<TestServer, 'url'> & Partial<TestServer>> | undefined;
let cluster: Promise<EmbeddedCluster> | undefined;

/** Whether strangers use the server as well: then tests read no keys but their own. */
export const sharedServer = testMode === 'url';

/** Whether the run is one against a cluster (`scripts/test.mjs --cluster`). */
export const againstCluster = testMode === 'cluster';

/** The server of this test file. Others use it too: stay within keys of your own. */
export function testRedis(): Promise<{ readonly url: string }> {
  redis ??= sharedServer ? theirServer() : provider.start();
  return redis;
}

/** A server of the test's own, which it stops. Only for tests with the tag `own-server`. */
export async function startOwnRedis(settings?: readonly string[]): Promise<TestServer> {
  if (sharedServer) throw new Error("a test that starts a server needs the tag 'own-server'");
  if (underAcl) skip('starts a server of its own, which has no users');
  return provider.start(settings);
}

async function theirServer(): Promise<{ url: string }> {
  const url = process.env['PIECEWORK_TEST_REDIS_URL'];
  if (!url) throw new Error('PIECEWORK_TEST_REDIS=url needs PIECEWORK_TEST_REDIS_URL');
  return { url };
}

/**
 * The cluster of this test file: three masters, each with a replica. Always processes. A server that is not
 * heard of for `nodeTimeoutMs`, as whoever asks first wants it, is replaced: by default hardly any, as one that
 * stands still on a busy machine would take acknowledged writes along.
 */
export function testCluster(nodeTimeoutMs = 15_000): Promise<EmbeddedCluster> {
  cluster ??= startedCluster(nodeTimeoutMs);
  return cluster;
}

async function startedCluster(nodeTimeoutMs: number): Promise<EmbeddedCluster> {
  const started = await startCluster({ password: '', args: ['--enable-debug-command', 'local'] });
  // Afterwards: nodes that are patient with each other take longer to find together.
  for (const { host, port } of started.nodes) {
    const node = new Redis({ host, port });
    await node.config('SET', 'cluster-node-timeout', nodeTimeoutMs);
    node.disconnect();
  }
  return started;
}

/** The value to pass as `redis` to Piecework: the URL of `testRedis`, or the nodes of `testCluster`. */
export async function testConnection(): Promise<
  string | { nodes: { host: string; port: number }[] }
> {
  if (!againstCluster) return (await testRedis()).url;
  const { nodes } = await testCluster();
  return { nodes: nodes.map(({ host, port }) => ({ host, port })) };
}

/** The same as a text, as `REDIS_URL` has it: of a cluster the URLs of its nodes. */
export async function testUrl(): Promise<string> {
  if (!againstCluster) return (await testRedis()).url;
  const { nodes } = await testCluster();
  return nodes.map(({ host, port }) => `redis://${host}:${port}`).join(',');
}

// Registered first and hooks run last to first, so a file's own hooks still have their server.
afterAll(async () => {
  const running = [redis, cluster];
  redis = undefined;
  cluster = undefined;
  await Promise.allSettled(running.map(async (server) => (await server)?.close?.()));
});

function skip(why: string): void {
  const test = TestRunner.getCurrentTest();
  if (!test) return;
  test.meta.skipped = why;
  test.context.skip(why);
}
