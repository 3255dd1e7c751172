export {
  type FleetHealth,
  WorkerFleet,
  type WorkerFleetOptions,
  type WorkerRestart,
} from './processes/fleet.js';
export { say } from './terminal/print.js';
export { showProgress } from './terminal/progress-bar.js';
