/**
 * `@piecework/protocol/calls`: only what calls the scripts of a request. A thread that does nothing else
 * loads it in half the time of the whole package, which brings the checking of options along.
 */

export { WorkerCommands } from './calls/request/worker-commands.js';
export { PieceworkError } from './contract/errors.js';
export * from './contract/lease-times.js';
export type { CloneableSettings } from './redis/cloneable-settings.js';
export { Connection } from './redis/connection.js';
export type { KnownCredential } from './redis/credentials.js';
export type { RedisInput } from './redis/open-client.js';
