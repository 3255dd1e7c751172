import { TIMES } from '@piecework/protocol';
import { isUnfinished, readyOf } from './books.js';
import type { RequestSnapshot } from './request-snapshot.js';

const seconds = (ms: number) => `${Math.round(ms / 1_000)} s`;

/** Why nobody will look after a request in time; undefined: somebody will. `now`: time of the queue's server. */
export function whyUnattended(snapshot: RequestSnapshot, now: number): string | undefined {
  const { agenda, asleep } = snapshot;
  if (agenda === undefined && !asleep) return 'no process will look after it';
  if (agenda === undefined) return undefined;
  const overdue = now - agenda;
  if (overdue > TIMES.auditMs) return `it should have been looked after ${seconds(overdue)} ago`;
  if (waitsForWorker(snapshot, now) && -overdue > 2 * TIMES.slowMs)
    return `it has ready work, and no worker hears of it for another ${seconds(-overdue)}`;
  return undefined;
}

/** Whether ready work has neither a token nor a permit, which happens only for moments between two calls. */
function waitsForWorker(snapshot: RequestSnapshot, now: number): boolean {
  const { fields } = snapshot;
  const number = (field: string) => Number(fields[field] ?? 0);
  if (!isUnfinished(snapshot) || fields['status'] === 'cancelling') return false;
  const halted = fields['paused'] === '1' || number('heldUntil') > now || fields['parked'] === '1';
  return (
    !halted &&
    readyOf(snapshot) > 0 &&
    number('granted') + number('out') + number('outBefore') === 0
  );
}
