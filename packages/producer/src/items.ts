/// <reference types="node" preserve="true" />
/**
 * `@piecework/producer/items`: what splits an input into items, and nothing that talks to Redis. The command line checks an
 * input by it before it loads a client.
 */
export { LineSplitter, type LineSplitterOptions } from './items/line-splitter.js';
export * as split from './items/split.js';
export { Utf8Check } from './items/utf8-check.js';
