import type * as types from 'ioredis';
import classes from './ioredis-classes.cjs';

/** The classes of ioredis. Types that are no classes are imported from ioredis itself. */
export const { AbstractConnector, Cluster, Command, Redis, SentinelConnector } = classes;
export type Cluster = types.Cluster;
export type Command = types.Command;
export type Redis = types.Redis;
