/** `piecework/health`: the health server alone. The parent of worker processes loads it without a client of Redis. */
export {
  type Health,
  type HealthServer,
  serveHealth,
} from '../processes/health-server.js';
