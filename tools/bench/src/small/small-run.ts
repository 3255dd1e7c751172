import { quantile } from 'simple-statistics';
import { ChildProgram } from '../child-program.js';
import type { Fixture } from '../fixture/fixture.js';
import type { RedisFigures } from '../redis-figures.js';
import type { Sent } from '../sent-commands.js';
import type { Address, SmallContenderName } from './small-contender.js';
import type { SmallOrder, SmallReport, SmallWord } from './small-order.js';

const PROGRAM = new URL('./small-program.js', import.meta.url);

/** How requests are made. */
export interface SmallShape {
  /** Sub-requests of a request. */
  readonly size: number;
  /** Requests under way at the same time; 1: one at a time. */
  readonly atOnce: number;
  /** The worker has a process of its own. */
  readonly apart: boolean;
}

export interface SmallRunOptions {
  readonly count: number;
  /** Where callers and worker find Redis. @default the server of the fixture */
  readonly redis?: Address;
  /** Counts the commands sent, which costs time. */
  readonly counts?: boolean;
}

/** What one run took; costs are per request. */
export interface SmallRun {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly redisMicros: number;
  /** Of callers and worker. */
  readonly clientMicros: number;
  readonly scripts: number;
  /** With those that scripts call. */
  readonly commands: number;
  readonly wireBytes: number;
  /** Only if they were counted: commands, writes with commands in them, keys named by commands. */
  readonly sent: Sent;
}

export async function runSmall(
  fixture: Fixture,
  contender: SmallContenderName,
  { size, atOnce, apart }: SmallShape,
  { count, redis = fixture.server, counts = false }: SmallRunOptions,
): Promise<SmallRun> {
  const { concurrency, payloadBytes } = fixture.settings;
  const order: SmallOrder = {
    ...{ contender, size, atOnce, count, counts, payloadBytes, slots: concurrency },
    redis: { host: redis.host, port: redis.port },
    queue: fixture.newQueue(),
    // The compiler of V8 works until a process has had some thousands of requests of one.
    warmUpCount: Math.max(fixture.of(300, 100, 4), fixture.of(12_000, 100, 4) / size),
    works: !apart,
    calls: true,
  };
  const children: ChildProgram<SmallWord>[] = [];
  const start = async (own: SmallOrder) =>
    children.unshift(await ChildProgram.start<SmallWord>(PROGRAM, own));
  try {
    if (apart) await start({ ...order, works: true, calls: false });
    await start(order);
    const [caller] = children as [ChildProgram<SmallWord>];
    for (const child of children) await child.ask('begin');
    const cost = await fixture.redisCost(() => caller.ask('call'));
    const reports = await Promise.all(children.map((child) => child.ask<SmallReport>('report')));
    return summarise(reports, cost, count);
  } finally {
    for (const child of children) await child.close();
  }
}

/** The first report is that of the callers. */
function summarise(reports: readonly SmallReport[], cost: RedisFigures, count: number): SmallRun {
  const { elapsedMs, latenciesMs } = reports[0] as SmallReport;
  const sum = (of: (report: SmallReport) => number) =>
    reports.reduce((total, report) => total + of(report), 0) / count;
  const { evalsha, eval: evals } = cost.costs;
  return {
    perSecond: (count * 1_000) / elapsedMs,
    p50Ms: quantile([...latenciesMs], 0.5),
    p99Ms: quantile([...latenciesMs], 0.99),
    redisMicros: cost.cpuMicros / count,
    clientMicros: sum(({ cpuMicros }) => cpuMicros),
    scripts: ((evalsha?.calls ?? 0) + (evals?.calls ?? 0)) / count,
    commands: cost.commands / count,
    wireBytes: cost.wireBytes / count,
    sent: {
      commands: sum(({ sent }) => sent.commands),
      writes: sum(({ sent }) => sent.writes),
      keys: sum(({ sent }) => sent.keys),
    },
  };
}
