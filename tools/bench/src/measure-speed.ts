import { difference, redisFigures } from './redis-figures.js';
import type { SpeedReport } from './run-order.js';
import { sent as sentSoFar } from './sent-commands.js';
import type { Stage } from './stage.js';

/**
 * Measures from before the submission until the last result is read. The worker is started before.
 */
export async function measureSpeed(stage: Stage): Promise<SpeedReport> {
  const { order, probe } = stage;
  await stage.warmUp();
  const payloads = stage.payloads();
  const session = await stage.openSession();
  await session.startWorker();
  const redisBefore = await redisFigures(probe);
  const sentBefore = sentSoFar();
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  const work = session.submit(payloads).then(() => stage.readResults(session));
  const inTime = await withinBudget(work, order.budgetMs);
  const elapsedMs = performance.now() - startMs;
  const cpu = process.cpuUsage(cpuBefore);
  const sent = sentSoFar().commands - sentBefore.commands;
  const writes = sentSoFar().writes - sentBefore.writes;
  const finished = inTime ? order.count : stage.handled;
  const redis = difference(redisBefore, await redisFigures(probe));
  if (inTime) await session.close();
  const clientCpuMicros = cpu.user + cpu.system;
  return { kind: 'speed', inTime, finished, elapsedMs, clientCpuMicros, sent, writes, redis };
}

/** Resolves with false if the time budget ended first. */
async function withinBudget(work: Promise<void>, budgetMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const budget = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), budgetMs);
  });
  try {
    return await Promise.race([work.then(() => true as const), budget]);
  } finally {
    clearTimeout(timer);
  }
}
