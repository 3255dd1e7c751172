export {
  type Dedupe,
  dedupeOptions,
  type RequestOptions,
  requestOptions,
} from './create/options.js';
export type { Submitted } from './create/submission.js';
export { LineSplitter, type LineSplitterOptions } from './items/line-splitter.js';
export { type Items, isArray } from './items/source.js';
export * as split from './items/split.js';
export { Utf8Check } from './items/utf8-check.js';
export { type ItemCheck, OpenRequest } from './open/open-request.js';
export { Producer, type ProducerOptions, producerOptions } from './producer.js';
export { type SealOf, type Site, sealRequest, wasRedriven, whyGone } from './seal/seal-request.js';
