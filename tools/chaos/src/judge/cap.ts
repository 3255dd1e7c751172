import type { Evidence } from '../evidence/evidence.js';
import type { Findings } from '../evidence/findings.js';
import { endOf, type Interval, type Process } from '../evidence/processes.js';
import type { Run } from '../evidence/runs.js';
import { startsAbove } from './limits.js';
import { type Part, sweep } from './sweep.js';
import type { Cap } from './verdict.js';

/*
 * The cap: the number of runs in flight at every moment, compared with the limit. Each run is an interval, from before
 * its handler starts until after it ended. The handler itself writes both down, so a permit that was given back and
 * granted again never makes two lawful intervals overlap. A run without an end ended with its process. Each interval
 * has up to three parts:
 *
 *   believed   it counts against the limit: more of these than the limit is a violation
 *   doubtful   its lease may have ended; the journals cannot tell
 *   zombie     its lease has ended for certain
 *
 * When did a lease end? Only the server knows; the journals give bounds. A worker that is frozen, or has no way to
 * Redis, renews nothing. A lease that was renewed at the last moment before ends `leaseMs` after that moment: from then
 * on the run is a zombie. But the last renewal may have been earlier. The last sign of one is the last handler that
 * this worker started for this request, because the settle or enter before it renewed the lease. Until ¾ of a lease
 * after that sign, the run is believed. (The quarter is for the reply that was on its way; it is longer than any delay
 * that the nemesis should add.) Between the two moments the run is doubtful. A run never gets its lease back, so its
 * state only gets worse.
 *
 * A worker that is awake and cannot renew fences itself a tenth of a lease before the end and aborts its handlers. The
 * abort is written down whether the handler listens or not. A handler that obeys has ended before its permit can be
 * granted again. One that continues is doubtful from then on, and a zombie a tenth of a lease later. While Redis is
 * away or a proxy is closed, it is not known which processes are cut off. When a worker reports that its event loop was
 * blocked, because the machine was busy, it is not known whether its renewal thread was blocked too. In both cases runs
 * are doubtful from ¾ of a lease after the last sign. A run that *starts* more than a lease after the trouble began is
 * believed: a start needs a permit, and the old lease does not excuse a new run. So doubts and zombies excuse only old
 * runs that continue, never a new start.
 *
 * A complete request has no leases any more. If a zombie's success still counts, a worker that runs the same
 * sub-request again continues until it receives the abort. So a run of a generation whose completion was reported,
 * before a redrive was requested, is a zombie from that report on.
 *
 * A server that lost its last writes lost permits, and after a step of its clock leases may have ended: for a lease and
 * a half from then on, all runs are doubtful.
 *
 * If the limit changes while the request runs, limits.ts judges each start instead.
 */

/** For this share of a lease after the last sign of a renewal, a run is believed in any case. */
const SURE = 0.75;
/** A worker gives a lease up when this share of it is left, by its own clock. */
const FENCE = 0.1;
/** For this many leases after an upheaval, workers may have permits that the server has lost, or ended too early. */
const UNKNOWN = 1.5;

export function judgeCap(evidence: Evidence, findings: Findings): Cap {
  const { runs, requests, processes } = evidence;
  const cap = {
    ...{ mostOver: 0, overSeconds: 0, zombieRuns: 0, zombieSeconds: 0, zombieAwakeSeconds: 0 },
    ...{ doubtfulPeriods: 0, doubtfulSeconds: 0 },
  };
  const zombieWorkers = new Set<number>();
  const outages = processes.outages();
  const upheavals = evidence.upheavals.times();
  for (const [number, itsRuns] of runs.byRequest()) {
    const request = requests.at(number);
    const { id, limit, cancelledMs, deadlineMs, goneMs } = request;
    const overMs = Math.min(cancelledMs, deadlineMs, goneMs);
    const signs = new Signs(itsRuns);
    const parts = itsRuns.map((run) => {
      const process = processes.at(run.process);
      const ends = { overMs, firstCompleteMs: request.firstCompleteMs, upheavals };
      return partOf(run, process, processes.cutOff(process), outages, signs, ends);
    });
    for (const { run, zombieMs, endMs } of parts) {
      if (zombieMs >= endMs) continue;
      zombieWorkers.add(run.process);
      cap.zombieRuns += 1;
      const asleepMs = overlap(processes.at(run.process).frozen, zombieMs, endMs);
      cap.zombieSeconds += (endMs - zombieMs) / 1_000;
      cap.zombieAwakeSeconds += (endMs - zombieMs - asleepMs) / 1_000;
    }
    // If a change of the limit may be lost, it is not known which limit is in force.
    const isUndone = request.changes.some(({ askedMs, doneMs }) =>
      evidence.upheavals.mayUndo(askedMs, doneMs),
    );
    if (isUndone) continue;
    if (request.changes.length > 0) {
      for (const { run, believed, allowed } of startsAbove(parts, request)) {
        const at = (run.startMs - evidence.firstMs).toFixed(1);
        const what = `index ${run.index} began as number ${believed} of ${allowed}`;
        findings.add('cap exceeded', `${id}: ${what} at ${at} ms`);
      }
      continue;
    }
    const swept = sweep(parts, limit);
    cap.mostOver = Math.max(cap.mostOver, swept.mostOver);
    cap.overSeconds += swept.overMs / 1_000;
    cap.doubtfulPeriods += swept.doubtfulPeriods;
    cap.doubtfulSeconds += swept.doubtfulMs / 1_000;
    for (const { ms, most, untilMs } of swept.exceeded) {
      const [from, to] = [ms, untilMs].map((at) => (at - evidence.firstMs).toFixed(1));
      findings.add('cap exceeded', `${id}: ${most} of ${limit} from ${from} to ${to} ms`);
    }
  }
  return { ...cap, zombieWorkers: zombieWorkers.size };
}

/** When each worker began something of one request, in order. */
class Signs {
  readonly #starts = new Map<number, number[]>();

  constructor(runs: readonly Run[]) {
    for (const { process, startMs } of runs) {
      const starts = this.#starts.get(process);
      if (starts) starts.push(startMs);
      else this.#starts.set(process, [startMs]);
    }
  }

  /** The last one at or before `ms`; there is one whenever a run of that worker began before. */
  lastBefore(process: number, ms: number): number {
    const starts = this.#starts.get(process) ?? [];
    let [low, high] = [0, starts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((starts[middle] as number) <= ms) low = middle + 1;
      else high = middle;
    }
    return starts[low - 1] ?? ms;
  }
}

function partOf(
  run: Run,
  process: Process,
  cutOff: readonly Interval[],
  outages: readonly Interval[],
  signs: Signs,
  /**
   * overMs: when the request was ended: its handlers are notified to stop from then on, under their leases ·
   * firstCompleteMs: when its first generation was complete, if it has another · upheavals: times from which on the
   * server may have forgotten permits, or ended leases early
   */
  {
    overMs,
    firstCompleteMs,
    upheavals,
  }: { overMs: number; firstCompleteMs: number; upheavals: readonly Interval[] },
): Part {
  const endMs = Number.isNaN(run.endMs) ? Math.max(run.startMs, endOf(process)) : run.endMs;
  const leaseMs = process.leaseMs ?? Number.POSITIVE_INFINITY;
  let doubtfulMs = Number.POSITIVE_INFINITY;
  let zombieMs = Number.POSITIVE_INFINITY;
  const doubt = (fromMs: number, toMs: number, signMs: number) => {
    const lastsUntil = Math.max(fromMs, signMs + SURE * leaseMs);
    if (lastsUntil < Math.min(toMs, endMs)) doubtfulMs = Math.min(doubtfulMs, lastsUntil);
  };
  // The order to stop is written before it is carried out, and a reply may still come in: what began
  // within a lease from it began under the same lease.
  const during = ({ fromMs, toMs }: Interval) =>
    run.startMs < Math.min(toMs, fromMs + leaseMs) && fromMs < endMs;
  const signOf = ({ fromMs, toMs }: Interval) =>
    signs.lastBefore(run.process, Math.min(toMs, fromMs + leaseMs));
  // Its loop stood still; whether its thread renewed meanwhile nobody tells.
  for (const still of process.stoodStill.filter(during)) {
    doubt(still.fromMs, still.toMs, signOf(still));
  }
  for (const trouble of [...process.frozen, ...cutOff].filter(during)) {
    const signMs = signOf(trouble);
    doubt(trouble.fromMs, trouble.toMs, signMs);
    const overMs = Math.max(trouble.fromMs, signMs) + leaseMs;
    if (trouble.toMs >= overMs) zombieMs = Math.min(zombieMs, overMs);
  }
  if (run.toldMs < endMs && run.toldMs < overMs) {
    doubtfulMs = Math.min(doubtfulMs, run.toldMs);
    zombieMs = Math.min(zombieMs, run.toldMs + FENCE * leaseMs);
  }
  if (run.startMs < firstCompleteMs) zombieMs = Math.min(zombieMs, firstCompleteMs);
  // For a lease from then on, or from when the server was back, permits may be out that it does not know.
  for (const { fromMs } of upheavals) {
    const back = outages.find((outage) => outage.fromMs <= fromMs && fromMs <= outage.toMs);
    const overMs = Math.max(fromMs, back?.toMs ?? 0) + UNKNOWN * leaseMs;
    if (run.startMs < overMs && fromMs < endMs)
      doubtfulMs = Math.min(doubtfulMs, Math.max(fromMs, run.startMs));
  }
  // Short runs never come so far; the bulk of a history is decided here.
  if (endMs - run.startMs > SURE * leaseMs) {
    for (const outage of outages.filter(during)) {
      doubt(outage.fromMs, outage.toMs, signOf(outage));
    }
  }
  return {
    run,
    doubtfulMs: Math.min(doubtfulMs, zombieMs, endMs),
    zombieMs: Math.min(zombieMs, endMs),
    endMs,
  };
}

function overlap(intervals: readonly Interval[], fromMs: number, toMs: number): number {
  return intervals.reduce(
    (sum, each) => sum + Math.max(0, Math.min(each.toMs, toMs) - Math.max(each.fromMs, fromMs)),
    0,
  );
}
