import { setTimeout as pause } from 'node:timers/promises';
import type { RedisInput } from '@piecework/protocol';
import { Worker } from 'piecework';
import { CallCounter, type Counts } from './call-counter.js';
import { seeded } from './random.js';

/*
 * One worker process of a real run: `start` counts from there on, `stop` answers what was counted.
 */
export interface WorkerOrder {
  readonly redis: RedisInput;
  readonly queue: string;
  readonly concurrency: number;
  readonly quantumMs: number;
  readonly handlerMs: number;
  readonly seed: number;
}

export interface WorkerCount {
  readonly counts: Counts;
  readonly cpuMicros: number;
}

// The parent is gone: nothing of this run is wanted any more.
process.on('disconnect', () => process.exit(1));

const order = JSON.parse(process.argv[2] ?? '') as WorkerOrder;
const { redis, queue, concurrency, quantumMs, handlerMs } = order;
const counter = new CallCounter();
counter.start();
const random = seeded(order.seed);
const handler = (n: number) =>
  handlerMs === 0 ? n : pause(handlerMs * (0.5 + random())).then(() => n);
const worker = await new Worker({ redis, queue, concurrency, quantumMs, handler }).start();
let cpu = process.cpuUsage();

process.on('message', async (message) => {
  if (message === 'start') {
    counter.counts = {};
    cpu = process.cpuUsage();
    process.send?.('started');
    return;
  }
  const { user, system } = process.cpuUsage(cpu);
  const count: WorkerCount = { counts: { ...counter.counts }, cpuMicros: user + system };
  await worker.close();
  process.send?.(count, () => process.exit(0));
});
process.send?.('ready');
