import { answerWords } from '../child-program.js';
import { Handlers } from './attempts.js';
import { callAll } from './call-all.js';
import { smallContenders } from './small-contender.js';
import type { SmallOrder, SmallReport, SmallWord } from './small-order.js';

/*
 * One process of a row of `small-request`: the callers, the workers, or both.
 */
await answerWords<SmallOrder, SmallWord>(async (order) => {
  const contender = smallContenders[order.contender];
  const { redis, queue, slots } = order;
  const handlers = new Handlers(order);
  const workers = await Promise.all(
    Array.from({ length: order.works ? order.workers : 0 }, () =>
      contender.startWorker(redis, queue, slots, handlers.handle),
    ),
  );
  const caller = order.calls ? await contender.openCaller(redis, queue, order.attempts) : undefined;
  if (caller) await callAll(caller, order, order.warmUpCount);

  let cpuBefore = process.cpuUsage();
  let elapsedMs = 0;
  let latenciesMs: number[] = [];
  return {
    answers: {
      async begin() {
        cpuBefore = process.cpuUsage();
        handlers.take();
      },
      async call() {
        const startMs = performance.now();
        if (caller) latenciesMs = await callAll(caller, order, order.count);
        elapsedMs = performance.now() - startMs;
      },
      async report(): Promise<SmallReport> {
        const { user, system } = process.cpuUsage(cpuBefore);
        const attempts = handlers.take();
        return { elapsedMs, latenciesMs, cpuMicros: user + system, attempts };
      },
    },
    async close() {
      await caller?.close();
      await Promise.all(workers.map((worker) => worker.close()));
    },
  };
});
