export {
  type FleetHealth,
  WorkerFleet,
  type WorkerFleetOptions,
  type WorkerRestart,
} from './processes/fleet.js';
export { showProgress } from './terminal/progress-bar.js';
export { say } from './terminal/say.js';
