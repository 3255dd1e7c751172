import type { Piecework, RequestOptions } from 'piecework';
import type { Figure, Row } from '../figure/figure.js';
import { medianRow, ratioRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';

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

  async measure(fixture): Promise<Row[]> {
    const large = fixture.of(1_000_000, 100_000, 2_000);
    const small = fixture.of(10_000, 10_000, 500);
    const open = fixture.of(10_000, 1_000, 20);
    const workers = fixture.of(500, 100, 8);
    const size = fixture.of(100_000, 20_000, 500);
    return [
      ...(await compare(
        fixture,
        [`one request of ${large}`, () => sequence(fixture, 1, large)],
        [`requests of ${small}`, () => sequence(fixture, Math.min(10, large / small), small)],
      )),
      ...(await compare(
        fixture,
        [`${open} requests open`, () => atOnce(fixture, open, 20)],
        ['one open at a time', () => sequence(fixture, open, 20)],
        'requests of one priority share the slots, eight for each at first: fewer sub-requests of each end together, but submitting, taking and ending go together for many',
      )),
      ...(await compare(
        fixture,
        [`${open - 1} waiting behind`, () => behindIt(fixture, size, open - 1)],
        ['none waiting behind', () => behindIt(fixture, size, 0)],
      )),
      ...(await compare(
        fixture,
        ['100 priorities in use', () => behindIt(fixture, size, 99, (i) => i + 1)],
        ['two priorities in use', () => behindIt(fixture, size, 99)],
      )),
      ...(await compare(
        fixture,
        [`${workers} workers`, () => amongWorkers(fixture, size, workers - 5)],
        ['5 workers', () => amongWorkers(fixture, size, 0)],
        'what workers cost by being there goes by the second, not by the sub-request',
      )),
    ];
  },
};

async function compare(
  fixture: Fixture,
  [much, withMuch]: [string, Side],
  [little, withLittle]: [string, Side],
  note?: string,
): Promise<Row[]> {
  const turns = await fixture.inTurn({ withMuch, withLittle });
  fixture.say(`growth: ${much} beside ${little}`);
  return [
    medianRow(much, 'Redis CPU µs', turns.withMuch),
    medianRow(little, 'Redis CPU µs', turns.withLittle),
    ratioRow(`${much} ÷ ${little}`, turns.withMuch, turns.withLittle, TARGET, note),
  ];
}

/** Requests one after another, each submitted when the one before is complete. */
async function sequence(fixture: Fixture, requests: number, size: number): Promise<number> {
  const queue = fixture.newQueue();
  await fixture.startWorker({ queue, concurrency: 100 });
  return served(fixture, fixture.piecework(queue), requests, size);
}

async function served(
  fixture: Fixture,
  pw: Piecework,
  requests: number,
  size: number,
): Promise<number> {
  await (await pw.submit(fixture.payloads(WARM_UP), { limit: 100 })).completion();
  const cost = await fixture.redisCost(async () => {
    for (let i = 0; i < requests; i += 1) {
      await (await pw.submit(fixture.payloads(size), { limit: 100 })).completion();
    }
  });
  return cost.cpuMicros / (requests * size);
}

/** Five work; `busy` others are registered and alive, and each has its only slot taken. */
async function amongWorkers(fixture: Fixture, size: number, busy: number): Promise<number> {
  const queue = fixture.newQueue();
  const pw = fixture.piecework(queue);
  if (busy > 0) {
    const fleet = { queue, workers: busy, concurrency: 1, tells: true };
    const holder = await fixture.startWorker({ ...fleet, options: { maxBlockMs: 0 } });
    await pw.submit(fixture.payloads(busy, { holds: true }), { limit: busy, priority: 0 });
    await holder.started(busy);
  }
  await fixture.startWorker({ queue, workers: 5, concurrency: 20 });
  return served(fixture, pw, 1, size);
}

/** One request is worked off while others wait at a lower priority, submitted before it. */
async function behindIt(
  fixture: Fixture,
  size: number,
  waiting: number,
  priorityOf: (i: number) => number = () => 99,
): Promise<number> {
  const queue = fixture.newQueue();
  const pw = fixture.piecework(queue);
  await submitAll(fixture, queue, waiting, 1, (i) => ({ priority: priorityOf(i), limit: 1 }));
  const request = await pw.submit(fixture.payloads(size), { priority: 0, limit: 100 });
  const cost = await fixture.redisCost(async () => {
    await fixture.startWorker({ queue, concurrency: 100 });
    await request.completion();
  });
  return cost.cpuMicros / size;
}

/** All are open before a worker starts. */
async function atOnce(fixture: Fixture, requests: number, size: number): Promise<number> {
  const queue = fixture.newQueue();
  const pw = fixture.piecework(queue);
  const cost = await fixture.redisCost(async () => {
    const ids = await submitAll(fixture, queue, requests, size, () => ({ limit: 100 }));
    await fixture.startWorker({ queue, concurrency: 100 });
    await Promise.all(ids.map((id) => pw.request(id).completion()));
  });
  return cost.cpuMicros / (requests * size);
}

async function submitAll(
  fixture: Fixture,
  queue: string,
  requests: number,
  size: number,
  optionsOf: (i: number) => RequestOptions,
): Promise<string[]> {
  const pw = fixture.piecework(queue);
  const ids: string[] = [];
  for (let from = 0; from < requests; from += SUBMITTING) {
    const some = Array.from({ length: Math.min(SUBMITTING, requests - from) }, (_, i) =>
      pw.submit(fixture.payloads(size), optionsOf(from + i)),
    );
    for (const { id } of await Promise.all(some)) ids.push(id);
  }
  return ids;
}
