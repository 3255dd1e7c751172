export {
  type FleetHealth,
  WorkerFleet,
  type WorkerFleetOptions,
  type WorkerRestart,
} from './processes/fleet.js';
export { say, showProgress } from './terminal/progress-bar.js';
