/**
 * `@piecework/protocol/calls`: only what calls the scripts of a request. A thread that does nothing else
 * loads it in half the time of the whole package, which brings the checking of options along.
 */
export type { CloneableSettings } from './cloneable-settings.js';
export { Connection } from './connection.js';
export { PieceworkError } from './errors.js';
export type { RedisInput } from './open-client.js';
export { RequestCommands } from './request-commands.js';
