import type { Figure, Row } from '../figure/figure.js';
import type { Fixture } from '../fixture/fixture.js';
import { isWanted } from '../fleet/shape.js';
import {
  measureBehindNetwork,
  measureCounts,
  measureSmall,
  type SmallTargets,
} from '../small/measure-small.js';

const DELAY_MS = 1;

interface Size {
  readonly size: number;
  readonly atOnce: number;
  /** Requests of a run at full size: one at a time, and with others. */
  readonly counts: readonly [idle: number, busy: number];
  readonly idle: SmallTargets;
  readonly busy: SmallTargets;
  readonly network: { readonly p50Ms?: number; readonly roundTrips?: number };
}

const SIZES: readonly Size[] = [
  {
    ...{ size: 1, atOnce: 50, counts: [600, 20_000] },
    idle: { p50Ms: 0.6, p99Ms: 0.8 },
    busy: { perSecond: 1.5, redisMicros: 0.8, clientMicros: 0.7 },
    network: { p50Ms: 1, roundTrips: 4 },
  },
  {
    ...{ size: 10, atOnce: 50, counts: [300, 2_000] },
    ...{ idle: {}, busy: { perSecond: 5 }, network: {} },
  },
  {
    ...{ size: 100, atOnce: 20, counts: [100, 400] },
    ...{ idle: {}, busy: { perSecond: 8 }, network: {} },
  },
];

type Part = (fixture: Fixture) => Promise<Row[]>;

const PARTS: Record<string, Part> = Object.fromEntries(SIZES.flatMap(partsOf));

/** The rows that `--rows` can name. */
export const smallRequestRowNames = Object.keys(PARTS);

function partsOf({ size, atOnce, counts: [idle, busy], ...targets }: Size): [string, Part][] {
  const part =
    (each: number, apart: boolean, of: SmallTargets, most: number): Part =>
    (fixture) => {
      const count = fixture.of(most, Math.ceil(most / 4), Math.max(each, 4));
      return measureSmall(fixture, { size, atOnce: each, apart }, count, of);
    };
  return [
    [`${size} busy`, part(atOnce, false, targets.busy, busy)],
    [`${size} busy apart`, part(atOnce, true, targets.busy, busy)],
    [`${size} idle`, part(1, false, targets.idle, idle)],
    [`${size} idle apart`, part(1, true, targets.idle, idle)],
    [
      `${size} network`,
      (fixture) => {
        const count = fixture.of(200, 50, 4);
        return measureBehindNetwork(fixture, size, count, DELAY_MS, targets.network);
      },
    ],
    [
      `${size} counts`,
      async (fixture) => {
        const count = fixture.of(200, 100, 4);
        return [
          ...(await measureCounts(fixture, size, 1, count)),
          ...(await measureCounts(fixture, size, atOnce, count * 2)),
        ];
      },
    ],
  ];
}

/** What a small request costs, from its submission to its results. */
export const smallRequest: Figure = {
  title: 'Small requests, beside BullMQ',
  definition:
    'From the call that submits until the caller has all results: rate, latency, CPU of Redis’ main thread and of the clients, for requests of 1, 10 and 100 sub-requests.',
  method: [
    'BullMQ: a request of one is `add` and `waitUntilFinished`; of more, a flow whose parent returns `getChildrenValues()`, and `waitUntilFinished` of the parent. Defaults of both; BullMQ’s workers, also that of the parents, have as many slots as ours.',
    'Piecework: `submit`, `completion()`, `results()`.',
    'Busy: 50 requests at a time, 20 of 100 sub-requests. Idle: one at a time.',
    'Callers and worker share one process, a new one for each run, which warms up with 12,000 requests of one, 1,200 of ten, or 300 of a hundred, 20 at a time, and where one is made at a time, with five times as many of these as are measured (otherwise the compiler of V8 would take most of the CPU time of small requests); apart: the worker has a process of its own, and client CPU is that of both.',
    'Handlers return at once. Each result has to come exactly once.',
    `Network: one at a time, callers and worker reach Redis through a TCP proxy that delays each direction by ${DELAY_MS} ms. Serial round trips: what the proxy adds to the latency, over what it adds to PING.`,
    'Counts: one run; writes are those to sockets that contain commands, of callers and worker; keys are those that scripts and blocking pops name. A busy worker’s blocking pops are part of the counts.',
  ].join(' '),
  target:
    '1: rate ≥ 1.5 × BullMQ, Redis CPU ≤ 0.8 ×, client CPU ≤ 0.7 ×; idle p50 ≤ 0.6 ×, p99 ≤ 0.8 ×; network p50 ≤ 1 ×, ≤ 4 serial round trips; 10: rate ≥ 5 × flows; 100: ≥ 8 ×',

  async measure(fixture): Promise<Row[]> {
    const rows: Row[] = [];
    for (const [name, measure] of Object.entries(PARTS)) {
      if (isWanted(name, fixture.choice.rows)) rows.push(...(await measure(fixture)));
    }
    return rows;
  },
};
