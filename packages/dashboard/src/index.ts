export type { Masked } from '@piecework/views';
export { dashboard } from './plugin.js';
export { type Served, type ServeOptions, serveDashboard } from './serve.js';
export type { DashboardOptions, Visitor } from './shape/options.js';
