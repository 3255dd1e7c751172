import { type Inspected, pause, type RequestCommands } from '@piecework/protocol';
import type { ProgressOptions } from './options.js';
import { type Counts, finalCounts } from './outcome.js';
import { persist } from './persist.js';
import { Rate } from './rate.js';
import { BOOKS, countsOf } from './status.js';
import { Stay } from './stay.js';
import type { Ticket } from './ticket.js';

export interface ProgressReport {
  readonly counts: Counts;
  readonly generation: number;
  /** 'open', 'sealed', 'cancelling' or, in the last report, 'complete'. */
  readonly status: string;
  /** Settled per second over about the last ten seconds. */
  readonly ratePerSecond: number;
  /** Until completion at this rate; null when it cannot be told: nothing moves, or it is not sealed. */
  readonly etaMs: number | null;
}

/** Reports until the completion; the last one is of it. */
export async function* progressOf(
  request: RequestCommands,
  join: () => Ticket,
  options: ProgressOptions & { everyMs: number },
  closing: AbortSignal,
): AsyncGenerator<ProgressReport> {
  using stay = new Stay(`progress of ${request.keys.id}`, options, closing);
  const ticket = join();
  stay.hindered = () => ticket.hindered;
  const rate = new Rate();
  try {
    await stay.race(ticket.looked);
    const wakes = [ticket.over, stay.signal];
    for (;;) {
      ticket.throwIfAbsent();
      const seen = ticket.complete ? null : await persist(stay, () => request.inspect(BOOKS));
      const { complete } = ticket;
      if (complete) {
        const counts = finalCounts(complete);
        const { generation, status } = complete;
        const ratePerSecond = rate.note(generation, counts.total);
        yield { counts, generation, status, ratePerSecond, etaMs: 0 };
        return;
      }
      if (seen && isActive(seen)) yield report(seen, rate);
      // Ended, or gone: the ticket is about to say so; it is asked, in case the notice was lost.
      else ticket.ask();
      await stay.race(pause(options.everyMs, ...wakes));
    }
  } finally {
    ticket.leave();
  }
}

const isActive = ({ state }: Inspected) =>
  ['open', 'sealed', 'cancelling'].includes(state['status'] ?? '');

function report(seen: Inspected, rate: Rate): ProgressReport {
  const counts = countsOf(seen);
  const status = seen.state['status'] ?? '';
  const generation = Number(seen.state['generation']);
  const settled = counts.succeeded + counts.failed + counts.cancelled;
  const ratePerSecond = rate.note(generation, settled);
  const known = status !== 'open' && ratePerSecond > 0;
  const etaMs = known ? ((counts.total - settled) * 1_000) / ratePerSecond : null;
  return { counts, generation, status, ratePerSecond, etaMs };
}
