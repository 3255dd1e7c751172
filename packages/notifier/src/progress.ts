import { pause, type RequestCommands } from '@piecework/protocol';
import type { Counts } from './outcome.js';
import { countsOf } from './status.js';

/** How far a request is. */
export interface ProgressReport {
  readonly status: string;
  readonly generation: number;
  readonly counts: Counts;
  /** Settled per second, over the last reports. */
  readonly ratePerSecond: number;
  /** Time left at this rate, in ms; null while it cannot be told. */
  readonly etaMs: number | null;
}

/** How many reports the rate is taken over. */
const WINDOW = 10;

/** Reports every `everyMs` and once more at the completion; ends then. */
export async function* progressReports(
  commands: RequestCommands,
  everyMs: number,
  done: Promise<unknown>,
): AsyncGenerator<ProgressReport> {
  const wake = new AbortController();
  let failure: unknown;
  let ended = false;
  done
    .catch((error: unknown) => {
      failure = error;
    })
    .finally(() => {
      ended = true;
      wake.abort();
    });
  const samples: { at: number; settled: number }[] = [];
  for (;;) {
    if (failure) throw failure;
    const last = ended;
    const seen = await commands.inspect();
    if (seen?.state['status'] && seen.state['total'] !== undefined) {
      const counts = countsOf(seen);
      const settled = counts.succeeded + counts.failed + counts.cancelled;
      samples.push({ at: performance.now(), settled });
      if (samples.length > WINDOW) samples.shift();
      const ratePerSecond = rateOf(samples);
      const left = counts.total - settled;
      yield {
        status: seen.state['status'],
        generation: Number(seen.state['generation']),
        counts,
        ratePerSecond,
        etaMs: ratePerSecond > 0 ? Math.round((left / ratePerSecond) * 1_000) : null,
      };
      if (seen.state['status'] === 'complete') return;
    }
    if (last) return;
    await pause(everyMs, wake.signal);
  }
}

function rateOf(samples: readonly { at: number; settled: number }[]): number {
  const [first, last] = [samples[0], samples.at(-1)];
  if (!first || !last || last.at === first.at) return 0;
  return ((last.settled - first.settled) * 1_000) / (last.at - first.at);
}
