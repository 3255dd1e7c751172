// A worker whose password is in a file that others rewrite. Some of its handlers block its event loop.
//   { url, queue, file, leaseMs, blockMs, blockEvery }
import { readFile } from 'node:fs/promises';
import { Worker } from 'piecework';

const { url, queue, file, leaseMs, blockMs, blockEvery } = JSON.parse(process.argv[2]);
const worker = new Worker({
  redis: { url, credentials: async () => JSON.parse(await readFile(file, 'utf8')) },
  queue,
  leaseMs,
  concurrency: 4,
  handler: async (n) => {
    if (n % blockEvery === 0) {
      const end = performance.now() + blockMs;
      while (performance.now() < end);
    } else await new Promise((resolve) => setTimeout(resolve, 20));
    console.log(JSON.stringify({ ran: n }));
    return n;
  },
});
await worker.start();
console.log(JSON.stringify({ started: true }));
