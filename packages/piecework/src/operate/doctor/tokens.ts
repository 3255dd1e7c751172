import { TIMES } from '@piecework/protocol';
import { isLiving, readyOf } from './books.js';
import type { RequestLook } from './request-look.js';

const seconds = (ms: number) => `${Math.round(ms / 1_000)} s`;

/** Why nobody will look at a request in time; undefined: somebody will. `now`: time of the queue's server. */
export function forgotten(look: RequestLook, now: number): string | undefined {
  const { agenda, asleep } = look;
  if (agenda === undefined && !asleep) return 'it is on nobody’s agenda';
  if (agenda === undefined) return undefined;
  const overdue = now - agenda;
  if (overdue > TIMES.auditMs) return `the look at it is ${seconds(overdue)} overdue`;
  if (waitsForWorker(look, now) && -overdue > 2 * TIMES.slowMs)
    return `it has ready work and neither token nor permit, and nobody looks for ${seconds(-overdue)}`;
  return undefined;
}

/** Ready work with neither a token nor a permit: but for the time between two calls there is none. */
function waitsForWorker(look: RequestLook, now: number): boolean {
  const { fields } = look;
  const number = (field: string) => Number(fields[field] ?? 0);
  if (!isLiving(look) || fields['status'] === 'cancelling') return false;
  const halted = fields['paused'] === '1' || number('heldUntil') > now || fields['parked'] === '1';
  return (
    !halted && readyOf(look) > 0 && number('granted') + number('out') + number('outBefore') === 0
  );
}
