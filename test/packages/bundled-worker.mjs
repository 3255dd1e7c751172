// A program that its user bundles: a worker whose handler blocks the event loop for three leases, and its request. Says
// how often the handler ran and whether the worker has its thread. No await outside a function, which a
// bundle in CommonJS cannot have.
import { Piecework, Worker } from 'piecework';

const LEASE_MS = 4_000;
const redis = process.env.REDIS_URL;
const queue = `bundled-${process.pid}`;
let runs = 0;
const block = () => {
  runs += 1;
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3 * LEASE_MS);
};

async function main() {
  const worker = new Worker({ redis, queue, handler: block, leaseMs: LEASE_MS });
  await worker.start();
  const pw = new Piecework({ redis, queue });
  const request = await pw.submit([1]);
  const { status } = await request.completion();
  const { why } = worker.health();
  console.log(`${status}, runs: ${runs}, health: ${why.length === 0 ? 'ready' : why}`);
  await Promise.all([pw.close(), worker.close()]);
}

void main();
