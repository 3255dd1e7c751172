export { type FleetHealth, WorkerFleet, type WorkerFleetOptions } from './fleet.js';
export { say, showProgress } from './progress-bar.js';
