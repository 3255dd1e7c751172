import { max, min } from 'simple-statistics';
import { monotonicMs } from '../monotonic.js';
import type { Figure, Row } from './figure.js';
import type { Ground } from './ground.js';
import { medianRow } from './rows.js';

const SLOTS = 10;
const LEASES_MS = { full: [1_000, 5_000, 30_000], quick: [1_000, 5_000], tiny: [1_000] } as const;

/** How long work stands still after its worker was killed. */
export const recovery: Figure = {
  title: 'Recovery after a worker is killed',
  definition:
    'From the SIGKILL of a worker process until its sub-requests run in another: the first of them and the last.',
  method: `Two worker processes, one of which holds ${SLOTS} sub-requests that do not end; the other is started then, with ${SLOTS} free slots. Leases as given; the default is 30 s. A lease is renewed at a third, so what is left of it at the kill is between two thirds and all.`,
  target: 'reported',

  async measure(ground): Promise<Row[]> {
    const rows: Row[] = [];
    for (const leaseMs of LEASES_MS[ground.size]) {
      const { rounds } = await ground.inTurn({ rounds: () => killOnce(ground, leaseMs) });
      ground.say(`recovery: lease of ${leaseMs} ms`);
      const seconds = (pick: (times: number[]) => number) =>
        rounds.map((times) => pick(times) / 1_000);
      const note = 'the lease has to end first, then comes the next look at the request';
      rows.push(
        medianRow(`lease ${leaseMs} ms, first`, 's', seconds(min), { note }),
        medianRow(`lease ${leaseMs} ms, last`, 's', seconds(max)),
      );
    }
    return rows;
  },
};

async function killOnce(ground: Ground, leaseMs: number): Promise<number[]> {
  const queue = ground.newQueue();
  const fleet = { queue, concurrency: SLOTS, tells: true, options: { leaseMs } };
  const first = await ground.startWorker(fleet);
  await ground.piecework(queue).submit(ground.deeds(SLOTS, { holds: true }), { limit: SLOTS });
  await first.started(SLOTS);
  const second = await ground.startWorker(fleet);
  const killedMs = monotonicMs();
  await first.kill();
  const again = await second.started(SLOTS);
  // They hold on for ever; nothing of this round is wanted any more.
  await second.kill();
  return again.map(({ atMs }) => atMs - killedMs);
}
