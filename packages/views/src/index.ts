/*
 * What is shown of queues, without a web server: `piecework top` reads it as the page does. It is for packages of
 * Piecework, and may change with any version.
 */

export { Beside, type BesideQueues } from './data/beside.js';
export { ROUND_MS } from './data/part.js';
export { Addresses, type Masked, Privacy, type PrivacyOptions } from './data/private.js';
export { type OnProblem, seldom } from './data/problems.js';
export { PATIENCE_MS, QueueSource } from './data/queue-source.js';
export { isGone } from './data/request-index.js';
export type { Chart } from './data/samples.js';
export { type Query, SORTS, type Sort, STATES, type State } from './data/search.js';
export type * from './shape/views.js';
