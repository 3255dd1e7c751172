import { vi } from 'vitest';
import type { Flow } from './flow.js';

/** The clock of this process, `performance.now()`, in the hand of a test. Timers go by the real time. */
export interface OwnClock {
  /** From here on it is `ms` further ahead. */
  move(ms: number): void;
  /** From here on it stands still, unless it is moved: nothing is late, however busy the machine is. */
  stop(): void;
  /** It goes by the real time again, and by what it was moved. */
  go(): void;
}

/** Until the test is over. `until` gives up by this clock too: while it stands still, the test's own time limit does. */
export function ownClock(flow: Pick<Flow, 'after'>): OwnClock {
  const real = performance.now.bind(performance);
  let ahead = 0;
  let stoppedAt: number | undefined;
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => (stoppedAt ?? real()) + ahead);
  flow.after(() => spy.mockRestore());
  return {
    move: (ms) => {
      ahead += ms;
    },
    stop: () => {
      stoppedAt = real();
    },
    go: () => {
      stoppedAt = undefined;
    },
  };
}
