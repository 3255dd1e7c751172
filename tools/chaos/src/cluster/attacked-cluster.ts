import { join } from 'node:path';
import { type EmbeddedCluster, startCluster } from '@piecework/embedded';
import { Cluster, type Redis } from 'ioredis';
import type { Fsync, Watched } from '../attacked/server.js';
import { ClusterOperator } from './moves.js';

/** The cluster under attack: three masters and three replicas, each with its file. */
export class AttackedCluster implements Watched, AsyncDisposable {
  readonly client: Cluster;
  readonly operator: ClusterOperator;
  /** As `REDIS_URL` has it. */
  readonly url: string;
  readonly #cluster: EmbeddedCluster;

  private constructor(cluster: EmbeddedCluster) {
    this.#cluster = cluster;
    const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }));
    this.url = nodes.map(({ host, port }) => `redis://${host}:${port}`).join(',');
    this.operator = new ClusterOperator(nodes);
    this.client = new Cluster(nodes, {
      redisOptions: { protocol: 2, commandTimeout: 20_000 },
      slotsRefreshInterval: 2_000,
    });
    this.client.on('error', () => {});
  }

  static async start(folder: string, fsync: Fsync): Promise<AttackedCluster> {
    const dir = join(folder, 'cluster');
    const args = ['--appendfsync', fsync];
    return new AttackedCluster(await startCluster({ password: '', dir, persistence: 'aof', args }));
  }

  async kill(port: number): Promise<void> {
    await this.#cluster.kill(this.#indexOf(port));
  }

  async startAgain(port: number): Promise<void> {
    await this.#cluster.startAgain(this.#indexOf(port));
  }

  #indexOf(port: number): number {
    return this.#cluster.nodes.findIndex((node) => node.port === port);
  }

  /** What each server says of its errors: 'CROSSSLOT' → times. */
  async errors(): Promise<Map<string, number>> {
    const counts = new Map<string, number>();
    for (const { port } of this.#cluster.nodes) {
      const info = await this.operator.at({ port }).info('errorstats');
      for (const [, name = '', count] of info.matchAll(/^errorstat_(\w+):count=(\d+)/gm))
        counts.set(name, (counts.get(name) ?? 0) + Number(count));
    }
    return counts;
  }

  async masters(): Promise<Redis[]> {
    const nodes = await this.operator.nodes();
    return nodes
      .filter(({ role, up }) => role === 'master' && up)
      .map((node) => this.operator.at(node));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.disconnect();
    this.operator.close();
    await this.#cluster.close();
  }
}
