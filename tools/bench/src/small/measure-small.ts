import { amount } from '../figure/amount.js';
import type { Row, Target } from '../figure/figure.js';
import { medianRow, ratioRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';
import { DelayingProxy } from '../network/delaying-proxy.js';
import { RoundTrips } from '../network/round-trips.js';
import { type SmallContenderName, smallContenders } from './small-contender.js';
import { runSmall, type SmallRun, type SmallRunOptions, type SmallShape } from './small-run.js';

/** What is judged of a row: bounds of Piecework ÷ BullMQ. */
export interface SmallTargets {
  readonly perSecond?: number;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  readonly redisMicros?: number;
  readonly clientMicros?: number;
}

const peerOf = (size: number): SmallContenderName => (size === 1 ? 'bullmq-add' : 'bullmq-flow');
const isOwn = (name: SmallContenderName) => name === 'piecework';

function contendersFor(fixture: Fixture, size: number): SmallContenderName[] {
  const { only } = fixture.choice;
  return [
    ...(only.includes('piecework') ? ['piecework' as const] : []),
    ...(only.includes('bullmq-flow') ? [peerOf(size)] : []),
  ];
}

const titleOf = (name: SmallContenderName) => smallContenders[name].title;
const requests = (size: number) =>
  size === 1 ? '1 sub-request' : `${size.toLocaleString('en-US')} sub-requests`;

function labelOf(shape: SmallShape): string {
  const { size, atOnce, workers, slots, handlerMs, failingPercent, attempts, isNew, apart } = shape;
  const failing = `${failingPercent} % fail ${attempts === 1 ? 'for good' : 'once'}`;
  return [
    requests(size),
    atOnce === 1 ? 'one at a time' : `${atOnce} at a time`,
    ...(workers > 1 ? [`${workers} × ${slots} slots`] : []),
    ...(handlerMs > 0 ? [handlerMs < 1_000 ? `${handlerMs} ms` : `${handlerMs / 1_000} s`] : []),
    ...(failingPercent > 0 ? [failing] : []),
    ...(isNew ? ['new process'] : []),
    ...(apart ? ['worker apart'] : []),
  ].join(', ');
}

/** Rate or latency, CPU, and what Redis ran, beside BullMQ. */
export async function measureSmall(
  fixture: Fixture,
  shape: SmallShape,
  count: number,
  targets: SmallTargets,
): Promise<Row[]> {
  const names = contendersFor(fixture, shape.size);
  const runs = await fixture.inTurn<SmallContenderName, SmallRun>(
    variantsOf(names, (name) => runSmall(fixture, name, shape, { count })),
  );
  const label = labelOf(shape);
  const measures: readonly Measure[] = shape.atOnce === 1 ? [...LATENCY, ...CPU] : [RATE, ...CPU];
  const rows = measures.flatMap(({ key, text, unit, isLow }) => [
    ...ratioOf(`${label}: ${text} ÷ BullMQ`, names, runs, key, bound(targets[key], isLow)),
    ...names.map((name) => medianRow(`${label}: ${titleOf(name)}`, unit, of(runs[name], key))),
  ]);
  for (const [key, unit] of COUNTS) {
    for (const name of names)
      rows.push(medianRow(`${label}: ${titleOf(name)}`, unit, of(runs[name], key)));
  }
  say(fixture, label, rows);
  return rows;
}

/** Latency behind a proxy that delays each direction, and how many round trips follow each other. */
export async function measureBehindNetwork(
  fixture: Fixture,
  shape: SmallShape,
  count: number,
  delayMs: number,
  targets: { readonly p50Ms?: number; readonly roundTrips?: number },
): Promise<Row[]> {
  const names = contendersFor(fixture, shape.size);
  const { host, port } = fixture.server;
  await using proxy = await DelayingProxy.start({ host, port, delayMs });
  const near = new RoundTrips({ host, port });
  const far = new RoundTrips(proxy);
  const once = (name: SmallContenderName, options: Partial<SmallRunOptions>) =>
    runSmall(fixture, name, shape, { count, ...options });
  const runs = await fixture.inTurn<string, SmallRun>({
    ...variantsOf(names, (name) => once(name, { redis: proxy })),
    ...Object.fromEntries(names.map((name) => [`${name} near`, () => once(name, {})])),
  });
  const pingMs = { near: await near.close(), far: await far.close() };
  const label = `${requests(shape.size)}, behind ${delayMs} ms each way`;
  const rows = [
    ...ratioOf(`${label}: p50 ÷ BullMQ`, names, runs, 'p50Ms', bound(targets.p50Ms, true)),
    ...names.map((name) =>
      medianRow(`${label}: ${titleOf(name)}, p50`, 'ms', of(runs[name], 'p50Ms')),
    ),
    ...names.map((name) => {
      const direct = of(runs[`${name} near`], 'p50Ms');
      const trips = of(runs[name], 'p50Ms').map(
        (ms, round) => (ms - (direct[round] ?? Number.NaN)) / (pingMs.far - pingMs.near),
      );
      const target = isOwn(name) ? bound(targets.roundTrips, true) : {};
      return medianRow(`${label}: ${titleOf(name)}`, 'serial round trips', trips, target);
    }),
    medianRow(`${label}: PING`, 'ms', [pingMs.far]),
  ];
  say(fixture, label, rows);
  return rows;
}

interface Measure {
  readonly key: keyof SmallTargets;
  readonly text: string;
  readonly unit: string;
  /** Whether less is better. */
  readonly isLow: boolean;
}
const RATE: Measure = { key: 'perSecond', text: 'rate', unit: 'requests/s', isLow: false };
const LATENCY: readonly Measure[] = [
  { key: 'p50Ms', text: 'p50', unit: 'ms, p50', isLow: true },
  { key: 'p99Ms', text: 'p99', unit: 'ms, p99', isLow: true },
];
const CPU: readonly Measure[] = [
  { key: 'redisMicros', text: 'Redis CPU', unit: 'µs of Redis a request', isLow: true },
  { key: 'clientMicros', text: 'client CPU', unit: 'µs of clients a request', isLow: true },
];
const COUNTS: readonly [keyof SmallRun, string][] = [
  ['scripts', 'scripts a request'],
  ['commands', 'commands a request, with those in scripts'],
];

const of = (runs: readonly SmallRun[] | undefined, key: keyof SmallRun) =>
  (runs ?? []).map((run) => run[key]);

function ratioOf(
  label: string,
  [own, peer]: readonly SmallContenderName[],
  runs: Readonly<Record<string, SmallRun[]>>,
  key: keyof SmallRun,
  { target }: { readonly target?: Target },
): Row[] {
  if (!own || !peer) return [];
  return [ratioRow(label, of(runs[own], key), of(runs[peer], key), target)];
}

function bound(value: number | undefined, isLow: boolean): { target?: Target } {
  if (value === undefined) return {};
  return { target: isLow ? { atMost: value } : { atLeast: value } };
}

const variantsOf = (
  names: readonly SmallContenderName[],
  run: (name: SmallContenderName) => Promise<SmallRun>,
) =>
  Object.fromEntries(names.map((name) => [name, () => run(name)])) as Record<
    SmallContenderName,
    () => Promise<SmallRun>
  >;

/** The progress of a long measurement. */
function say(fixture: Fixture, label: string, rows: readonly Row[]): void {
  const texts = rows.map(
    (row) => `${row.label.replace(`${label}: `, '')} ${amount(row.value)} ${row.unit}`,
  );
  fixture.say([label, ...texts].join('\n  '));
}
