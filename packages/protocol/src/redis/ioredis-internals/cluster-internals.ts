import type { Cluster, ClusterNode, Redis } from 'ioredis';

/*
 * What we use of a cluster client that ioredis does not document. test/cluster/ioredis-internals.test.ts proves each
 * function against the installed version.
 */

interface Pool {
  getInstanceByKey(address: string): Redis | undefined;
}

interface Ending {
  setStatus(status: string): void;
  handleCloseEvent(): void;
}

/** The nodes that the user named. `cluster.nodes()` lists those that the client knows now, which may be gone later. */
export const namedNodes = (cluster: Cluster): readonly ClusterNode[] =>
  (cluster as unknown as { startupNodes: readonly ClusterNode[] }).startupNodes;

/**
 * Lets the client find its connection to a node also by the address before translation (`natMap`).
 *
 * ioredis connects to the translated address that a MOVED names, but remembers the untranslated one and finds no
 * connection there. Until it reads the slot map again, each call of that slot (and of those that share the entry)
 * goes to a random node and may be redirected too often.
 */
export function findNodesBy(cluster: Cluster, translated: (address: string) => string): void {
  const { connectionPool: pool } = cluster as unknown as { connectionPool: Pool };
  const find = pool.getInstanceByKey.bind(pool);
  pool.getInstanceByKey = (address) => find(address) ?? find(translated(address));
}

/**
 * Ends a client that has no node left. ioredis ends a cluster client with the last of its nodes; without any it would
 * stay in 'disconnecting', and the calls in its queue would never be answered.
 */
export function endWithoutNodes(cluster: Cluster): void {
  const ending = cluster as unknown as Ending;
  // ioredis does the same with a client that never had a node.
  ending.setStatus('close');
  ending.handleCloseEvent();
}

/**
 * Keeps a failed ASKING from ending the process. While a hash slot moves, ioredis sends ASKING ahead of the redirected
 * call and ignores its promise. When the connection closes first (ioredis closes one to a node that holds no hash slot
 * yet), that would be an unhandled rejection. The redirected call fails with it, and is sent again or reported.
 */
export function catchAsking(cluster: Cluster): void {
  const watch = (node: Redis): void => {
    const asking = node.asking.bind(node);
    node.asking = () => {
      const reply = asking();
      // cure: an ASKING without a reply does not end the process
      reply.catch(() => {});
      return reply;
    };
  };
  for (const node of cluster.nodes('all')) watch(node);
  cluster.on('+node', watch);
}
