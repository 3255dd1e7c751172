import { workerData } from 'node:worker_threads';
import type { RenewalOrder } from './renewal-program.js';

/*
 * The start of the renewal thread, and the entry of its bundle (scripts/build-thread.mjs). Its program runs the client
 * of Redis a second time, which takes most of the CPU time of the thread. A worker that ends before that has saved it.
 * The wait is one beat of the main loop at most: the program cannot take the loop for blocked any earlier.
 */
setTimeout(
  () => {
    void import('./renewal-program.js');
  },
  (workerData as RenewalOrder).loadAfterMs,
);
