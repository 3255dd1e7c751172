import type { Summary } from './summary.js';
import { fine, type Table, times, whole } from './tables.js';

/** The targets of the rates. A row that compares with another queue is shown only if that queue took part. */
export function aimsTable(summaries: readonly Summary[]): Table | undefined {
  const by = (contender: string) =>
    summaries.find(({ entrant }) => entrant.contender === contender);
  const own = by('piecework');
  const flow = by('bullmq-flow');
  const bee = by('bee-queue');
  if (!own) return undefined;
  const rows: string[][] = [];
  const row = (aim: string, shown: string, reached: boolean) =>
    rows.push([aim, shown, reached ? 'reached' : 'not reached']);
  if (flow) {
    const rate = own.perSecond.median / flow.perSecond.median;
    row('rate ≥ 10 × BullMQ flow', times(rate), rate >= 10);
    const cpu = own.redisMicros.median / flow.redisMicros.median;
    const shown = `${times(cpu)} (${fine(own.redisMicros.median)} µs)`;
    row('Redis CPU ≤ 1/10 of BullMQ flow', shown, cpu <= 0.1);
  }
  if (bee) {
    const rate = own.perSecond.median / bee.perSecond.median;
    row('rate ≥ 3 × bee-queue', times(rate), rate >= 3);
  }
  row('≤ 140 bytes per waiting sub-request', whole(own.waitingBytes), own.waitingBytes <= 140);
  return { head: ['aim', 'measured', ''], rows };
}
