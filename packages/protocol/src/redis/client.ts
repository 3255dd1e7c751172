import type { Cluster, Redis } from 'ioredis';

/** What commands are sent by. */
export type Client = Redis | Cluster;

/** One argument of a command. */
export type Argument = string | number | Buffer;

/**
 * A `Redis` or `Cluster` of ioredis 5 or newer, of any copy that is installed, not only of the one that Piecework uses.
 * These members tell it from the clients of other libraries.
 */
export interface IoredisClient {
  readonly isCluster: boolean;
  readonly status: string;
  duplicate(...args: never[]): unknown;
  sendCommand(...args: never[]): unknown;
}

/** Whether a client is one of a cluster. Told by its shape, as its class may be of another copy of ioredis. */
export const isCluster = (client: Client): client is Cluster => client.isCluster;
