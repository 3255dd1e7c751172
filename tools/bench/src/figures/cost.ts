import type { Figure, Row } from '../figure/figure.js';
import { medianRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';
import { REPOSITORY } from '../machine.js';
import { run } from '../run.js';
import { type Entrant, entrantsOf, orderOf } from '../series.js';

const QUANTUM_MS = 50;
/** Longer than any run: never asks whether others wait. */
const NO_SLICES_MS = 3_600_000;

interface Spent {
  readonly commands: number;
  readonly writes: number;
  readonly wireBytes: number;
}

/** What Piecework sends, for each thing that it does. */
export const cost: Figure = {
  title: 'Commands, round trips and bytes for work',
  definition:
    'Commands sent, writes to sockets with commands in them (round trips, at most) and bytes in and out of the server: for each sub-request, and for each time slice of a slot.',
  method: `Sub-request: one run as in the table of rates, with many slots and with one, producer, worker and reader together. Slice: one slot, handlers of 10 ms, one request alone or two that take turns; what a worker with slices of ${QUANTUM_MS} ms sends more than one without, over the slices that went by.`,
  target: 'reported',

  async measure(fixture): Promise<Row[]> {
    const { concurrency } = fixture.settings;
    const sliceCount = fixture.of(1_000, 300, 30);
    return [
      ...(await perSubRequest(fixture, concurrency, fixture.settings.count)),
      ...(await perSubRequest(fixture, 1, fixture.of(5_000, 1_000, 100))),
      ...(await perSlice(fixture, 1, sliceCount)),
      ...(await perSlice(fixture, 2, sliceCount)),
    ];
  },
};

const WHY_BATCHED =
  'what ends in one turn is settled by one script, with the next read behind it in one write';
const WHY_SINGLE = 'settle and read, in one write; submitting and results are read in batches';
const WHY_ALONE = '`should-yield`: one question, answered with no';
const WHY_SHARED =
  '`should-yield`, a settle that leaves, `exchange`, `enter` and a read of the other request';

async function perSubRequest(fixture: Fixture, slots: number, count: number): Promise<Row[]> {
  await fixture.server.probe.flushall();
  const [entrant] = entrantsOf(['piecework'], REPOSITORY) as [Entrant];
  const settings = { ...fixture.settings, count, concurrency: slots };
  const report = await run('speed', orderOf(fixture.server, entrant, settings));
  const spent = {
    commands: report.sent,
    writes: report.writes,
    wireBytes: report.redis.wireBytes,
  };
  const why = slots === 1 ? WHY_SINGLE : WHY_BATCHED;
  return rows(`per sub-request, ${slots} ${slots === 1 ? 'slot' : 'slots'}`, spent, count, why);
}

async function perSlice(fixture: Fixture, requests: number, count: number): Promise<Row[]> {
  const never = await workOff(fixture, requests, count, NO_SLICES_MS);
  const sliced = await workOff(fixture, requests, count, QUANTUM_MS);
  const slices = sliced.elapsedMs / QUANTUM_MS;
  const more = {
    commands: sliced.commands - never.commands,
    writes: sliced.writes - never.writes,
    wireBytes: sliced.wireBytes - never.wireBytes,
  };
  return requests === 1
    ? rows('per slice, alone', more, slices, WHY_ALONE)
    : rows('per slice, two take turns', more, slices, WHY_SHARED);
}

async function workOff(fixture: Fixture, requests: number, count: number, quantumMs: number) {
  await fixture.server.probe.flushall();
  const queue = fixture.newQueue();
  const pw = fixture.piecework(queue);
  const worker = await fixture.startWorker({ queue, concurrency: 1, options: { quantumMs } });
  const each = Math.ceil(count / requests);
  await worker.report();
  const startMs = performance.now();
  const redis = await fixture.redisCost(async () => {
    const submitted = await Promise.all(
      Array.from({ length: requests }, () =>
        pw.submit(fixture.payloads(each, { sleepMs: 10 }), { limit: 1, results: 'discard' }),
      ),
    );
    for (const request of submitted) await request.completion();
  });
  const elapsedMs = performance.now() - startMs;
  const { sent } = await worker.report();
  await fixture.clear();
  return { ...sent, wireBytes: redis.wireBytes, elapsedMs };
}

function rows(what: string, spent: Spent, over: number, note: string): Row[] {
  return [
    medianRow(what, 'commands', [spent.commands / over], { note }),
    medianRow(what, 'round trips', [spent.writes / over]),
    medianRow(what, 'wire bytes', [spent.wireBytes / over]),
  ];
}
