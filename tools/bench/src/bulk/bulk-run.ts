import { ChildProgram } from '../child-program.js';
import type { Fixture } from '../fixture/fixture.js';
import type { BulkContenderName } from './bulk-contender.js';
import type { BulkOrder, BulkReport, BulkWord } from './bulk-order.js';

const PROGRAM = new URL('./bulk-program.js', import.meta.url);

/** Costs of one phase, per sub-request. */
export interface BulkCost {
  readonly perSecond: number;
  readonly redisMicros: number;
  readonly clientMicros: number;
}

export interface BulkRun {
  readonly adding: BulkCost;
  readonly working: BulkCost;
}

export type BulkShape = Pick<BulkOrder, 'units' | 'unitSize' | 'callers' | 'warmUpUnits'>;

/** Adds everything, then works it off, in a process of its own. */
export async function runBulk(
  fixture: Fixture,
  contender: BulkContenderName,
  shape: BulkShape,
): Promise<BulkRun> {
  const { host, port } = fixture.server;
  const { concurrency, payloadBytes } = fixture.settings;
  const order: BulkOrder = {
    ...{ contender, redis: { host, port }, queue: fixture.newQueue() },
    ...{ ...shape, slots: concurrency, payloadBytes },
  };
  const child = await ChildProgram.start<BulkWord>(PROGRAM, order);
  const count = shape.units * shape.unitSize;
  const phase = async (word: BulkWord): Promise<BulkCost> => {
    let report: BulkReport = { elapsedMs: 0, cpuMicros: 0 };
    const redis = await fixture.redisCost(async () => {
      report = await child.ask<BulkReport>(word);
    });
    return {
      perSecond: (count * 1_000) / report.elapsedMs,
      redisMicros: redis.cpuMicros / count,
      clientMicros: report.cpuMicros / count,
    };
  };
  try {
    return { adding: await phase('add'), working: await phase('work') };
  } finally {
    await child.close();
  }
}
