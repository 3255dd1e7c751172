// One consumer process: a worker that counts what it handled.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'piecework';
import { runChild } from './counted-child.mjs';

let handled = 0;

async function consume({ redis, queue, slots, handlerMs }, stop) {
  const worker = new Worker({
    redis,
    queue,
    concurrency: slots,
    handler: async (_payload, { signal }) => {
      if (handlerMs > 0) await sleep(handlerMs, undefined, { signal });
      handled += 1;
    },
  });
  try {
    await worker.start();
    if (!stop.aborted) await once(stop, 'abort');
  } finally {
    await worker.close({ timeoutMs: 30_000 });
  }
}

await runChild(consume, () => handled);
