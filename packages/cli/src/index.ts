export {
  type FleetHealth,
  WorkerFleet,
  type WorkerFleetOptions,
  type WorkerRestart,
} from './fleet.js';
export { showProgress } from './progress-bar.js';
