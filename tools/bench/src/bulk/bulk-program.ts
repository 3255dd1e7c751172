import { answerWords } from '../child-program.js';
import { until } from '../fixture/until.js';
import { makePayloads } from '../payloads.js';
import { Tally } from '../tally.js';
import { type BulkQueue, bulkContenders } from './bulk-contender.js';
import type { BulkOrder, BulkReport, BulkWord } from './bulk-order.js';

/*
 * One run of a contender: adds everything at the word `add`, works it off at the word `work`.
 */
await answerWords<BulkOrder, BulkWord>(async (order) => {
  const contender = bulkContenders[order.contender];
  const warm = await contender.open(order.redis, `${order.queue}-warm-up`);
  await add(warm, order, order.warmUpUnits);
  await work(warm, order, order.warmUpUnits);
  await warm.close();
  const queue = await contender.open(order.redis, order.queue);
  return {
    answers: {
      add: () => measured(() => add(queue, order, order.units)),
      work: () => measured(() => work(queue, order, order.units)),
    },
    close: () => queue.close(),
  };
});

async function measured(phase: () => Promise<number>): Promise<BulkReport> {
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  const endMs = await phase();
  const { user, system } = process.cpuUsage(cpuBefore);
  return { elapsedMs: endMs - startMs, cpuMicros: user + system };
}

/** @returns when the last unit was added */
async function add(queue: BulkQueue, order: BulkOrder, units: number): Promise<number> {
  const { unitSize, callers, payloadBytes } = order;
  const payloads = makePayloads(units * unitSize, payloadBytes);
  let next = 0;
  const call = async () => {
    while (next < units) {
      next += 1;
      await queue.add(payloads.slice((next - 1) * unitSize, next * unitSize));
    }
  };
  await Promise.all(Array.from({ length: Math.min(callers, units) }, call));
  return performance.now();
}

/** @returns when the last handler ended. @throws Error if a handler ran twice, or not at all */
async function work(queue: BulkQueue, order: BulkOrder, units: number): Promise<number> {
  const tally = new Tally(units * order.unitSize);
  let endMs = 0;
  const worker = await queue.startWorker(order.slots, async ({ n }) => {
    tally.add(n);
    endMs = performance.now();
    return n;
  });
  await until(async () => tally.count === tally.expected && (await queue.isDone()));
  await worker.close();
  tally.check();
  return endMs;
}
