import { count, plural } from './format.js';
import type { Row } from './views.js';

/** The fleet, as far as it matters to what one request gets. */
export interface Fleet {
  /** Slots of the workers that take work. */
  readonly slots: number;
  readonly busy: number;
}

/** What keeps more of a request from running, in a sentence; '': that cannot be said. */
export function whyNoMore(
  { counts, ahead, limit, priority, waitingFor }: Row,
  { slots, busy }: Fleet,
): string {
  if (waitingFor !== '' || counts.ready <= ahead) return '';
  const free = Math.max(0, slots - busy);
  if (limit !== null && counts.running >= limit)
    return free > 0
      ? `Only its limit holds it back: ${plural(free, 'slot is', 'slots are')} free.`
      : 'It runs as many as its limit allows. Every slot of the fleet is busy, so a higher one would give it more only when slots become free.';
  if (slots > 0 && free === 0)
    return `Every slot of the fleet is busy: ${priority > 0 ? 'a smaller priority number or ' : ''}more workers would give it more.`;
  if (limit !== null && limit < slots)
    return `It runs up to ${count(limit)}, its limit, and takes free slots as soon as it can.`;
  return '';
}
