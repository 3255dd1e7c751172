export * from './calls/control-commands.js';
export * from './calls/failure-commands.js';
export * from './calls/id-queue-commands.js';
export {
  type AllIn,
  BEHIND_CREATE,
  createField,
  type FirstToken,
  firstToken,
} from './calls/one-trip.js';
export * from './calls/queue-commands.js';
export * from './calls/queue-errors.js';
export * from './calls/redrive-commands.js';
export * from './calls/request-commands.js';
export * from './calls/request-outcome.js';
export * from './calls/running-commands.js';
export * from './calls/tell-open.js';
export * from './calls/timed-commands.js';
export * from './calls/timed-condition.js';
export * from './common/abort.js';
export * from './common/safe-callback.js';
export * from './common/waiting.js';
export * from './contract/attempt-policy.js';
export * from './contract/codec.js';
export * from './contract/defaults.js';
export * from './contract/errors.js';
export * from './contract/id-queue-keys.js';
export * from './contract/kept-error.js';
export * from './contract/keys.js';
export * from './contract/lanes.js';
export * from './contract/limit.js';
export * from './contract/options.js';
export * from './contract/run-times.js';
export * from './contract/thrown.js';
export * from './contract/timed-keys.js';
export * from './contract/tolerated-failures.js';
export type { Argument, Client } from './redis/client.js';
export { type CloneableSettings, cloneableSettings } from './redis/cloneable-settings.js';
export * from './redis/connection.js';
export type { RedisInput } from './redis/open-client.js';
export * from './redis/patience.js';
export { redisError } from './redis/redis-error.js';
export { isRedisUrl, sentinelsOf } from './redis/redis-url.js';
export { NoSentinel } from './redis/sentinel-error.js';
export * from './redis/subscriber.js';
export { commandsIn } from './scripts/script-commands.js';
export type { ScriptName } from './scripts/scripts.generated.js';
export * from './upkeep/agenda.js';
export * from './upkeep/crash-errors.js';
export * from './upkeep/shards.js';
