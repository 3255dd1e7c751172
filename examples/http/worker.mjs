// The worker of the recipes. Start as many of them as you like.
//
//   REDIS_URL=redis://localhost:6379 node examples/http/worker.mjs
import { Worker } from 'piecework';
import { countWords, words } from './task.mjs';

const redis = process.env.REDIS_URL ?? 'redis://localhost:6379';
const worker = new Worker({ redis, concurrency: 50, handlers: [countWords.handler(words)] });
// SIGTERM lets running handlers end, for 30 s at most.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => worker.close());
try {
  await worker.start();
  console.error(`worker ${worker.id} serves ${redis}`);
} catch (error) {
  console.error(`worker: ${error.message}`);
  process.exitCode = 1;
  await worker.close();
}
