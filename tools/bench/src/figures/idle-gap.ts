import { median } from 'simple-statistics';
import type { Figure, Row } from '../figure/figure.js';
import { medianRow, percentileRows, ratioRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';
import type { Run } from '../fixture/worker-report.js';

const HANDLER_MS = 20;
/** So little that neither Redis nor the worker is what one waits for. */
const SLOTS = 4;

/** How long a slot stands empty although there is work. */
export const idleGap: Figure = {
  title: 'Idle gap of a slot between two sub-requests',
  definition:
    'From the return of a handler to the start of the next in the same slot, while work is ready; over the round trip to Redis.',
  method: `One worker process with ${SLOTS} slots, handlers that wait idle for ${HANDLER_MS} ms; the gaps are those of the slots as they are freed and taken, first in, first out. The same process measures PING all the while, on a connection of its own. How much CPU all of that takes is shown.`,
  target: 'p50 ≤ 3 × round trip',

  async measure(fixture): Promise<Row[]> {
    const rounds = await fixture.inTurn({ work: () => oneRound(fixture) });
    const gaps = rounds.work.map((round) => median(round.gaps));
    const pings = rounds.work.map((round) => median(round.pings));
    const load = rounds.work.map((round) => round.load);
    return [
      ratioRow('gap ÷ PING, p50', gaps, pings, { atMost: 3 }),
      ...percentileRows(
        'gap',
        'ms',
        rounds.work.flatMap((round) => round.gaps),
      ),
      ...percentileRows(
        'PING',
        'ms',
        rounds.work.flatMap((round) => round.pings),
      ),
      medianRow('CPU of worker and Redis', '% of one core', load, { note: 'at most 40 offered' }),
    ];
  },
};

async function oneRound(fixture: Fixture) {
  const count = fixture.of(4_000, 1_000, 40);
  const queue = fixture.newQueue();
  const pw = fixture.piecework(queue);
  const worker = await fixture.startWorker({
    ...{ queue, concurrency: SLOTS, notes: true, pingEveryMs: 10 },
  });
  const submit = async (size: number) => {
    const payloads = fixture.payloads(size, { sleepMs: HANDLER_MS });
    const request = await pw.submit(payloads, { limit: SLOTS });
    await request.completion();
  };
  await submit(SLOTS * 10);
  await worker.report();
  const startMs = performance.now();
  const redis = await fixture.redisCost(() => submit(count));
  const elapsedMs = performance.now() - startMs;
  const { runs, pingsMs, cpuMicros } = await worker.report();
  const busyMs = (cpuMicros + redis.cpuMicros) / 1_000;
  return { gaps: gapsOf(runs), pings: [...pingsMs], load: (100 * busyMs) / elapsedMs };
}

/** Each start takes the slot that has been free for longest; the first starts had none before them. */
export function gapsOf(runs: readonly Run[]): number[] {
  const starts = runs.map(({ startMs }) => startMs).sort((a, b) => a - b);
  const ends = runs.map(({ endMs }) => endMs).sort((a, b) => a - b);
  return starts.slice(SLOTS).map((startMs, i) => startMs - (ends[i] ?? startMs));
}
