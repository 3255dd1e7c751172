/**
 * `@piecework/embedded`: a private Redis for demos, tests and single-machine runs.
 * Nothing here is meant to hold data that outlives the program, unless asked to by `dir`.
 */
export { EmbeddedRedisError } from './embedded-redis-error.js';
export { findServer } from './find-server.js';
export { type Machine, thisMachine } from './machine.js';
export { type ResolvedRedis, resolveRedisUrl } from './resolve-redis-url.js';
export type { ServerOrigin, ServerProgram } from './server-program.js';
export { type ClusterOptions, type EmbeddedCluster, startCluster } from './start-cluster.js';
export { type EmbeddedRedis, type EmbeddedRedisOptions, startRedis } from './start-redis.js';
