/// <reference types="node" preserve="true" />
/**
 * `piecework/health`: the health server alone, and what serves other pages beside it. The parent of worker processes
 * loads it without a client of Redis.
 */
export {
  type Health,
  type HealthServer,
  type MetricsPage,
  metricsAnswer,
  serveHealth,
} from '../processes/health-server.js';
export {
  type Answer,
  json,
  type PageServer,
  type Pages,
  servePages,
} from '../processes/page-server.js';
