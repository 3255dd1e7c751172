export { OpenRequest } from './open-request.js';
export { type RequestOptions, requestOptions } from './options.js';
export {
  type Items,
  Producer,
  type ProducerOptions,
  producerOptions,
  type Submitted,
} from './producer.js';
export * as split from './split.js';
