/** `@piecework/metrics/fleet`: what the parent of worker processes loads, without a client of Redis. */
export type { Snapshot } from './definitions/snapshot.js';
export { FleetMetrics } from './fleet/fleet-metrics.js';
