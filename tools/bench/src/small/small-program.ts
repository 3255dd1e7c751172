import { answerWords } from '../child-program.js';
import { countSentCommands, type Sent, sent } from '../sent-commands.js';
import { callAll } from './call-all.js';
import { smallContenders } from './small-contender.js';
import type { SmallOrder, SmallReport, SmallWord } from './small-order.js';

/** First of rows that make one request at a time, too: one after the other, the warm-up would take minutes. */
const WARM_UP_AT_ONCE = 20;
/** Then those go on one at a time, this many times as often as is measured: other code runs, which V8 has to compile. */
const WARM_UP_AS_MEASURED = 5;

/*
 * One process of a row of `small-request`: the callers, the worker, or both.
 */
await answerWords<SmallOrder, SmallWord>(async (order) => {
  if (order.counts) countSentCommands();
  const contender = smallContenders[order.contender];
  const { redis, queue, slots } = order;
  const worker = order.works ? await contender.startWorker(redis, queue, slots) : undefined;
  const caller = order.calls ? await contender.openCaller(redis, queue) : undefined;
  if (caller) await callAll(caller, { ...order, atOnce: WARM_UP_AT_ONCE }, order.warmUpCount);
  if (caller && order.atOnce < WARM_UP_AT_ONCE)
    await callAll(caller, order, WARM_UP_AS_MEASURED * order.count);

  let cpuBefore = process.cpuUsage();
  let sentBefore: Sent = sent();
  let elapsedMs = 0;
  let latenciesMs: number[] = [];
  return {
    answers: {
      async begin() {
        cpuBefore = process.cpuUsage();
        sentBefore = sent();
      },
      async call() {
        const startMs = performance.now();
        if (caller) latenciesMs = await callAll(caller, order, order.count);
        elapsedMs = performance.now() - startMs;
      },
      async report(): Promise<SmallReport> {
        const { user, system } = process.cpuUsage(cpuBefore);
        const { commands, writes, keys } = sent();
        return {
          ...{ elapsedMs, latenciesMs, cpuMicros: user + system },
          sent: {
            commands: commands - sentBefore.commands,
            writes: writes - sentBefore.writes,
            keys: keys - sentBefore.keys,
          },
        };
      },
    },
    async close() {
      await caller?.close();
      await worker?.close();
    },
  };
});
