import { quantile } from 'simple-statistics';
import { ChildProgram } from '../child-program.js';
import type { Fixture } from '../fixture/fixture.js';
import type { RedisFigures } from '../redis-figures.js';
import { checkAttempts } from './attempts.js';
import type { Address, SmallContenderName } from './small-contender.js';
import type { SmallOrder, SmallReport, SmallWord } from './small-order.js';

const PROGRAM = new URL('./small-program.js', import.meta.url);

/** Longest time of a handler where the bench is only tested. */
const TINY_HANDLER_MS = 50;

/** How requests are made and handled. */
export interface SmallShape
  extends Pick<
    SmallOrder,
    'size' | 'atOnce' | 'workers' | 'handlerMs' | 'failingPercent' | 'attempts'
  > {
  /** Slots of each worker. @default those of `--concurrency` */
  readonly slots?: number;
  /** The first request of the process is measured, too; otherwise the process warms up before. */
  readonly isNew: boolean;
  /** The workers have a process of their own. */
  readonly apart: boolean;
}

export interface SmallRunOptions {
  readonly count: number;
  /** Where callers and workers find Redis. @default the server of the fixture */
  readonly redis?: Address;
}

/** What one run took; costs are per request. */
export interface SmallRun {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly redisMicros: number;
  /** Of callers and workers. */
  readonly clientMicros: number;
  readonly scripts: number;
  /** With those that scripts call. */
  readonly commands: number;
}

/** @throws Error unless each sub-request had its attempts, and its result came once */
export async function runSmall(
  fixture: Fixture,
  contender: SmallContenderName,
  { apart, isNew, ...shape }: SmallShape,
  { count, redis = fixture.server }: SmallRunOptions,
): Promise<SmallRun> {
  const { concurrency, payloadBytes } = fixture.settings;
  const { size, handlerMs } = shape;
  const order: SmallOrder = {
    ...{ slots: concurrency, ...shape, contender, count, payloadBytes },
    handlerMs: Math.min(handlerMs, fixture.of(handlerMs, handlerMs, TINY_HANDLER_MS)),
    redis: { host: redis.host, port: redis.port },
    queue: fixture.newQueue(),
    // The compiler of V8 works until a process has had some thousands of requests of one.
    warmUpCount: isNew ? 0 : Math.max(fixture.of(300, 100, 4), fixture.of(4_000, 2_000, 4) / size),
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
    return summarise(order, reports, cost);
  } finally {
    for (const child of children) await child.close();
  }
}

/** The first report is that of the callers. */
function summarise(
  order: SmallOrder,
  reports: readonly SmallReport[],
  cost: RedisFigures,
): SmallRun {
  const { count } = order;
  const { elapsedMs, latenciesMs } = reports[0] as SmallReport;
  const sum = (of: (report: SmallReport) => number) =>
    reports.reduce((total, report) => total + of(report), 0);
  checkAttempts(order, {
    made: sum(({ attempts }) => attempts.made),
    failed: sum(({ attempts }) => attempts.failed),
  });
  const { evalsha, eval: evals } = cost.costs;
  return {
    perSecond: (count * 1_000) / elapsedMs,
    p50Ms: quantile([...latenciesMs], 0.5),
    p99Ms: quantile([...latenciesMs], 0.99),
    redisMicros: cost.cpuMicros / count,
    clientMicros: sum(({ cpuMicros }) => cpuMicros) / count,
    scripts: ((evalsha?.calls ?? 0) + (evals?.calls ?? 0)) / count,
    commands: cost.commands / count,
  };
}
