export * from './calls/batcher.js';
export * from './calls/id-queue-commands.js';
export * from './calls/queue/history.js';
export * from './calls/queue/queue-commands.js';
export * from './calls/queue/queue-control-commands.js';
export * from './calls/queue/queue-errors.js';
export * from './calls/queue/queue-reads.js';
export * from './calls/queue/queue-tokens.js';
export * from './calls/queue-sync.js';
export * from './calls/request/control-commands.js';
export * from './calls/request/failure-commands.js';
export {
  type Entry,
  type Outcome,
  type ResultRecord,
  type ResultsEntry,
  recordsOf,
} from './calls/request/outcome-codec.js';
export * from './calls/request/producer-commands.js';
export { readFields } from './calls/request/read-fields.js';
export * from './calls/request/reader-commands.js';
export * from './calls/request/recent-ends.js';
export * from './calls/request/redrive-commands.js';
export * from './calls/request/request-outcome.js';
export * from './calls/request/request-reads.js';
export * from './calls/request/running-commands.js';
export * from './calls/request/tend-commands.js';
export * from './calls/request/worker-commands.js';
export * from './calls/timed-commands.js';
export * from './calls/timed-condition.js';
export * from './common/abort.js';
export * from './common/process-runs.js';
export * from './common/safe-callback.js';
export * from './common/waiting.js';
export * from './contract/attempt-policy.js';
export * from './contract/codec.js';
export * from './contract/condition-error.js';
export * from './contract/cost.js';
export * from './contract/defaults.js';
export * from './contract/errors.js';
export * from './contract/id-queue-keys.js';
export {
  type Idle,
  idleFactor,
  idleOption,
  isLateWorker,
  isSilentWorker,
  signOfLifeMs,
} from './contract/idle.js';
export type { JsonInput, Jsonify } from './contract/json.js';
export * from './contract/json-text.js';
export * from './contract/kept-error.js';
export * from './contract/keys.js';
export * from './contract/lanes.js';
export * from './contract/lease-times.js';
export * from './contract/limit.js';
export * from './contract/options.js';
export * from './contract/run-times.js';
export { type Shape, shape } from './contract/shapes.js';
export * from './contract/shard-names.js';
export * from './contract/telemetry.js';
export * from './contract/thrown.js';
export * from './contract/timed-keys.js';
export * from './contract/tolerated-failures.js';
export { type Argument, type Client, type IoredisClient, isCluster } from './redis/client.js';
export { type CloneableSettings, cloneableSettings } from './redis/cloneable-settings.js';
export { aloneAtNodes } from './redis/cluster/cluster-state.js';
export * from './redis/connection.js';
export type {
  Credential,
  Credentials,
  CredentialsProvider,
  KnownCredential,
} from './redis/credentials.js';
export { Cluster, Redis } from './redis/ioredis.js';
export { sendGathered } from './redis/ioredis-internals/gathered-writes.js';
export type { RedisInput } from './redis/open-client.js';
export * from './redis/patience.js';
export { isOtherType, lacksStream, redisError } from './redis/redis-error.js';
export { isRedisUrl, sentinelsOf } from './redis/redis-url.js';
export { NoSentinel } from './redis/sentinel-error.js';
export { keepsWork, type MemoryUse, TIGHT_MEMORY } from './redis/server-info.js';
export * from './redis/subscriber.js';
export { commandsIn } from './scripts/script-commands.js';
export type { ScriptName } from './scripts/scripts.generated.js';
export * from './upkeep/agenda.js';
export * from './upkeep/crash-errors.js';
export * from './upkeep/shards.js';
