import { setTimeout as sleep } from 'node:timers/promises';
import { queueKeys } from '@piecework/protocol';
import type { Figure, Row } from '../figure/figure.js';
import { medianRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';
import { until } from '../fixture/until.js';
import type { WorkerProcess } from '../fixture/worker-process.js';

interface Rest {
  readonly cpuMicros: number;
  readonly wireBytes: number;
  readonly commands: number;
}

/** What waits at a lower priority than what holds the only slot. */
const BEHIND = { priority: 60, limit: 10 };

/** A multiple of the times between ticks, renewals and audits at rest: 5, 10 and 15 s. */
const ROUND_MS = 30_000;
/** So long after a tick what it began is over, and the next is far. */
const AFTER_MS = 1_000;

/** What an idle fleet costs. */
export const rest: Figure = {
  title: 'Commands and bytes at rest',
  definition:
    'What the server sees of one worker that has nothing to do, a second; and of one request that waits behind others, an hour.',
  method:
    'INFO before and after a time in which nothing is submitted, less what the server and the looks themselves need in the same time. Waiting: one worker whose only slot is taken, first with nothing behind it, then with a thousand requests; no clock is moved, and each measurement begins when the first look at each request, 20 s after its submission, is over, and behind a tick, so that both see as many of what is done at intervals.',
  target: 'reported',

  async measure(fixture): Promise<Row[]> {
    const idleMs = fixture.of(30_000, 20_000, 1_000);
    const bare = await during(fixture, idleMs);
    const worker = await fixture.startWorker({ queue: fixture.newQueue(), concurrency: 10 });
    const idle = await during(fixture, idleMs, worker);
    await fixture.clear();
    const perSecond = (figure: (of: Rest) => number) => [
      (figure(idle) - figure(bare)) / (idleMs / 1_000),
    ];
    const seconds = `over ${idleMs / 1_000} s`;
    return [
      medianRow(
        'idle worker, a second',
        'commands',
        perSecond(({ commands }) => commands),
        {
          note: `BLMPOP every 5 s; a tick, which is a script of some reads, every 1 to 5 s; ${seconds}`,
        },
      ),
      medianRow(
        'idle worker, a second',
        'wire bytes',
        perSecond(({ wireBytes }) => wireBytes),
        {
          note: 'BLMPOP names a hundred lists, a tick tells who the worker is',
        },
      ),
      medianRow(
        'idle worker, a second',
        'Redis CPU µs',
        perSecond(({ cpuMicros }) => cpuMicros),
      ),
      ...(await waitingRows(fixture)),
    ];
  },
};

async function waitingRows(fixture: Fixture): Promise<Row[]> {
  const waiting = fixture.of(1_000, 1_000, 20);
  const ms = fixture.of(60_000, ROUND_MS, 1_000);
  const { none, many, looked } = await behindABusySlot(fixture, waiting, ms);
  const perHour = (figure: (of: Rest) => number) => [
    ((figure(many) - figure(none)) / waiting) * (3_600_000 / ms),
  ];
  const asleep = looked
    ? 'asleep until their list is popped up to them: no look at all'
    : 'their first look was not over yet';
  return [
    medianRow(
      'waiting request, an hour',
      'commands',
      perHour(({ commands }) => commands),
      {
        note: `${waiting} of them over ${ms / 1_000} s; ${asleep}`,
      },
    ),
    medianRow(
      'waiting request, an hour',
      'wire bytes',
      perHour(({ wireBytes }) => wireBytes),
    ),
    medianRow(
      'waiting request, an hour',
      'Redis CPU µs',
      perHour(({ cpuMicros }) => cpuMicros),
      {
        note: 'what is left is how much two measurements of the same server differ',
      },
    ),
  ];
}

/**
 * Both times by the same worker, so that what is done once, such as sending a script that the server
 * does not know yet, is in neither.
 */
async function behindABusySlot(fixture: Fixture, waiting: number, ms: number) {
  const { probe } = fixture.server;
  const patient = { everyMs: 500, patienceMs: fixture.of(90_000, 90_000, 500) };
  await probe.flushall();
  const queue = fixture.newQueue();
  const { agenda, counters } = queueKeys(queue);
  const pw = fixture.piecework(queue);
  const worker = await fixture.startWorker({ queue, concurrency: 1, tells: true });
  const { id } = await pw.submit([fixture.payload(0, { holds: true })], { priority: 0 });
  await worker.started(1);
  const behindATick = async () => {
    const tickedAt = () => probe.hget(counters, 'tickedAt');
    const last = await tickedAt();
    await until(async () => (await tickedAt()) !== last, { ...patient, everyMs: 20 });
    await sleep(Math.min(ms, AFTER_MS));
    return during(fixture, ms, worker);
  };
  const first = await probe.zscore(agenda, id);
  await until(async () => (await probe.zscore(agenda, id)) !== first, patient);
  const none = await behindATick();
  for (let i = 0; i < waiting; i += 1) await pw.submit([fixture.payload(i)], BEHIND);
  // Only the one that holds the slot is left on the agenda.
  const looked = await until(async () => (await probe.zcard(agenda)) <= 1, patient);
  const many = await behindATick();
  await fixture.clear();
  return { none, many, looked };
}

/** What the server counted in that time, and what the worker sent, if there is one. */
async function during(fixture: Fixture, ms: number, worker?: WorkerProcess): Promise<Rest> {
  await worker?.report();
  const { cpuMicros, wireBytes } = await fixture.redisCost(() => sleep(ms));
  const { commands } = (await worker?.report())?.sent ?? { commands: 0 };
  return { cpuMicros, wireBytes, commands };
}
