export { LineSplitter, type LineSplitterOptions } from './line-splitter.js';
export { type ItemCheck, OpenRequest } from './open-request.js';
export { type Dedupe, dedupeOptions, type RequestOptions, requestOptions } from './options.js';
export {
  Producer,
  type ProducerOptions,
  producerOptions,
  type Submitted,
} from './producer.js';
export { type SealOf, type Site, sealIn, whyGone } from './seal-in.js';
export { type Items, isArray } from './source.js';
export * as split from './split.js';
export { Utf8Check } from './utf8-check.js';
