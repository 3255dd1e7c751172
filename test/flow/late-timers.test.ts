import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { within } from '@piecework/protocol';
import { describe, expect, test } from 'vitest';

/** Answers one message, and notes in `workerData` that it did. */
const ANSWERS = `
const { parentPort, workerData } = require('node:worker_threads');
parentPort.once('message', () => {
  parentPort.postMessage('answer');
  Atomics.store(workerData, 0, 1);
  Atomics.notify(workerData, 0);
});
`;

describe('a call with a bound', () => {
  test('is answered if its answer arrived while the event loop stood still beyond the bound', async () => {
    const answered = new Int32Array(new SharedArrayBuffer(4));
    const worker = new Worker(ANSWERS, { eval: true, workerData: answered });
    await once(worker, 'online');
    // Behind immediates, Node runs timers first, and reads after that.
    await setImmediate();
    const BOUND_MS = 10;
    const call = once(worker, 'message').then(([message]) => message as string);
    const ended = within(BOUND_MS, call, () => 'late');
    worker.postMessage('ask');
    Atomics.wait(answered, 0, 0);
    // Nobody changes it now: this waits for the time.
    Atomics.wait(answered, 0, 1, 2 * BOUND_MS);
    expect(await ended).toBe('answer');
    await worker.terminate();
  });
});
