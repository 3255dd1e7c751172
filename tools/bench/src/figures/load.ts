import { setTimeout as sleep } from 'node:timers/promises';
import type { Piecework, RequestOptions } from 'piecework';
import type { Figure, Row } from '../figure/figure.js';
import { percentileRows } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';

const SLOTS = 20;
const HANDLER_MS = 10;
/** Between two samples; what waits behind the others is awaited before the next. */
const EVERY_MS = 20;

/** How long a small request takes while a big one has all slots. */
export const load: Figure = {
  title: 'Latency under load',
  definition:
    'From the call that submits a request with one sub-request until its completion is seen, while a request that never ends takes every slot that it gets.',
  method: `One worker process with ${SLOTS} slots, handlers that wait idle for ${HANDLER_MS} ms, which are part of each time, the default time slice of 50 ms. The big request has priority 50 and a limit as high as the slots. The small ones come one at a time: of the same priority, of a higher one, and, to compare, with nothing beside them.`,
  target: 'reported',

  async measure(fixture): Promise<Row[]> {
    const samples = fixture.of(500, 150, 8);
    const idle = await withBigRequest(fixture, false, (pw) => sample(fixture, pw, samples, {}));
    const busy = await withBigRequest(fixture, true, async (pw) => ({
      same: await sample(fixture, pw, samples, {}),
      higher: await sample(fixture, pw, samples, { priority: 10 }),
    }));
    return [
      ...percentileRows('idle', 'ms', idle),
      ...percentileRows('busy, same priority', 'ms', busy.same),
      ...percentileRows('busy, higher priority', 'ms', busy.higher),
    ];
  },
};

async function withBigRequest<Result>(
  fixture: Fixture,
  busy: boolean,
  measure: (pw: Piecework) => Promise<Result>,
): Promise<Result> {
  const queue = fixture.newQueue();
  const worker = await fixture.startWorker({ queue, concurrency: SLOTS, tells: true });
  const pw = fixture.piecework(queue);
  const stopping = new AbortController();
  const big = { limit: SLOTS, window: 1_000, results: 'discard' } as const;
  const feeding = busy
    ? pw
        .submit(fixture.payloads(10_000_000, { sleepMs: HANDLER_MS }), {
          ...big,
          signal: stopping.signal,
        })
        // It never comes to its end.
        .catch(() => {})
    : undefined;
  if (busy) await worker.started(SLOTS);
  const result = await measure(pw);
  stopping.abort();
  await feeding;
  await fixture.clear();
  await fixture.server.probe.flushall();
  return result;
}

async function sample(
  fixture: Fixture,
  pw: Piecework,
  samples: number,
  options: RequestOptions,
): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < samples; i += 1) {
    await sleep(EVERY_MS);
    const startMs = performance.now();
    const request = await pw.submit([fixture.payload(i, { sleepMs: HANDLER_MS })], options);
    await request.completion();
    times.push(performance.now() - startMs);
  }
  return times;
}
