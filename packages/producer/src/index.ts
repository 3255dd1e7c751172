export {
  type Dedupe,
  dedupeOptions,
  type RequestOptions,
  requestOptions,
} from './create/options.js';
export type { Submitted } from './create/submission.js';
export { type Items, isArray } from './items/source.js';
export * from './items.js';
export { type ItemCheck, OpenRequest } from './open/open-request.js';
export { Producer, type ProducerOptions, producerOptions } from './producer.js';
export { type SealOf, type Site, sealRequest, wasRedriven, whyGone } from './seal/seal-request.js';
