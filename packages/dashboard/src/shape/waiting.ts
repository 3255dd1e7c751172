import { clockTime } from './format.js';
import type { Row } from './views.js';

/** What somebody can do about what a request waits for. After a lease, other workers take over by themselves. */
const ADVICE: Readonly<Record<string, string>> = {
  resume: 'resume it when you are ready',
  queue: 'resume the queue when you are ready',
  worker: 'start one',
  task: 'start one that does, or cancel the request if the name is wrong',
  producer: 'cancel the request if nothing more comes',
};

/** Why a request does not move, and what to do; '': it moves, or waits for its turn. */
export function whyWaiting({
  waiting,
  waitingFor,
  heldUntil,
}: Pick<Row, 'waiting' | 'waitingFor' | 'heldUntil'>): string {
  if (waitingFor === 'time' && heldUntil > 0) return `held back until ${clockTime(heldUntil)}`;
  const advice = ADVICE[waitingFor];
  return advice ? `${waiting}: ${advice}` : waiting;
}
