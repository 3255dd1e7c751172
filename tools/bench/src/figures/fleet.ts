import type { Figure, Row } from '../figure/figure.js';
import type { Fixture } from '../fixture/fixture.js';
import { measureLive } from '../fleet/live.js';
import { measureMakespan } from '../fleet/makespan.js';
import { measureShape } from '../fleet/measure-shape.js';
import { isWanted, nameOf, type Shape, type ShapeTargets } from '../fleet/shape.js';

const CLIENT = 0.4;

const shape = (
  workers: number,
  slots: number,
  handlerMs: number,
  requests: number,
  targets: ShapeTargets,
): Shape => ({ workers, slots, handlerMs, requests, targets: { client: CLIENT, ...targets } });

const SHAPES = [
  shape(2, 200, 50, 1, { redis: 0.15, ofIdeal: 0.98 }),
  shape(4, 50, 50, 1, { redis: 0.2, ofIdeal: 0.98 }),
  shape(4, 50, 50, 20, { redis: 0.25, ofIdeal: 0.97 }),
  shape(40, 5, 50, 1, { redis: 0.35, ofIdeal: 0.98 }),
  shape(40, 5, 50, 20, { redis: 0.4, ofIdeal: 0.97 }),
  shape(40, 5, 5, 1, { redis: 0.2, rate: 3 }),
  shape(20, 10, 100, 1, { redis: 0.35, ofIdeal: 0.98 }),
  shape(100, 1, 20, 1, { redis: 0.5, ofIdeal: 0.95 }),
  shape(1, 100, 0, 1, {}),
];

const PARTS: Record<string, (fixture: Fixture) => Promise<Row[]>> = {
  ...Object.fromEntries(
    SHAPES.map((each) => [nameOf(each), (fixture: Fixture) => measureShape(fixture, each)]),
  ),
  makespan: measureMakespan,
  live: measureLive,
};

/** The rows that `--rows` can name. */
export const fleetRowNames = Object.keys(PARTS);

/** What a fleet of small workers costs, and how near it comes to slots that are never empty. */
export const fleet: Figure = {
  title: 'A fleet of workers, beside BullMQ flows',
  definition:
    'Rate: that of perfect sharing is 1, which is workers × slots ÷ time of a handler but for the end, when fewer sub-requests than slots are left. CPU per sub-request, of Redis and of the workers: over that of BullMQ flows in the same set-up.',
  method: [
    'Everything is submitted before the workers start, so submission does not count.',
    'The rate is taken from the first start of a handler to the last end of one; costs, from that start until the producer knows that all has ended.',
    'Handlers wait ½ to 1½ of the nominal time; sub-request number n waits the same time in both queues.',
    'Perfect sharing is simulated: each slot takes the next sub-request at once, from the first sub-request of its worker on.',
    'A row has as many sub-requests as fill four seconds at the ideal rate, but at most 32,000 for BullMQ, which adds a flow in one transaction; handlers of 0 ms: 250,000 and 20,000.',
    'Equal requests: the sub-requests are dealt to 20 requests, or to 20 parents. The limit of each request is the number of all slots. Nobody reads results.',
    'The workers of a row share one process; `--processes 40` gives each of 40 workers its own. It has warmed up with three fleets of 10,000 sub-requests each, in the same set-up but with handlers of at most 5 ms: otherwise the compiler of V8 would take up to half of the clients’ CPU time. They have no renewal thread (maxBlockMs 0).',
    'Redis’ CPU is that of its main thread, the clients’ that of the processes with the workers. The server counts scripts and commands.',
    'Makespan: one worker’s handlers take four times as long; perfect sharing knows that. Live: a reader in another process iterates over `results()` from before the start on.',
  ].join(' '),
  target: 'at each row; client CPU ≤ 0.4 × BullMQ in all; makespan ≤ 1.1 × perfect sharing',

  async measure(fixture): Promise<Row[]> {
    const rows: Row[] = [];
    for (const [name, measure] of Object.entries(PARTS)) {
      if (isWanted(name, fixture.choice.rows)) rows.push(...(await measure(fixture)));
    }
    return rows;
  },
};
