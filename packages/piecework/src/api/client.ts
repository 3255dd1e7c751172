/**
 * `piecework/client`: what submits, awaits, reads and controls requests, without workers and queues. Commands load it
 * in two thirds of the time of the whole package.
 */
export { type OpenHandle, Piecework, type PieceworkOptions } from './piecework.js';
export type { RequestHandle } from './request-handle.js';
