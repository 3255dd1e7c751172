import type { Evidence } from '../evidence/evidence.js';
import type { Process } from '../evidence/processes.js';
import type { Run } from '../evidence/runs.js';
import { REPEATS, type Repeat, type Verdict } from './verdict.js';

/**
 * How often sub-requests ran and why they ran again, and how soon after the kill of a worker the
 * next one began what it had been running.
 */
export function countExecutions(evidence: Evidence): {
  executions: Verdict['executions'];
  recoveryMs: number[];
} {
  const { runs, processes, upheavals } = evidence;
  const repeats = Object.fromEntries(REPEATS.map((why) => [why, 0])) as Record<Repeat, number>;
  const recoveryMs: number[] = [];
  let [aborted, again] = [0, 0];
  for (const [number, itsRuns] of runs.byRequest()) {
    const { redriveMs } = evidence.requests.at(number);
    const before = new Map<number, Run>();
    const repeated = new Set<number>();
    for (const run of itsRuns) {
      if (run.ended === 'aborted') aborted += 1;
      const last = before.get(run.index);
      before.set(run.index, run);
      if (!last) continue;
      repeated.add(run.index);
      const process = processes.at(last.process);
      const fromMs = Number.isNaN(last.endMs) ? last.startMs : last.endMs;
      const isUpset = {
        lost: upheavals.mayUndo(last.startMs, run.startMs),
        stepped: upheavals.steppedBetween(fromMs, run.startMs),
      };
      repeats[reason(last, run, process, { redriveMs, ...isUpset })] += 1;
      const { killMs } = process;
      const wasKilled = last.ended === 'none' && killMs !== undefined && killMs <= run.startMs;
      if (wasKilled) recoveryMs.push(run.startMs - killMs);
    }
    again += repeated.size;
  }
  return { executions: { starts: runs.length, aborted, again, repeats }, recoveryMs };
}

function reason(
  last: Run,
  run: Run,
  { killMs, frozen, stoodStill }: Process,
  { redriveMs, lost, stepped }: { redriveMs: number; lost: boolean; stepped: boolean },
): Repeat {
  if (last.ended === 'failed' && last.startMs < redriveMs && redriveMs <= run.startMs)
    return 'after a redrive';
  if (last.ended === 'held') return 'after a hold';
  if (run.attempt > last.attempt) return 'after a failure';
  // Its outcome may have died with it: it ended, and was not settled.
  if (killMs !== undefined && killMs <= run.startMs && !(last.endMs > run.startMs)) {
    return 'after a kill';
  }
  const asleep = [...frozen, ...stoodStill].some((each) => sleptThrough(each, last, run));
  if (last.endMs > run.startMs || asleep) {
    return 'beside a zombie';
  }
  if (lost) return 'after lost writes';
  if (stepped) return 'after a step of the clock';
  return last.ended === 'aborted' ? 'after a lost lease' : 'for other reasons';
}

/** It ended while it should have been settled, but its process stood still before it could be. */
const sleptThrough = (each: { fromMs: number; toMs: number }, last: Run, run: Run): boolean =>
  each.toMs >= last.startMs && each.fromMs <= run.startMs;
