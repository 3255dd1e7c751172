import { Session as Inspector } from 'node:inspector/promises';
import { difference, redisFigures } from './redis-figures.js';
import type { Cost, ProfileReport } from './run-order.js';
import type { Stage } from './stage.js';

/** A run under V8's profiler, which covers the same part as a measurement. */
export async function profileRun(stage: Stage): Promise<ProfileReport> {
  await stage.warmUp();
  const payloads = stage.payloads();
  const session = await stage.openSession();
  const inspector = new Inspector();
  inspector.connect();
  await inspector.post('Profiler.enable');
  await inspector.post('Profiler.start');
  const submitting = await costOf(stage, () => session.submit(payloads));
  const working = await costOf(stage, async () => {
    await session.startWorker();
    await stage.readResults(session);
  });
  const { profile } = await inspector.post('Profiler.stop');
  await session.close();
  return { kind: 'profile', submitting, working, cpuProfile: profile };
}

async function costOf({ probe }: Stage, work: () => Promise<void>): Promise<Cost> {
  const before = await redisFigures(probe);
  const cpuBefore = process.cpuUsage();
  await work();
  const cpu = process.cpuUsage(cpuBefore);
  const redis = difference(before, await redisFigures(probe));
  return { clientCpuMicros: cpu.user + cpu.system, redis };
}
