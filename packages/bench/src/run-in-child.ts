import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { nanoid } from 'nanoid';
import type { Session, Setting } from './contender.js';
import { contenders } from './contenders/index.js';
import { makePayloads, type Payload } from './payloads.js';
import {
  connectedClients,
  difference,
  type RedisFigures,
  redisFigures,
  usedMemory,
} from './redis-figures.js';
import type { RunOrder, RunReport } from './run-order.js';
import { countSentCommands, sentCommands } from './sent-commands.js';
import { Tally } from './tally.js';

/*
 * One run of one contender, in a process of its own: producer and worker side by side, so that this
 * process's CPU time is all that the client side costs. A warm-up on another queue comes first. The
 * clock runs from before the submission until the last result is read and every one was seen.
 */
const order = JSON.parse(process.argv[2] ?? '') as RunOrder;
const { host, port, count, payloadBytes, concurrency, budgetMs } = order;
const contender = contenders[order.contender];
const probe = new Redis({ host, port });

// The parent is gone: nothing of this run is wanted any more.
process.on('disconnect', () => process.exit(1));

let handled = 0;
async function handle(payload: Payload): Promise<number> {
  handled += 1;
  return payload.n;
}

function openSession(): Promise<Session> {
  const queue = `bench-${nanoid(6)}`;
  const { pieceworkRoot } = order;
  const setting: Setting = { host, port, queue, concurrency, pieceworkRoot, handle };
  return contender.open(setting);
}

async function runThrough(session: Session, payloads: readonly Payload[]): Promise<void> {
  const tally = new Tally(payloads.length);
  await session.submit(payloads);
  await session.readResults(tally);
  tally.check();
}

async function warmUp(): Promise<void> {
  const session = await openSession();
  await session.startWorker();
  await runThrough(session, makePayloads(order.warmUpCount, payloadBytes));
  await session.close();
}

/** Resolves with false when the budget ended first. */
async function withinBudget(work: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const budget = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), budgetMs);
  });
  work.catch(() => {});
  const inTime = await Promise.race([work.then(() => true), budget]);
  clearTimeout(timer);
  return inTime;
}

async function measureSpeed(): Promise<RunReport> {
  await warmUp();
  const payloads = makePayloads(count, payloadBytes);
  const session = await openSession();
  await session.startWorker();
  handled = 0;
  const redisBefore = await redisFigures(probe);
  const sentBefore = sentCommands();
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  const inTime = await withinBudget(runThrough(session, payloads));
  const elapsedMs = performance.now() - startMs;
  const cpu = process.cpuUsage(cpuBefore);
  const sent = sentCommands() - sentBefore;
  const redis: RedisFigures = difference(redisBefore, await redisFigures(probe));
  if (inTime) await session.close();
  return {
    kind: 'speed',
    inTime,
    finished: inTime ? count : handled,
    elapsedMs,
    clientCpuMicros: cpu.user + cpu.system,
    sent,
    redis,
  };
}

/** What waits in Redis costs what is left of it when its producer, and its buffers, have gone. */
async function measureMemory(): Promise<RunReport> {
  const others = await connectedClients(probe);
  const submitAndLeave = async (payloads: Payload[]) => {
    const session = await openSession();
    await session.submit(payloads);
    await session.close();
    while ((await connectedClients(probe)) > others) await sleep(5);
  };
  // Scripts are loaded at their first call.
  await submitAndLeave(makePayloads(1, payloadBytes));
  const before = await usedMemory(probe);
  await submitAndLeave(makePayloads(count, payloadBytes));
  return { kind: 'memory', waitingBytes: (await usedMemory(probe)) - before };
}

countSentCommands();
const report = await (order.kind === 'speed' ? measureSpeed() : measureMemory());
process.send?.(report, () => process.exit(0));
