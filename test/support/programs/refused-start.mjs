// A worker whose start is refused, in a program that does nothing else then: it has to end by itself.
import { Redis } from 'ioredis';
import { Worker } from '../../../packages/worker/dist/index.js';

const { redis, isPassedIn, ...options } = JSON.parse(process.argv[2]);
const client = isPassedIn ? new Redis(redis, { retryStrategy: null }) : undefined;
const worker = new Worker({ redis: client ?? redis, handler: () => 1, ...options });
const codes = [];
for (let i = 0; i < 2; i += 1) {
  await worker.start().catch(({ code, message }) => codes.push(`${code} ${message}`));
}
const { state } = worker.health();
// A client of the caller goes on.
const answer = client && (await client.ping());
client?.disconnect();
console.log(JSON.stringify({ codes, state, answer }));
