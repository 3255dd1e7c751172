/**
 * `@piecework/protocol/contract`: options and errors, and nothing that talks to Redis. What only checks options or starts
 * processes loads this instead of the whole package, which takes 150 ms of CPU and 25 MB.
 */

export * from './common/abort.js';
export * from './common/waiting.js';
export * from './contract/attempt-policy.js';
export { LARGEST_VALUE_BYTES, MAX_PAYLOAD_BYTES } from './contract/codec.js';
export * from './contract/condition-error.js';
export * from './contract/defaults.js';
export * from './contract/errors.js';
export {
  type Idle,
  idleFactor,
  idleOption,
  isSilentWorker,
  signOfLifeMs,
} from './contract/idle.js';
export { JsonText, jsonText, knownJson } from './contract/json-text.js';
export type { CrashCause } from './contract/kept-error.js';
export { limitOption } from './contract/limit.js';
export * from './contract/options.js';
export { serverTimeMs } from './contract/server-time.js';
export * from './contract/shapes.js';
export * from './contract/shard-names.js';
export { HIDDEN, shownText } from './contract/shown-value.js';
export * from './contract/telemetry.js';
export * from './contract/thrown.js';
export { type ToleratedFailures, toleratedFailuresOption } from './contract/tolerated-failures.js';
export type { RedisInput } from './redis/open-client.js';
export { isRedisUrl } from './redis/redis-url.js';
