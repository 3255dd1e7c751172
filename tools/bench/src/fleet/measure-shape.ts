import { median } from 'simple-statistics';
import { amount } from '../figure/amount.js';
import type { Row, Target } from '../figure/figure.js';
import { verdict } from '../figure/figure.js';
import { medianRow, ratioRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';
import {
  type FleetContenderName,
  fleetContenderNames,
  fleetContenders,
} from './fleet-contender.js';
import { type FleetRun, type FleetRunOptions, runFleet } from './fleet-run.js';
import { idealRate, labelOf, type Shape } from './shape.js';

/** BullMQ adds a flow in one transaction; more children take it too long. */
const BULLMQ_MOST = 32_000;

type Runs = Partial<Record<FleetContenderName, FleetRun[]>>;

/** All values of one shape, from rounds in which the contenders take turns. */
export async function measureShape(
  fixture: Fixture,
  shape: Shape,
  options: FleetRunOptions = {},
): Promise<Row[]> {
  const names = fleetContenderNames.filter((name) => fixture.choice.only.includes(name));
  const variants = Object.fromEntries(
    names.map((name) => {
      const count = countOf(fixture, shape, name);
      return [name, () => runFleet(fixture, name, shape, count, options)];
    }),
  );
  const rows = rowsOf(shape, await fixture.inTurn<string, FleetRun>(variants));
  fixture.say(linesOf(labelOf(shape), rows));
  return rows;
}

/** About four seconds at the ideal rate. */
function countOf(fixture: Fixture, shape: Shape, contender: FleetContenderName): number {
  const isBull = contender === 'bullmq-flow';
  if (shape.handlerMs === 0) {
    return isBull ? fixture.of(20_000, 8_000, 300) : fixture.of(250_000, 100_000, 1_000);
  }
  const wanted = Math.round(idealRate(shape) * fixture.of(4, 2, 0.1));
  return isBull ? Math.min(wanted, BULLMQ_MOST) : wanted;
}

type Key = Exclude<keyof FleetRun, 'ends'>;
const of = (runs: readonly FleetRun[], key: Key) => runs.map((run) => run[key]);

function rowsOf(shape: Shape, runs: Runs): Row[] {
  const { piecework: own, 'bullmq-flow': other } = runs;
  return [
    ...(own && shape.handlerMs > 0 ? [ofIdealRow(shape, own)] : []),
    ...(own && other ? ratioRows(shape, own, other) : []),
    ...fleetContenderNames.flatMap((name) => valueRows(shape, name, runs[name] ?? [])),
  ];
}

function ofIdealRow(shape: Shape, runs: readonly FleetRun[]): Row {
  const ofIdeal = runs.map(({ perfectMs, elapsedMs }) => perfectMs / elapsedMs);
  const target = atLeast(shape.targets.ofIdeal);
  return medianRow(`${labelOf(shape)}: rate ÷ ideal`, '×', ofIdeal, target ? { target } : {});
}

function ratioRows(shape: Shape, own: readonly FleetRun[], other: readonly FleetRun[]): Row[] {
  const { rate, redis, client } = shape.targets;
  const ratio = (text: string, key: Key, target: Target | undefined) =>
    ratioRow(`${labelOf(shape)}: ${text} ÷ BullMQ`, of(own, key), of(other, key), target);
  return [
    ratio('rate', 'perSecond', atLeast(rate)),
    ratio('Redis CPU', 'redisMicros', atMost(redis)),
    ratio('client CPU', 'clientMicros', atMost(client)),
  ];
}

function valueRows(shape: Shape, name: FleetContenderName, runs: readonly FleetRun[]): Row[] {
  if (runs.length === 0) return [];
  const middle = (key: Key) => median(of(runs, key));
  const note = [
    `${runs[0]?.handled} sub-requests`,
    ...(shape.handlerMs > 0
      ? [
          `a handler took ${middle('handlerMs').toFixed(2)} ms`,
          `handlers filled ${amount(100 * middle('busy'))} % of the slots’ time`,
        ]
      : []),
    `the last worker began ${amount(middle('rampMs'))} ms after the first`,
  ].join('; ');
  const value = (unit: string, key: Key, rest = {}) =>
    medianRow(`${labelOf(shape)}: ${fleetContenders[name].title}`, unit, of(runs, key), rest);
  return [
    value('sub-requests/s', 'perSecond', { note }),
    value('µs of Redis', 'redisMicros'),
    value('µs of clients', 'clientMicros'),
    value('scripts', 'scripts'),
    value('commands, with those in scripts', 'commands'),
  ];
}

const atLeast = (bound?: number) => (bound === undefined ? undefined : { atLeast: bound });
const atMost = (bound?: number) => (bound === undefined ? undefined : { atMost: bound });

/** The progress of a long measurement: the ratios with their targets, then a line for each contender. */
function linesOf(name: string, rows: readonly Row[]): string {
  const text = (row: Row) => row.label.replace(`${name}: `, '');
  const ratios = rows
    .filter(({ unit }) => unit === '×')
    .map((row) => {
      const { value, target } = row;
      if (!target) return `${text(row)} ${amount(value)}`;
      const bound = 'atMost' in target ? `≤ ${target.atMost}` : `≥ ${target.atLeast}`;
      return `${text(row)} ${amount(value)} (${bound}: ${verdict(row)})`;
    });
  const contenders = fleetContenderNames.flatMap((contender) => {
    const { title } = fleetContenders[contender];
    const own = rows.filter((row) => text(row) === title);
    return own.length > 0
      ? [
          `${title}: ${own.map(({ value, unit }) => `${amount(value)} ${unit}`).join(', ')}`,
          ...own.flatMap(({ note }) => note ?? []),
        ]
      : [];
  });
  return [name, ...ratios, ...contenders].join('\n  ');
}
