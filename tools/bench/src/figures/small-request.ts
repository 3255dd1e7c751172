import type { Figure, Row } from '../figure/figure.js';
import type { Fixture } from '../fixture/fixture.js';
import { isWanted } from '../fleet/shape.js';
import { measureBehindNetwork, measureSmall, type SmallTargets } from '../small/measure-small.js';
import type { SmallShape } from '../small/small-run.js';

const DELAY_MS = 1;

/** One worker whose handlers return at once and succeed. */
const PLAIN = {
  workers: 1,
  handlerMs: 0,
  failingPercent: 0,
  attempts: 1,
  isNew: false,
  apart: false,
} as const;
const ONE_BUSY = { ...PLAIN, size: 1, atOnce: 50 };
// Twice as many sub-requests are under way as there are slots, so that no slot waits for a caller.
const ONE_WAITING = { ...PLAIN, size: 1, atOnce: 200, workers: 4, slots: 25, handlerMs: 20 };
const ONE_IDLE = { ...PLAIN, size: 1, atOnce: 1, isNew: true };
const BUSY_10 = { ...PLAIN, size: 10, atOnce: 50 };
const BUSY_100 = { ...PLAIN, size: 100, atOnce: 20 };
const WAITING_20 = { ...PLAIN, size: 20, atOnce: 20, workers: 4, slots: 50, handlerMs: 20 };
const WAITING_100 = { ...PLAIN, size: 100, atOnce: 4, workers: 4, slots: 50, handlerMs: 50 };
/** Longer than a third of a lease, so that leases are renewed. */
const ONE_LONG = { ...PLAIN, size: 1, atOnce: 100, handlerMs: 12_000 };

type Part = (fixture: Fixture) => Promise<Row[]>;

/** `most`: requests of a run at full size. */
const part =
  (shape: SmallShape, most: number, targets: SmallTargets): Part =>
  (fixture) => {
    const count = fixture.of(most, Math.ceil(most / 4), Math.max(shape.atOnce, 4));
    return measureSmall(fixture, shape, count, targets);
  };

const withApart = (name: string, shape: SmallShape, most: number, targets: SmallTargets) => ({
  [name]: part(shape, most, targets),
  [`${name} apart`]: part({ ...shape, apart: true }, most, targets),
});

const PARTS: Record<string, Part> = {
  ...withApart('1 busy', { ...ONE_BUSY, isNew: true }, 3_000, {
    perSecond: 1.5,
    redisMicros: 0.5,
    clientMicros: 1,
  }),
  '1 busy failing': part({ ...ONE_BUSY, failingPercent: 50, isNew: true }, 3_000, {
    perSecond: 1,
    redisMicros: 1,
    clientMicros: 1.2,
  }),
  '1 busy retried': part({ ...ONE_BUSY, failingPercent: 50, attempts: 2, isNew: true }, 3_000, {}),
  '1 4x25 20ms': part(ONE_WAITING, 3_000, { perSecond: 1, redisMicros: 0.75, clientMicros: 1 }),
  '1 4x25 20ms failing': part({ ...ONE_WAITING, failingPercent: 30 }, 3_000, {
    perSecond: 0.9,
    redisMicros: 1,
    clientMicros: 1.2,
  }),
  '1 12s': part({ ...ONE_LONG, isNew: true }, 100, {}),
  ...withApart('1 idle', ONE_IDLE, 2_000, { p50Ms: 2, clientMicros: 1.6 }),
  '1 network': (fixture) =>
    measureBehindNetwork(fixture, ONE_IDLE, fixture.of(200, 50, 4), DELAY_MS, {
      p50Ms: 1,
      roundTrips: 4,
    }),
  ...withApart('10 busy', BUSY_10, 2_000, { perSecond: 5 }),
  '20 4x50 20ms retried': part({ ...WAITING_20, failingPercent: 5, attempts: 2 }, 300, {
    perSecond: 1.2,
    redisMicros: 0.5,
    clientMicros: 0.8,
  }),
  ...withApart('100 busy', BUSY_100, 200, { perSecond: 8 }),
  '100 4x50 50ms': part(WAITING_100, 100, { redisMicros: 0.45 }),
};

/** The rows that `--rows` can name. */
export const smallRequestRowNames = Object.keys(PARTS);

/** What a small request costs, from its submission to its results. */
export const smallRequest: Figure = {
  title: 'Small requests, beside BullMQ',
  definition:
    'From the call that submits until the caller has all results: rate or latency, CPU of Redis’ main thread and of the clients, scripts and commands, for requests of 1 to 100 sub-requests.',
  method: [
    'BullMQ: a request of one is `add` and `waitUntilFinished`; of more, a flow whose parent returns `getChildrenValues()`, and `waitUntilFinished` of the parent. Piecework: `submit`, `completion()`, `results()`. Both: one attempt, or two without backoff where a row says “once”; otherwise defaults. Each of BullMQ’s workers has one for the parents beside it, with as many slots.',
    'Callers and workers share one process, a new one for each run; apart: the workers have a process of their own, and client CPU is that of both. “New process”: the first request is measured, too, with the compiler of V8 at work. In the other rows a process warms up with 4,000 sub-requests, and at least 300 requests.',
    'Handlers return at once, or wait on a timer. Which sub-requests fail depends on their number; with two attempts they succeed at the second. Each result has to come exactly once, and the handlers have to run and to fail exactly as often as the row says.',
    `Network: one at a time in a new process, callers and worker reach Redis through a TCP proxy that delays each direction by ${DELAY_MS} ms. Serial round trips: what the proxy adds to the latency, over what it adds to PING.`,
    'Scripts and commands are counted by the server; the pops with which workers wait are part of them.',
  ].join(' '),
  target:
    '÷ BullMQ, as rate, Redis CPU, client CPU: 1, at once: ≥ 1.5, ≤ 0.5, ≤ 1, where half fail ≥ 1, ≤ 1, ≤ 1.2; 1, 20 ms: ≥ 1, ≤ 0.75, ≤ 1, where 30 % fail ≥ 0.9, ≤ 1, ≤ 1.2; 20, 20 ms, 5 % fail once: ≥ 1.2, ≤ 0.5, ≤ 0.8; 100, 50 ms: Redis CPU ≤ 0.45; 10: rate ≥ 5; 100: rate ≥ 8. One at a time: p50 ≤ 2, client CPU ≤ 1.6; network: p50 ≤ 1, ≤ 4 serial round trips',

  async measure(fixture): Promise<Row[]> {
    const rows: Row[] = [];
    for (const [name, measure] of Object.entries(PARTS)) {
      if (isWanted(name, fixture.choice.rows)) rows.push(...(await measure(fixture)));
    }
    return rows;
  },
};
