import { nanoid } from 'nanoid';
import { monotonicMs } from '../monotonic.js';
import { makePayloads, type Payload } from '../payloads.js';
import { fleetContenders } from './fleet-contender.js';
import type { FleetOrder, FleetReport, FromFleet, ToFleet } from './fleet-order.js';
import { handlerTimeMs } from './handler-time.js';
import { HandlerWait } from './handler-wait.js';

/*
 * One process of a fleet. It warms up, says that it is ready, and starts its workers at the word `start`.
 */
// The parent has ended: nobody waits for this run.
process.on('disconnect', () => process.exit(1));

const order = JSON.parse(process.argv[2] ?? '') as FleetOrder;
const { redis, queue, slots, handlerMs } = order;
const contender = fleetContenders[order.contender];
const tell = (message: FromFleet) => process.send?.(message);

const waiting = new HandlerWait();
const firstStartsMs: (number | null)[] = order.slowness.map(() => null);
let lastEndMs = 0;
let handled = 0;
let handlersMs = 0;
let cpuBefore = process.cpuUsage();
const ends: [number, number][] = [];

async function handle({ n }: Payload, worker: number): Promise<number> {
  const startMs = monotonicMs();
  if (handled === 0 && firstStartsMs.every((each) => each === null)) {
    cpuBefore = process.cpuUsage();
    tell({ kind: 'first' });
  }
  firstStartsMs[worker] ??= startMs;
  if (handlerMs > 0)
    await waiting.wait(handlerTimeMs(n, handlerMs) * (order.slowness[worker] ?? 1));
  lastEndMs = monotonicMs();
  handlersMs += lastEndMs - startMs;
  handled += 1;
  if (order.notes) ends.push([n, lastEndMs]);
  return n;
}

/** Compiles the code, loads the scripts, and learns how late timers are. */
async function warmUp(): Promise<void> {
  const own = `warm-up-${nanoid(6)}`;
  const producer = await contender.openProducer(redis, own);
  const wait = async ({ n }: Payload) => {
    await waiting.wait(2);
    return n;
  };
  await producer.submit([makePayloads(order.warmUpCount, order.payloadBytes)], slots);
  const worker = await contender.startWorker({ ...redis, queue: own, slots, handle: wait });
  await producer.completion();
  await worker.close();
  await producer.close();
}

const startWorkers = () =>
  Promise.all(
    order.slowness.map((_, worker) =>
      contender.startWorker({
        ...redis,
        ...{ queue, slots, handle: (payload) => handle(payload, worker) },
      }),
    ),
  );

function report(): FleetReport {
  const { user, system } = process.cpuUsage(cpuBefore);
  return { handled, firstStartsMs, lastEndMs, handlersMs, cpuMicros: user + system, ends };
}

let workers: Awaited<ReturnType<typeof startWorkers>> = [];
process.on('message', async (word: ToFleet) => {
  if (word === 'start') workers = await startWorkers();
  if (word === 'report') tell({ kind: 'report', report: report() });
  if (word !== 'close') return;
  await Promise.all(workers.map((worker) => worker.close()));
  process.exit(0);
});
await warmUp();
tell({ kind: 'ready' });
