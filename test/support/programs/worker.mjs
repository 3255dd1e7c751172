// A worker process. Its only argument is JSON: { options, handle, log }.
//   handle: { minMs, maxMs } runs that long, and then throws with `fail: true`;
//     { hold: true } runs until it is told to stop; { blockMs } holds up the event loop so long
//   log: a file that gets `start <request> <index> <ns>` and `end …`, by a clock that all processes share
// Says { ready: <boot id> } when it waits for work; SIGTERM closes it, and then it ends by itself.
import { openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from '@piecework/worker';

const { options, handle, log } = JSON.parse(process.argv[2]);
const file = log ? openSync(log, 'a') : undefined;

function note(what, { requestId, index }) {
  if (file === undefined) return;
  writeSync(file, `${what} ${requestId} ${index} ${process.hrtime.bigint()}\n`);
}

async function handler(payload, context) {
  note('start', context);
  if (handle.hold) {
    await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
    note('aborted', context);
    throw context.signal.reason;
  }
  if (handle.blockMs) {
    const end = performance.now() + handle.blockMs;
    while (performance.now() < end);
    note(context.signal.aborted ? 'aborted' : 'end', context);
    if (handle.fail) throw new Error('failed late');
    return payload;
  }
  await sleep(handle.minMs + Math.random() * (handle.maxMs - handle.minMs));
  note('end', context);
  if (handle.fail) throw new Error('failed late');
  return payload;
}

const worker = new Worker({ ...options, handler });
process.on('SIGTERM', () => void worker.close({ timeoutMs: handle.hold ? 0 : 30_000 }));
await worker.start();
console.log(JSON.stringify({ ready: worker.id }));
