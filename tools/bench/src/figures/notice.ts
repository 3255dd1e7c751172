import type { Figure, Row } from '../figure/figure.js';
import { blockMedians, percentileRows, ratioRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';
import { monotonicMs } from '../monotonic.js';

const WARM_UP = 20;

/** How soon the one who waits knows. */
export const notice: Figure = {
  title: 'From the last settle to the completion seen',
  definition:
    'From the moment at which the worker writes the last settle to its socket until `completion()` resolves in another process; over the round trip to Redis.',
  method:
    'One request after another, with one sub-request whose handler waits idle for 5 ms, so that the caller waits already; both processes read the machine’s monotonic clock. PING of the caller’s process is measured between them. Under load: the same while a request with 100 slots of its own keeps another worker busy. Many: a thousand other completions are awaited by the same process.',
  target: 'p50 ≤ 5 × round trip, idle; under load reported',

  async measure(fixture): Promise<Row[]> {
    const waits = fixture.of(1_000, 1_000, 20);
    const idle = await alone(fixture, () => notices(fixture));
    const busy = await alone(fixture, () => underLoad(fixture));
    const many = await alone(fixture, () => amongWaits(fixture, waits));
    const blocks = fixture.settings.rounds;
    const p50 = (samples: number[]) => blockMedians(samples, blocks);
    return [
      ratioRow('notice ÷ PING, p50', p50(idle.fromSettle), p50(idle.pings), { atMost: 5 }),
      ...percentileRows('from the settle', 'ms', idle.fromSettle),
      ...percentileRows('from the handler’s return', 'ms', idle.fromReturn),
      ...percentileRows('PING', 'ms', idle.pings),
      ...percentileRows('from the settle, under load', 'ms', busy.fromSettle),
      ...percentileRows(`from the settle, among ${waits} waits`, 'ms', many.fromSettle),
    ];
  },
};

async function alone<Result>(fixture: Fixture, work: () => Promise<Result>): Promise<Result> {
  const result = await work();
  await fixture.clear();
  await fixture.server.probe.flushall();
  return result;
}

/** `waits`: requests that the caller awaits besides. */
async function notices(fixture: Fixture, waits: readonly string[] = []) {
  const samples = fixture.of(500, 200, 10);
  const queue = fixture.newQueue();
  const pw = fixture.piecework(queue);
  const worker = await fixture.startWorker({ queue, concurrency: 1, notes: true });
  // They end with the close, unseen.
  for (const id of waits)
    pw.request(id)
      .completion()
      .catch(() => {});
  const fromSettle: number[] = [];
  const fromReturn: number[] = [];
  const pings: number[] = [];
  for (let i = -Math.min(WARM_UP, samples); i < samples; i += 1) {
    const request = await pw.submit([fixture.payload(0, { sleepMs: 5 })]);
    await request.completion();
    const seenMs = monotonicMs();
    const { runs, lastSettleMs } = await worker.report();
    const startMs = performance.now();
    await fixture.server.probe.ping();
    const pingMs = performance.now() - startMs;
    const endMs = runs.at(-1)?.endMs;
    if (i < 0 || lastSettleMs === undefined || endMs === undefined) continue;
    fromSettle.push(seenMs - lastSettleMs);
    fromReturn.push(seenMs - endMs);
    pings.push(pingMs);
  }
  return { fromSettle, fromReturn, pings };
}

async function underLoad(fixture: Fixture) {
  const queue = fixture.newQueue();
  await fixture.startWorker({ queue, concurrency: 100 });
  const stopping = new AbortController();
  const feeding = fixture
    .piecework(queue)
    .submit(fixture.payloads(10_000_000, { sleepMs: 20 }), {
      ...{ limit: 100, window: 2_000, results: 'discard' },
      signal: stopping.signal,
    })
    // It never comes to its end.
    .catch(() => {});
  const measured = await notices(fixture);
  stopping.abort();
  await feeding;
  return measured;
}

/** Requests of a queue that has no worker. */
async function amongWaits(fixture: Fixture, count: number) {
  const pw = fixture.piecework(fixture.newQueue());
  const ids: string[] = [];
  for (let i = 0; i < count; i += 1) ids.push((await pw.submit([fixture.payload(i)])).id);
  return notices(fixture, ids);
}
