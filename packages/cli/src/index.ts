export {
  type FleetHealth,
  WorkerFleet,
  type WorkerFleetOptions,
  type WorkerRestart,
} from './fleet.js';
export { say, showProgress } from './progress-bar.js';
