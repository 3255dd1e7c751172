import type { Piecework, RequestOptions } from 'piecework';
import type { Figure, Row } from './figure.js';
import type { Ground } from './ground.js';
import { medianRow, ratioRow } from './rows.js';

const TARGET = { atMost: 1.1 };
const WARM_UP = 500;
const SUBMITTING = 50;

/** One side of a comparison: Redis' CPU per sub-request, in µs. */
type Side = () => Promise<number>;

/** Whether what Redis spends on a sub-request grows with what else there is. */
export const growth: Figure = {
  title: 'Growth of Redis CPU per sub-request',
  definition:
    'CPU of Redis’ main thread per sub-request, from submission to completion, with much of something over the same with little of it.',
  method:
    'The same work on both sides, in turn: a worker process with 100 slots, handlers that return at once, results kept and not read. Size: one request, or as many as it takes of 10,000. Open: requests of 20, all open before the first is served, or one after another; and one request served while the others wait behind it. Priorities: one request of priority 0, with 99 that wait behind it, each at a priority of its own or all at the last. Workers: five that work, and beside them such as hold one long run each.',
  target: '≤ 1.1 × each',

  async measure(ground): Promise<Row[]> {
    const large = ground.of(1_000_000, 100_000, 2_000);
    const small = ground.of(10_000, 10_000, 500);
    const open = ground.of(10_000, 1_000, 20);
    const workers = ground.of(500, 100, 8);
    const size = ground.of(100_000, 20_000, 500);
    return [
      ...(await compare(
        ground,
        [`one request of ${large}`, () => sequence(ground, 1, large)],
        [`requests of ${small}`, () => sequence(ground, Math.min(10, large / small), small)],
      )),
      ...(await compare(
        ground,
        [`${open} requests open`, () => atOnce(ground, open, 20)],
        ['one open at a time', () => sequence(ground, open, 20)],
        'requests of one priority share the slots, eight for each at first: fewer sub-requests of each end together, but submitting, taking and ending go together for many',
      )),
      ...(await compare(
        ground,
        [`${open - 1} waiting behind`, () => behindIt(ground, size, open - 1)],
        ['none waiting behind', () => behindIt(ground, size, 0)],
      )),
      ...(await compare(
        ground,
        ['100 priorities in use', () => behindIt(ground, size, 99, (i) => i + 1)],
        ['two priorities in use', () => behindIt(ground, size, 99)],
      )),
      ...(await compare(
        ground,
        [`${workers} workers`, () => amongWorkers(ground, size, workers - 5)],
        ['5 workers', () => amongWorkers(ground, size, 0)],
        'what workers cost by being there goes by the second, not by the sub-request',
      )),
    ];
  },
};

async function compare(
  ground: Ground,
  [much, withMuch]: [string, Side],
  [little, withLittle]: [string, Side],
  note?: string,
): Promise<Row[]> {
  const turns = await ground.inTurn({ withMuch, withLittle });
  ground.say(`growth: ${much} beside ${little}`);
  return [
    medianRow(much, 'Redis CPU µs', turns.withMuch),
    medianRow(little, 'Redis CPU µs', turns.withLittle),
    ratioRow(`${much} ÷ ${little}`, turns.withMuch, turns.withLittle, TARGET, note),
  ];
}

/** Requests one after another, each submitted when the one before is complete. */
async function sequence(ground: Ground, requests: number, size: number): Promise<number> {
  const queue = ground.newQueue();
  await ground.startWorker({ queue, concurrency: 100 });
  return served(ground, ground.piecework(queue), requests, size);
}

async function served(
  ground: Ground,
  pw: Piecework,
  requests: number,
  size: number,
): Promise<number> {
  await (await pw.submit(ground.deeds(WARM_UP), { limit: 100 })).completion();
  const cost = await ground.redisCost(async () => {
    for (let i = 0; i < requests; i += 1) {
      await (await pw.submit(ground.deeds(size), { limit: 100 })).completion();
    }
  });
  return cost.cpuMicros / (requests * size);
}

/** Five work; `busy` others are registered and alive, and each has its only slot taken. */
async function amongWorkers(ground: Ground, size: number, busy: number): Promise<number> {
  const queue = ground.newQueue();
  const pw = ground.piecework(queue);
  if (busy > 0) {
    const fleet = { queue, workers: busy, concurrency: 1, tells: true };
    const holder = await ground.startWorker({ ...fleet, options: { maxBlockMs: 0 } });
    await pw.submit(ground.deeds(busy, { holds: true }), { limit: busy, priority: 0 });
    await holder.started(busy);
  }
  await ground.startWorker({ queue, workers: 5, concurrency: 20 });
  return served(ground, pw, 1, size);
}

/** One request is worked off while others wait at a lower priority, submitted before it. */
async function behindIt(
  ground: Ground,
  size: number,
  waiting: number,
  priorityOf: (i: number) => number = () => 99,
): Promise<number> {
  const queue = ground.newQueue();
  const pw = ground.piecework(queue);
  await submitAll(ground, queue, waiting, 1, (i) => ({ priority: priorityOf(i), limit: 1 }));
  const request = await pw.submit(ground.deeds(size), { priority: 0, limit: 100 });
  const cost = await ground.redisCost(async () => {
    await ground.startWorker({ queue, concurrency: 100 });
    await request.completion();
  });
  return cost.cpuMicros / size;
}

/** All are open before a worker starts. */
async function atOnce(ground: Ground, requests: number, size: number): Promise<number> {
  const queue = ground.newQueue();
  const pw = ground.piecework(queue);
  const cost = await ground.redisCost(async () => {
    const ids = await submitAll(ground, queue, requests, size, () => ({ limit: 100 }));
    await ground.startWorker({ queue, concurrency: 100 });
    await Promise.all(ids.map((id) => pw.request(id).completion()));
  });
  return cost.cpuMicros / (requests * size);
}

async function submitAll(
  ground: Ground,
  queue: string,
  requests: number,
  size: number,
  optionsOf: (i: number) => RequestOptions,
): Promise<string[]> {
  const pw = ground.piecework(queue);
  const ids: string[] = [];
  for (let from = 0; from < requests; from += SUBMITTING) {
    const some = Array.from({ length: Math.min(SUBMITTING, requests - from) }, (_, i) =>
      pw.submit(ground.deeds(size), optionsOf(from + i)),
    );
    for (const { id } of await Promise.all(some)) ids.push(id);
  }
  return ids;
}
