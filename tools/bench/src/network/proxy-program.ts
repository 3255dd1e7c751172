import { connect, createServer, type Socket } from 'node:net';
import type { ProxyOrder } from './delaying-proxy.js';

/*
 * A TCP proxy that passes every chunk on after a delay, in each direction. It runs in a process of its own.
 *
 * Node's timers are too coarse for a delay of 1 ms. While a chunk waits, the loop sleeps in steps of 0.1 ms instead and
 * reads the sockets after each; while none waits, it sleeps until a socket has data.
 */
const STEP_MS = 0.1;

// The parent has ended: nobody needs the proxy.
process.on('disconnect', () => process.exit(1));

const { host, port, delayMs } = JSON.parse(process.argv[2] ?? '') as ProxyOrder;
const sleeper = new Int32Array(new SharedArrayBuffer(4));

interface Chunk {
  readonly dueMs: number;
  readonly to: Socket;
  /** Undefined: the other side has ended. */
  readonly data: Buffer | undefined;
}

/** In the order of arrival, which is that of their times. */
const waiting: Chunk[] = [];

function passOn(to: Socket, data?: Buffer): void {
  waiting.push({ dueMs: performance.now() + delayMs, to, data });
  if (waiting.length === 1) setImmediate(step);
}

function step(): void {
  Atomics.wait(sleeper, 0, 0, STEP_MS);
  const now = performance.now();
  const due = waiting.findIndex(({ dueMs }) => dueMs > now);
  const ready = due < 0 ? waiting.splice(0) : waiting.splice(0, due);
  for (const { to, data } of ready) {
    if (to.destroyed) continue;
    if (data) to.write(data);
    else to.end();
  }
  if (waiting.length > 0) setImmediate(step);
}

const server = createServer((near) => {
  const far = connect({ host, port });
  for (const [from, to] of [
    [near, far],
    [far, near],
  ] as const) {
    from.setNoDelay(true);
    from.on('data', (data) => passOn(to, data));
    from.on('end', () => passOn(to));
    from.on('error', () => to.destroy());
  }
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.(typeof address === 'object' ? address?.port : undefined);
});
