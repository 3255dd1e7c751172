export { dashboard } from './plugin.js';
export { type Served, type ServeOptions, serveDashboard } from './serve.js';
export type { DashboardOptions, Masked, Visitor } from './shape/options.js';
