// A program that its user bundles, or runs on another runtime: a worker whose handler blocks the event loop for longer
// than the lease, while another process of the same program is ready to take the work over. Says how often the handler
// ran in both. No await outside a function, which a bundle in CommonJS cannot have.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Piecework, Worker } from 'piecework';

const LEASE_MS = 30_000;
const BLOCK_MS = 40_000;
const redis = process.env.REDIS_URL;
const [queue, isOther] = [process.argv[2], process.argv[3] === 'other'];

/** Another process with a worker of this queue, which has started. */
async function other() {
  const args = [process.argv[1], queue, 'other'];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (text) => {
    said += text;
  });
  while (!said.includes('started')) await once(child.stdout, 'data');
  return {
    said: () => said,
    async end() {
      child.stdin.end();
      await once(child, 'exit');
    },
  };
}

async function main() {
  let beside;
  const handler = async () => {
    console.log('run');
    if (isOther) return;
    beside = await other();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCK_MS);
  };
  const worker = new Worker({ redis, queue, handler, leaseMs: LEASE_MS });
  await worker.start();
  if (isOther) {
    console.log('started');
    await once(process.stdin.resume(), 'end');
    return worker.close();
  }
  const pw = new Piecework({ redis, queue });
  const request = await pw.submit([1]);
  const { status } = await request.completion();
  await beside.end();
  const runs = 1 + beside.said().split('run').length - 1;
  console.log(`${status}, runs: ${runs}`);
  await Promise.all([pw.close(), worker.close()]);
}

void main();
