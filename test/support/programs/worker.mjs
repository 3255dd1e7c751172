// A worker process. Its only argument is JSON: { options, handle, log, fate }.
//   handle: { minMs, maxMs } runs that long, and then throws with `fail: true`, or `fail: <index>`;
//     { hold: true } runs until it is told to stop; { blockMs } holds up the event loop so long;
//     { told: 'run' or 'block', go } runs, or holds up the event loop, until the file `go` is there;
//     with `checkpoint` it first comes to that one
//   A payload { kill: 'always' } kills this process; { kill: 'alone' } only in its last chance, and
//   holds until then; { kill: 'beside others' } when another handler runs beside it.
//   log: a file that gets `start <request> <index> <ns> <crashes>` and `end …`, by a clock that all
//   processes share
//   fate: { signal, at, when, sha } kills or freezes it at a certain command, see fate.mjs
// Says { ready: <boot id> } when it waits for work; SIGTERM closes it, and then it ends by itself.
import { existsSync, openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from '@piecework/worker';
import { meetFate } from './fate.mjs';

const { options, handle, log, fate } = JSON.parse(process.argv[2]);
if (fate) meetFate(fate, Boolean(options.redis.nodes));
const file = log ? openSync(log, 'a') : undefined;

function note(what, { requestId, index, crashes }) {
  if (file === undefined) return;
  writeSync(file, `${what} ${requestId} ${index} ${process.hrtime.bigint()} ${crashes}\n`);
}

/** Stands still, and the event loop with it. */
function nap() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
}

let running = 0;

async function handler(payload, context) {
  running += 1;
  try {
    return await handled(payload, context);
  } finally {
    running -= 1;
  }
}

async function handled(payload, context) {
  note('start', context);
  if (handle.checkpoint !== undefined) context.checkpoint(handle.checkpoint);
  const { kill } = Object(payload);
  if (kill === 'always' || (kill === 'alone' && context.crashes >= 2))
    process.kill(process.pid, 'SIGKILL');
  if (kill === 'beside others') {
    for (let turn = 0; turn < 10; turn += 1) {
      await sleep(5);
      if (running > 1) process.kill(process.pid, 'SIGKILL');
    }
    return payload;
  }
  if (handle.hold || kill) {
    await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
    note('aborted', context);
    throw context.signal.reason;
  }
  if (handle.told === 'block') while (!existsSync(handle.go)) nap();
  if (handle.told === 'run') while (!existsSync(handle.go)) await sleep(5);
  if (handle.blockMs) {
    const end = performance.now() + handle.blockMs;
    while (performance.now() < end) nap();
  }
  if (handle.blockMs || handle.told) {
    note(context.signal.aborted ? 'aborted' : 'end', context);
    if (handle.fail) throw new Error('failed late');
    return payload;
  }
  await sleep(handle.minMs + Math.random() * (handle.maxMs - handle.minMs));
  note('end', context);
  context.usage({ runs: 1 });
  if (handle.fail === true || handle.fail === context.index) throw new Error('failed late');
  return payload;
}

const worker = new Worker({ ...options, handler });
let closing = false;
process.on('SIGTERM', () => {
  closing = true;
  void worker.close({ timeoutMs: handle.hold ? 0 : 30_000 });
});
// Not awaited: bundles of CommonJS have no await here.
worker.start().then(
  () => console.log(JSON.stringify({ ready: worker.id })),
  (error) => {
    // Told to close before it was up.
    if (!closing) throw error;
  },
);
