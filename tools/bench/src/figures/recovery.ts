import { queueKeys } from '@piecework/protocol';
import { max, min } from 'simple-statistics';
import type { Figure, Row } from '../figure/figure.js';
import { medianRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';
import { until } from '../fixture/until.js';
import { monotonicMs } from '../monotonic.js';

const SLOTS = 10;
/** `tiny`: a lease that outlasts a starved worker; the figure waits for the first tend anyway. */
const LEASES_MS = { full: [1_000, 5_000, 30_000], quick: [1_000, 5_000], tiny: [5_000] } as const;

/** Whether the request has been tended since its submission. */
type Age = 'young' | 'known';
const WHY = {
  young:
    'killed right after the submission: the first look comes 20 s after that, whatever the lease',
  known: 'killed after the first look: the lease has to end first, then comes the next look',
} as const;

/** How long work stands still after its worker was killed. */
export const recovery: Figure = {
  title: 'Recovery after a worker is killed',
  definition:
    'From the SIGKILL of a worker process until its sub-requests run in another: the first of them and the last.',
  method: `Two worker processes, of which one holds ${SLOTS} sub-requests that do not end; the other is started then, with ${SLOTS} free slots. Leases as given; the default is 30 s. A lease is renewed at a third, so what is left of it at the kill is between two thirds and all. Young: killed right after the submission; known: after the agenda’s first look at the request. All rounds of a lease run at once, each on a queue of its own, as nearly all of it is waiting.`,
  target: 'reported',

  async measure(fixture): Promise<Row[]> {
    const rows: Row[] = [];
    for (const leaseMs of LEASES_MS[fixture.size]) {
      const ages: Age[] = fixture.size === 'tiny' ? ['young'] : ['young', 'known'];
      for (const [i, rounds] of (await killAll(fixture, leaseMs, ages)).entries()) {
        const age = ages[i] as Age;
        const label = `lease ${leaseMs / 1_000} s, ${age} request`;
        const seconds = (pick: (times: number[]) => number) =>
          rounds.map((times) => pick(times) / 1_000);
        rows.push(
          medianRow(`${label}, first`, 's', seconds(min), { note: WHY[age] }),
          medianRow(`${label}, last`, 's', seconds(max)),
        );
      }
      fixture.say(`recovery: lease of ${leaseMs} ms`);
    }
    return rows;
  },
};

/** All rounds at once, each on a queue of its own: nearly all of it is waiting. */
async function killAll(fixture: Fixture, leaseMs: number, ages: readonly Age[]) {
  const rounds = Array.from({ length: fixture.settings.rounds });
  const all = ages.map((age) => rounds.map(() => killOnce(fixture, leaseMs, age)));
  const measured = await Promise.all(all.map((each) => Promise.all(each)));
  await fixture.clear();
  return measured.map((each) => {
    const killed = each.filter((times) => times !== undefined);
    if (killed.length === 0) throw new Error('every worker lost its lease before it was killed');
    return killed;
  });
}

/** Undefined when the worker, starved, lost its lease before it was killed: its work ended with it. */
async function killOnce(
  fixture: Fixture,
  leaseMs: number,
  age: Age,
): Promise<number[] | undefined> {
  const queue = fixture.newQueue();
  const fleet = { queue, concurrency: SLOTS, tells: true, options: { leaseMs } };
  const first = await fixture.startWorker(fleet);
  const pw = fixture.piecework(queue);
  const request = await pw.submit(fixture.payloads(SLOTS, { holds: true }), { limit: SLOTS });
  const over = request.completion().then(() => undefined);
  await first.started(SLOTS);
  const second = await fixture.startWorker(fleet);
  if (age === 'known') await lookedAt(fixture, queue, request.id, leaseMs);
  const killedMs = monotonicMs();
  await first.kill();
  const again = await Promise.race([second.started(SLOTS), over]);
  // They hold on for ever; nothing of this round is wanted any more.
  await second.kill();
  return again?.map(({ atMs }) => atMs - killedMs);
}

/** Waits until the next tend of the request is no further away than a lease. */
async function lookedAt({ server }: Fixture, queue: string, id: string, leaseMs: number) {
  const { agenda } = queueKeys(queue);
  await until(async () => {
    const score = await server.probe.zscore(agenda, id);
    // It is over already.
    if (score === null) return true;
    const at = Number(score);
    const [seconds] = await server.probe.time();
    return at > 0 && at / 1_000 - Number(seconds) <= leaseMs / 1_000 + 1;
  });
}
