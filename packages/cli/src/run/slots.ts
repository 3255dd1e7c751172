import { InvalidOptionError } from '@piecework/protocol/contract';
import { cores } from '../processes/cores.js';

/** Programs that one process can serve without slowing them down. */
const PROGRAMS_PER_PROCESS = 64;
/** The most slots that a worker process may have. */
const MOST_SLOTS = 10_000;

interface SlotValues {
  readonly processes: number;
  readonly concurrency: number;
  readonly limit?: number | null;
  readonly jobs?: number;
  readonly handler?: string;
}

/** What `run` starts: worker processes, slots of each, and how many sub-requests may run at once. */
export interface Slots {
  readonly processes: number;
  readonly concurrency: number;
  /** null: no limit. */
  readonly limit: number | null;
  /** Says in words that slots were idle, or that the limit was never reached, with `total` items. */
  unused(total: number): string | undefined;
}

/**
 * `--jobs` is the number of slots in all; without it, a `--limit` gets as many slots as it can use. `--processes` or
 * `--concurrency` are kept as they are given.
 * @param given names of the flags that were given
 * @throws InvalidOptionError when all three are given
 */
export function slotsOf(given: Record<string, unknown>, values: SlotValues): Slots {
  const { jobs, handler } = values;
  const cap = given['limit'] === undefined ? undefined : (values.limit ?? undefined);
  let { processes, concurrency } = values;
  const fixed = { processes: 'processes' in given, concurrency: 'concurrency' in given };
  if (jobs !== undefined && fixed.processes && fixed.concurrency) {
    const allowed = 'together with at most one of --processes and --concurrency';
    throw new InvalidOptionError('--jobs', jobs, allowed);
  }
  const wanted = jobs ?? (fixed.concurrency ? undefined : cap);
  if (wanted !== undefined) {
    if (fixed.concurrency) processes = Math.ceil(wanted / concurrency);
    else if (!fixed.processes) {
      processes = Math.ceil(wanted / MOST_SLOTS);
      if (jobs !== undefined) processes = Math.max(processes, processesFor(jobs, handler));
    }
    if (!fixed.concurrency) concurrency = Math.min(MOST_SLOTS, Math.ceil(wanted / processes));
  }
  const slots = jobs ?? processes * concurrency;
  const lowest = Math.min(cap ?? Number.POSITIVE_INFINITY, jobs ?? Number.POSITIVE_INFINITY);
  const limit = Number.isFinite(lowest) ? lowest : null;
  return { processes, concurrency, limit, unused: (total) => unused(cap, slots, total) };
}

/** A handler runs in the worker process and needs a core; programs are processes of their own. */
function processesFor(jobs: number, handler: string | undefined): number {
  const useful = handler === undefined ? Math.ceil(jobs / PROGRAMS_PER_PROCESS) : jobs;
  return Math.min(useful, cores());
}

function unused(cap: number | undefined, slots: number, total: number): string | undefined {
  const number = (n: number) => n.toLocaleString('en-US');
  if (cap === undefined || cap === slots || total <= Math.min(cap, slots)) return undefined;
  if (cap < slots)
    return `--limit ${number(cap)} left ${number(slots - cap)} of ${number(slots)} slots idle`;
  return `--limit ${number(cap)} was never reached: there were ${number(slots)} slots (-j ${cap} makes enough)`;
}
