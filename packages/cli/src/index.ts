export { type FleetHealth, WorkerFleet, type WorkerFleetOptions } from './fleet.js';
export { showProgress } from './progress-bar.js';
