import { median } from 'simple-statistics';
import { pieceworkIn } from '../contenders/piecework.js';
import { redisFigures } from '../redis-figures.js';
import type { Entrant, Server } from '../series.js';
import { fine, type Table, times, whole } from '../tables.js';
import { callAll } from './call-all.js';
import { type Caller, pieceworkOf } from './small-contender.js';

/*
 * Small requests of two revisions in turns of less than a second, in one process and on one server. A machine whose speed
 * changes from minute to minute is the same for both then, which whole runs in turn do not achieve.
 */

export interface SmallComparison {
  /** Sub-requests of a request. */
  readonly size: number;
  /** Requests of a turn. */
  readonly requests: number;
  /** Turns of each revision. */
  readonly turns: number;
  readonly payloadBytes: number;
  /** Slots of each worker. */
  readonly concurrency: number;
}

const AT_ONCE = 50;
/** Turns before the first that is measured: the compiler of V8 works for that long. */
const WARM_UP_TURNS = 12;

interface Turn {
  readonly perSecond: number;
  readonly redisMicros: number;
  readonly clientMicros: number;
}

interface Side {
  readonly title: string;
  readonly caller: Caller;
  readonly turns: Turn[];
  close(): Promise<void>;
}

/** A row for each revision, and the ratios of the first to the second, turn by turn. */
export async function compareSmall(
  server: Server,
  entrants: readonly Entrant[],
  comparison: SmallComparison,
): Promise<Table> {
  const sides: Side[] = [];
  try {
    for (const entrant of entrants) sides.push(await openSide(server, entrant, comparison));
    for (let n = -WARM_UP_TURNS; n < comparison.turns; n += 1) {
      for (const side of n % 2 === 0 ? sides : sides.toReversed()) {
        const turn = await play(server, side, comparison);
        if (n >= 0) side.turns.push(turn);
      }
    }
  } finally {
    await Promise.all(sides.map((side) => side.close()));
  }
  return tableOf(sides, comparison);
}

async function openSide(
  server: Server,
  { title, pieceworkRoot }: Entrant,
  { concurrency }: SmallComparison,
): Promise<Side> {
  const contender = pieceworkOf(await pieceworkIn(pieceworkRoot));
  const queue = `compare-${title.replaceAll(/\W+/g, '-')}`;
  const worker = await contender.startWorker(server, queue, concurrency, async ({ n }) => n);
  const caller = await contender.openCaller(server, queue, 1);
  const close = async () => {
    await caller.close();
    await worker.close();
  };
  return { title, caller, turns: [], close };
}

async function play(server: Server, { caller }: Side, comparison: SmallComparison): Promise<Turn> {
  const { size, payloadBytes, requests: count } = comparison;
  const redis = await redisFigures(server.probe);
  const client = process.cpuUsage();
  const startMs = performance.now();
  await callAll(caller, { size, payloadBytes, atOnce: AT_ONCE }, count);
  const elapsedMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(client);
  const { cpuMicros } = await redisFigures(server.probe);
  return {
    perSecond: (count * 1_000) / elapsedMs,
    redisMicros: (cpuMicros - redis.cpuMicros) / count,
    clientMicros: (user + system) / count,
  };
}

function tableOf(sides: readonly Side[], { size, turns }: SmallComparison): Table {
  const figures = ['perSecond', 'redisMicros', 'clientMicros'] as const;
  const [here, other] = sides as [Side, Side];
  const medianOf = ({ turns }: Side, figure: keyof Turn) => median(turns.map((it) => it[figure]));
  const ratioOf = (figure: keyof Turn) =>
    median(here.turns.map((turn, n) => turn[figure] / (other.turns[n] as Turn)[figure]));
  return {
    head: [
      `requests of ${size}, ${AT_ONCE} at a time, ${turns} turns each`,
      ...['requests/s', 'Redis µs', 'client µs'],
    ],
    rows: [
      ...sides.map((side) => [
        side.title,
        whole(medianOf(side, 'perSecond')),
        fine(medianOf(side, 'redisMicros')),
        fine(medianOf(side, 'clientMicros')),
      ]),
      ['median of the ratios', ...figures.map((figure) => times(ratioOf(figure)))],
    ],
  };
}
