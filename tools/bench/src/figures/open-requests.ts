import { type BulkContenderName, bulkContenders } from '../bulk/bulk-contender.js';
import { type BulkCost, type BulkRun, runBulk } from '../bulk/bulk-run.js';
import type { Figure, Row } from '../figure/figure.js';
import { medianRow, ratioRow } from '../figure/rows.js';

const SIZE = 5;
const CALLERS = 50;
const MANY = 'many-requests';
const ONE = 'one-request';

/** What it costs that the same work is many requests instead of one. */
export const openRequests: Figure = {
  title: 'Many open requests, beside one',
  definition: `Sub-requests a second of one worker while all requests are open: of many requests with ${SIZE} sub-requests, limit 2 and random priorities, beside one request with as many sub-requests in all.`,
  method: `Everything is submitted first, by ${CALLERS} callers; then one worker starts in the same process. The rate is taken from its start to the end of the last handler; CPU, until no request is open. Handlers return at once; each has to run exactly once. Nobody reads results. Each run has a process of its own, which has warmed up on another queue.`,
  target: '≥ 0.35 × the rate of one request',

  async measure(fixture): Promise<Row[]> {
    const units = fixture.of(20_000, 2_000, 20);
    const warmUpUnits = fixture.of(1_000, 300, 2);
    const shape = { callers: CALLERS, warmUpUnits };
    const runs = await fixture.inTurn({
      [MANY]: () => runBulk(fixture, MANY, { ...shape, units, unitSize: SIZE }),
      [ONE]: () =>
        runBulk(fixture, ONE, { ...shape, units: 1, unitSize: units * SIZE, warmUpUnits: 1 }),
    });
    const values = (name: BulkContenderName, key: keyof BulkCost) =>
      (runs as Partial<Record<BulkContenderName, BulkRun[]>>)[name]?.map(
        ({ working }) => working[key],
      ) ?? [];
    const both = (unit: string, key: keyof BulkCost) =>
      ([MANY, ONE] as const).map((name) =>
        medianRow(bulkContenders[name].title, unit, values(name, key), {
          note: `${units} requests of ${SIZE}, or one of ${units * SIZE}`,
        }),
      );
    return [
      ratioRow('rate, many ÷ one', values(MANY, 'perSecond'), values(ONE, 'perSecond'), {
        atLeast: 0.35,
      }),
      ...both('sub-requests/s', 'perSecond'),
      ...both('µs of Redis a sub-request', 'redisMicros'),
      ...both('µs of the client a sub-request', 'clientMicros'),
    ];
  },
};
