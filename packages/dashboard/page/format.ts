export * from '../src/shape/format.js';
