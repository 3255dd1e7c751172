import type { Setting } from './assumptions.js';
import { type Costs, tendMicros, tickMicros } from './costs.js';

/** Time between two tends of a request that is worked off (TIMES.auditMs). */
const AUDIT_S = 15;
/** A worker compares what it runs with the server's books each third of its lease. */
const COMPARE_S = 10;
/** An idle worker pops again after so long. */
const POP_S = 5;
/** The ticks of a whole fleet, a second. */
const TICKS_PER_S = 20;

/** Share of one master's time that ticks and tends take, whatever is worked off. */
export function backgroundShare(
  { workers, requests, concurrency }: Setting,
  costs: Costs,
  held: number,
  holdsQueue: boolean,
): number {
  const { server } = costs;
  const parts = Math.min(concurrency, requests);
  const holders = (workers * parts) / requests;
  const perRequest =
    tendMicros(costs, holders) / AUDIT_S + (server.compare.micros * holders) / COMPARE_S;
  let micros = held * perRequest;
  if (holdsQueue) {
    micros += ticksPerSecond(workers) * tickMicros(costs, workers);
    micros += (requests / AUDIT_S) * server.writeBack.micros;
  }
  return micros / 1e6;
}

/** Share of the queue's master that an idle fleet takes. */
export function idleShare(workers: number, costs: Costs): number {
  const pops = (workers / POP_S) * costs.server.popTimedOut.micros;
  return (pops + ticksPerSecond(workers) * tickMicros(costs, workers)) / 1e6;
}

/** A worker alone ticks each second; from 20 on they share 20 ticks a second. */
const ticksPerSecond = (workers: number) => Math.min(workers, TICKS_PER_S);
