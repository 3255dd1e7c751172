/**
 * `@piecework/embedded`: a private Redis for demos, tests and runs on a single machine.
 * Its data is removed when it ends, unless the option `dir` is given.
 */
export { EmbeddedRedisError } from './embedded-redis-error.js';
export { findServer } from './find-server.js';
export { type Machine, thisMachine } from './machine.js';
export { type ResolvedRedis, resolveRedisUrl } from './resolve-redis-url.js';
export type { ServerOrigin, ServerProgram } from './server-program.js';
export { type ClusterOptions, type EmbeddedCluster, startCluster } from './start-cluster.js';
export { type EmbeddedRedis, type EmbeddedRedisOptions, startRedis } from './start-redis.js';
