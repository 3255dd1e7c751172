/*
 * What a view of queues is made of, without a web server: `piecework top` reads it as the page does. It is for packages
 * of Piecework, and may change with any version.
 */

export { Privacy } from './data/private.js';
export { QueueSource } from './data/queue-source.js';
export { isGone } from './data/request-index.js';
export type { Chart } from './data/samples.js';
export { type Query, SORTS, type Sort, STATES, type State } from './data/search.js';
export { doneOf } from './shape/counts.js';
export type {
  ErrorRow,
  ErrorsView,
  OverviewView,
  Point,
  RequestsView,
  RequestView,
  Row,
  Verdict,
  WorkersView,
  WorkerView,
} from './shape/views.js';
