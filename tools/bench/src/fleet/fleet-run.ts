import { max, min, sum } from 'simple-statistics';
import type { Fixture } from '../fixture/fixture.js';
import { makePayloads } from '../payloads.js';
import { difference, type RedisFigures, redisFigures } from '../redis-figures.js';
import { deal } from './deal.js';
import type { FleetProducer } from './fleet-contender.js';
import { type Address, type FleetContenderName, fleetContenders } from './fleet-contender.js';
import type { FleetOrder, FleetReport } from './fleet-order.js';
import { FleetProcess } from './fleet-process.js';
import { handlerTimeMs } from './handler-time.js';
import { perfectMakespanMs } from './perfect-sharing.js';
import type { Shape } from './shape.js';

/** So many processes are started at the same time. */
const AT_ONCE = 4;
/** After so many, V8 has compiled most of what a row runs: a fleet that runs for hours pays for that once. */
const WARM_UP = 30_000;

export interface FleetRunOptions {
  /** Where the workers find Redis. @default the server of the fixture */
  readonly redis?: Address;
  /** How much slower than the others the first worker is. @default 1 */
  readonly firstSlowness?: number;
  /** Records when each handler ended. */
  readonly notes?: boolean;
  /** Awaited beside the work; begins before it. */
  readonly beside?: (producer: FleetProducer) => Promise<unknown>;
}

/** What one run of a fleet took, per sub-request where it is a cost. */
export interface FleetRun {
  readonly handled: number;
  /** From the first start of a handler to the last end of one. */
  readonly elapsedMs: number;
  readonly perSecond: number;
  /** What perfect sharing of the same handlers by the same workers takes. */
  readonly perfectMs: number;
  /** Part of the time of all slots in which a handler ran. */
  readonly busy: number;
  /** From the first worker's first sub-request to the last worker's. */
  readonly rampMs: number;
  /** Measured mean time of a handler. */
  readonly handlerMs: number;
  readonly redisMicros: number;
  readonly clientMicros: number;
  readonly scripts: number;
  /** With those that scripts call. */
  readonly commands: number;
  readonly ends: FleetReport['ends'];
}

type FleetShape = Omit<Shape, 'targets'>;

/** Submits everything, starts the fleet, and measures until all is done. */
export async function runFleet(
  fixture: Fixture,
  contender: FleetContenderName,
  shape: FleetShape,
  count: number,
  options: FleetRunOptions = {},
): Promise<FleetRun> {
  const { server, settings } = fixture;
  const queue = fixture.newQueue();
  const producer = await fleetContenders[contender].openProducer(server, queue);
  const orders = ordersOf(fixture, { contender, queue }, shape, options);
  const processes: FleetProcess[] = [];
  try {
    while (processes.length < orders.length) {
      const next = orders.slice(processes.length, processes.length + AT_ONCE);
      processes.push(...(await Promise.all(next.map((order) => FleetProcess.start(order)))));
    }
    // Numbers go through all requests, so that each sub-request has its own.
    const requests = deal(makePayloads(count, settings.payloadBytes), shape.requests);
    await producer.submit(requests, shape.workers * shape.slots);
    const completion = producer.completion();
    const beside = options.beside?.(producer);
    const begun = Promise.race(processes.map(({ first }) => first));
    const before = begun.then(() => redisFigures(server.probe));
    for (const each of processes) each.startWorkers();
    await Promise.race([completion, ...processes.map(({ failure }) => failure)]);
    const cost = difference(await before, await redisFigures(server.probe));
    await beside;
    const reports = await Promise.all(processes.map((each) => each.report()));
    const run = summarise(orders, reports, cost);
    if (run.handled === count) return run;
    throw new Error(`${contender}: ${run.handled} handlers ran for ${count} sub-requests`);
  } finally {
    await Promise.all(processes.map((each) => each.close()));
    await producer.close();
  }
}

/** One for each process. */
function ordersOf(
  fixture: Fixture,
  whose: Pick<FleetOrder, 'contender' | 'queue'>,
  { workers, slots, handlerMs, requests }: FleetShape,
  { redis: { host, port } = fixture.server, firstSlowness = 1, notes = false }: FleetRunOptions,
): FleetOrder[] {
  const slowness = Array.from({ length: workers }, (_, i) => (i === 0 ? firstSlowness : 1));
  const warmUp = fixture.of(WARM_UP, 10_000, 50);
  const groups = deal(slowness, Math.min(workers, fixture.choice.processes));
  return groups.map((group) => ({
    ...whose,
    ...{ redis: { host, port }, slowness: group, slots, handlerMs, requests, notes },
    payloadBytes: fixture.settings.payloadBytes,
    warmUpCount: Math.max(fixture.of(3_000, 2_000, 50), Math.round(warmUp / groups.length)),
  }));
}

function summarise(
  orders: readonly FleetOrder[],
  reports: readonly FleetReport[],
  cost: RedisFigures,
): FleetRun {
  const handled = sum(reports.map((report) => report.handled));
  const handlersMs = sum(reports.map((report) => report.handlersMs));
  const starts = reports.flatMap(({ firstStartsMs }) => firstStartsMs);
  const startMs = min(starts.filter((ms) => ms !== null));
  const elapsedMs = max(reports.map(({ lastEndMs }) => lastEndMs)) - startMs;
  // A worker that ran nothing could have worked from the first moment on.
  const fromMs = starts.map((ms) => (ms ?? startMs) - startMs);
  const slowness = orders.flatMap((order) => order.slowness);
  const { slots = 0, handlerMs = 0 } = orders[0] ?? {};
  const ofWorkers = fromMs.map((ms, i) => ({ fromMs: ms, slowness: slowness[i] ?? 1 }));
  const perfectSlots = ofWorkers.flatMap((slot) => Array.from({ length: slots }, () => slot));
  const times = Array.from({ length: handled }, (_, n) => handlerTimeMs(n, handlerMs));
  return {
    handled,
    elapsedMs,
    perSecond: (1_000 * handled) / elapsedMs,
    perfectMs: perfectMakespanMs(times, perfectSlots),
    busy: handlersMs / (elapsedMs * perfectSlots.length),
    rampMs: max(fromMs),
    handlerMs: handlersMs / handled,
    redisMicros: cost.cpuMicros / handled,
    clientMicros: sum(reports.map(({ cpuMicros }) => cpuMicros)) / handled,
    scripts: (cost.costs['evalsha']?.calls ?? 0) / handled,
    commands: cost.commands / handled,
    ends: reports.flatMap(({ ends }) => ends),
  };
}
