import { nanoid } from 'nanoid';
import { monotonicMs } from '../monotonic.js';
import { makePayloads, type Payload } from '../payloads.js';
import { deal } from './deal.js';
import { fleetContenders } from './fleet-contender.js';
import type { FleetOrder, FleetReport, FromFleet, ToFleet } from './fleet-order.js';
import { handlerTimeMs } from './handler-time.js';
import { HandlerWait } from './handler-wait.js';

/*
 * One process of a fleet. It warms up, says that it is ready, and starts its workers at the word `start`.
 */
/** Handlers take this time at most while the process warms up. */
const WARM_UP_MS = 5;
/** The fleet starts, works and ends so often before. */
const WARM_UP_RUNS = 3;

// The parent has ended: nobody waits for this run.
process.on('disconnect', () => process.exit(1));

const order = JSON.parse(process.argv[2] ?? '') as FleetOrder;
const { redis, queue, slots, handlerMs } = order;
const contender = fleetContenders[order.contender];
const tell = (message: FromFleet) => process.send?.(message);

const waiting = new HandlerWait();

/** What the process has done so far. */
const newTally = () => ({
  firstStartsMs: order.slowness.map((): number | null => null),
  lastEndMs: 0,
  handled: 0,
  handlersMs: 0,
  cpuBefore: process.cpuUsage(),
  ends: [] as [number, number][],
});
let tally = newTally();
let isWarm = false;

async function handle({ n }: Payload, worker: number): Promise<number> {
  const startMs = monotonicMs();
  if (tally.handled === 0 && tally.firstStartsMs.every((each) => each === null)) {
    tally.cpuBefore = process.cpuUsage();
    if (isWarm) tell({ kind: 'first' });
  }
  tally.firstStartsMs[worker] ??= startMs;
  const nominalMs = isWarm ? handlerMs : Math.min(handlerMs, WARM_UP_MS);
  if (nominalMs > 0)
    await waiting.wait(handlerTimeMs(n, nominalMs) * (order.slowness[worker] ?? 1));
  tally.lastEndMs = monotonicMs();
  tally.handlersMs += tally.lastEndMs - startMs;
  tally.handled += 1;
  if (order.notes) tally.ends.push([n, tally.lastEndMs]);
  return n;
}

const startWorkers = (name: string) =>
  Promise.all(
    order.slowness.map((_, worker) =>
      contender.startWorker({
        ...redis,
        ...{ queue: name, slots, handle: (payload) => handle(payload, worker) },
      }),
    ),
  );

/**
 * Compiles the code, loads the scripts, and learns how late timers are. A start and an end make V8 discard code that it
 * had compiled, so there are several of them.
 */
async function warmUp(): Promise<void> {
  const count = Math.ceil(order.warmUpCount / WARM_UP_RUNS);
  for (let run = 0; run < WARM_UP_RUNS; run += 1) {
    const own = `warm-up-${nanoid(6)}`;
    const producer = await contender.openProducer(redis, own);
    const requests = deal(makePayloads(count, order.payloadBytes), order.requests);
    await producer.submit(requests, slots * order.slowness.length);
    const warming = await startWorkers(own);
    await producer.completion();
    await Promise.all(warming.map((worker) => worker.close()));
    await producer.close();
  }
  tally = newTally();
  isWarm = true;
}

function report(): FleetReport {
  const { cpuBefore, ...rest } = tally;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { ...rest, cpuMicros: user + system };
}

let workers: Awaited<ReturnType<typeof startWorkers>> = [];
process.on('message', async (word: ToFleet) => {
  if (word === 'start') workers = await startWorkers(queue);
  if (word === 'report') tell({ kind: 'report', report: report() });
  if (word !== 'close') return;
  await Promise.all(workers.map((worker) => worker.close()));
  process.exit(0);
});
await warmUp();
tell({ kind: 'ready' });
