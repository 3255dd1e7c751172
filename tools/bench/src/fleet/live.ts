import { quantile } from 'simple-statistics';
import type { Row } from '../figure/figure.js';
import { medianRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';
import { monotonicMs } from '../monotonic.js';
import { runFleet } from './fleet-run.js';

const FLEET = { workers: 40, slots: 5, handlerMs: 50, requests: 1 };

/** How soon a reader that waits sees a result. Only of Piecework: BullMQ has no results before the parent runs. */
export async function measureLive(fixture: Fixture): Promise<Row[]> {
  if (!fixture.choice.only.includes('piecework')) return [];
  const count = fixture.of(8_000, 8_000, 400);
  const runs = await fixture.inTurn({ piecework: () => delaysMs(fixture, count) });
  return [0.5, 0.99].map((p) =>
    medianRow(
      `live at 40 × 5, 50 ms: from a handler’s end until a reader sees the result, p${p * 100}`,
      'ms',
      runs.piecework.map((delays) => quantile(delays, p)),
      { note: `${count} samples a round` },
    ),
  );
}

async function delaysMs(fixture: Fixture, count: number): Promise<number[]> {
  const seenMs = new Map<number, number>();
  const { ends } = await runFleet(fixture, 'piecework', FLEET, count, {
    notes: true,
    beside: async (producer) => {
      await producer.readLive?.((n) => seenMs.set(n, monotonicMs()));
    },
  });
  const delays = ends.map(([n, endMs]) => (seenMs.get(n) ?? Number.NaN) - endMs);
  if (delays.some(Number.isNaN)) throw new Error('a result was not seen by the reader');
  return delays;
}
