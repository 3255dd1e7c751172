import { sum } from 'simple-statistics';
import type { Figure, Row } from '../figure/figure.js';
import { medianRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';
import { until } from '../fixture/until.js';
import type { WorkerProcess } from '../fixture/worker-process.js';
import type { Run } from '../fixture/worker-report.js';

const REQUESTS = 8;
const SLOTS = 4;
const PROCESSES = 2;
/** Handlers of a request take one of these times, in turn. */
const MIXED_MS = [2, 5, 10, 20];

/** Whether requests of one priority get alike. */
export const fairness: Figure = {
  title: 'Fairness among equal requests',
  definition:
    'Jain’s index, (Σx)² ÷ (n · Σx²), over n requests of the same priority and limit, when half of all is done; 1 is alike, 1/n is all for one.',
  method: `${REQUESTS} requests of the same number of sub-requests, submitted before ${PROCESSES} worker processes with ${SLOTS} slots each start: more requests than processes, so that they have to take turns. x is the sub-requests of a request that were done among the first half of all. Mixed: the handlers of a request take ${MIXED_MS.join(', ')} ms, in turn. Beside it, unequal: half of the requests have handlers of 2 ms, the others of 20 ms; there x is the handlers’ time, which is what slots are shared by.`,
  target: 'reported',

  async measure(fixture): Promise<Row[]> {
    const mixed = (n: number) => MIXED_MS[n % MIXED_MS.length] ?? 0;
    const unequal = (_: number, request: number) => (request % 2 ? 20 : 2);
    const turns = await fixture.inTurn({
      mixed: () => shares(fixture, mixed),
      unequal: () => shares(fixture, unequal),
    });
    return [
      medianRow(
        'mixed handlers, by count',
        'Jain’s index',
        turns.mixed.map(({ count }) => jain(count)),
      ),
      medianRow(
        'mixed handlers, by time',
        'Jain’s index',
        turns.mixed.map(({ time }) => jain(time)),
      ),
      medianRow(
        'unequal handlers, by time',
        'Jain’s index',
        turns.unequal.map(({ time }) => jain(time)),
      ),
    ];
  },
};

async function shares(fixture: Fixture, msOf: (n: number, request: number) => number) {
  const queue = fixture.newQueue();
  const pw = fixture.piecework(queue);
  const size = fixture.of(500, 200, 20);
  const ids: string[] = [];
  for (let i = 0; i < REQUESTS; i += 1) {
    const payloads = Array.from({ length: size }, (_, n) =>
      fixture.payload(n, { sleepMs: msOf(n, i) }),
    );
    ids.push((await pw.submit(payloads, { limit: SLOTS * PROCESSES })).id);
  }
  const fleet = { queue, concurrency: SLOTS, notes: true };
  const workers: WorkerProcess[] = [];
  for (let i = 0; i < PROCESSES; i += 1) workers.push(await fixture.startWorker(fleet));
  const runs: Run[] = [];
  const half = (REQUESTS * size) / 2;
  await until(async () => {
    for (const worker of workers) runs.push(...(await worker.report()).runs);
    return runs.length >= half;
  });
  const first = runs.sort((a, b) => a.endMs - b.endMs).slice(0, half);
  const of = (id: string) => first.filter(({ requestId }) => requestId === id);
  return {
    count: ids.map((id) => of(id).length),
    time: ids.map((id) => sum(of(id).map(({ startMs, endMs }) => endMs - startMs))),
  };
}

/** 1 when all are alike, 1/n when one has everything. */
export function jain(shares: readonly number[]): number {
  const all = sum([...shares]);
  return (all * all) / (shares.length * sum(shares.map((share) => share * share)));
}
