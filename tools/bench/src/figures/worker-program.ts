import { setTimeout as sleep } from 'node:timers/promises';
import { Worker as BullWorker } from 'bullmq';
import { Redis } from 'ioredis';
import { Worker } from 'piecework';
import { monotonicMs } from '../monotonic.js';
import { countSentCommands, firstScriptAfter, sent } from '../sent-commands.js';
import type { Deed } from './deed.js';
import type { FromWorker, Run, ToWorker, WorkerOrder, WorkerReport } from './worker-report.js';

/*
 * One worker process of a figure: its handler does what the payload says and notes when, and a
 * report is what happened since the last one.
 */
// The parent is gone: nothing of this run is wanted any more.
process.on('disconnect', () => process.exit(1));

const order = JSON.parse(process.argv[2] ?? '') as WorkerOrder;
countSentCommands();

const tell = (message: FromWorker) => process.send?.(message);
let runs: Run[] = [];
let handled = 0;
let pingsMs: number[] = [];
let sentBefore = sent();
let cpuBefore = process.cpuUsage();

async function handle(deed: Deed, requestId: string, signal?: AbortSignal): Promise<number> {
  const startMs = monotonicMs();
  if (order.tells) tell({ kind: 'started', n: deed.n, atMs: startMs });
  if (deed.sleepMs) await sleep(deed.sleepMs);
  if (deed.holds && !signal?.aborted) {
    await new Promise((resolve) => signal?.addEventListener('abort', resolve));
  }
  handled += 1;
  if (order.notes) runs.push({ requestId, n: deed.n, startMs, endMs: monotonicMs() });
  return deed.n;
}

async function startPiecework(): Promise<() => Promise<void>> {
  const { redis, queue, concurrency, options } = order;
  const settings = { redis, queue, concurrency, ...options };
  const workers = Array.from(
    { length: order.workers ?? 1 },
    () =>
      new Worker({
        ...settings,
        handler: (deed, { requestId, signal }) => handle(deed as Deed, requestId, signal),
      }),
  );
  for (const worker of workers) await worker.start();
  return async () => {
    await Promise.all(workers.map((worker) => worker.close({ timeoutMs: 0 })));
  };
}

async function startBullMQ(): Promise<() => Promise<void>> {
  const { hostname: host, port } = new URL(order.redis as string);
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const { concurrency } = order;
  const worker = new BullWorker<Deed>(order.queue, ({ data, id = '' }) => handle(data, id), {
    connection,
    concurrency,
  });
  await worker.waitUntilReady();
  return () => worker.close();
}

async function pingNowAndThen(everyMs: number): Promise<void> {
  const client = new Redis(order.redis as string);
  for (;;) {
    await sleep(everyMs);
    const startMs = performance.now();
    await client.ping();
    pingsMs.push(performance.now() - startMs);
  }
}

function report(): WorkerReport {
  const now = sent();
  const cpu = process.cpuUsage(cpuBefore);
  const lastEndMs = runs.at(-1)?.endMs;
  const whole: WorkerReport = {
    ...{ handled, runs, pingsMs },
    sent: {
      commands: now.commands - sentBefore.commands,
      writes: now.writes - sentBefore.writes,
    },
    cpuMicros: cpu.user + cpu.system,
    lastSettleMs: lastEndMs === undefined ? undefined : firstScriptAfter(lastEndMs),
  };
  [runs, pingsMs, handled, sentBefore, cpuBefore] = [[], [], 0, now, process.cpuUsage()];
  return whole;
}

const close = await (order.kind === 'bullmq' ? startBullMQ() : startPiecework());
if (order.pingEveryMs) void pingNowAndThen(order.pingEveryMs);
process.on('message', async (word: ToWorker) => {
  if (word === 'report') {
    tell({ kind: 'report', report: report() });
    return;
  }
  await close();
  process.exit(0);
});
tell({ kind: 'ready' });
