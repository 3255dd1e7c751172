import type { Cluster, Redis } from 'ioredis';

/** What commands are sent by. */
export type Client = Redis | Cluster;

/** One argument of a command. */
export type Argument = string | number | Buffer;
