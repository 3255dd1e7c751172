import { setTimeout as sleep } from 'node:timers/promises';
import type { Handle } from './small-contender.js';
import type { Attempts, SmallOrder } from './small-order.js';

type Order = Pick<SmallOrder, 'count' | 'size' | 'handlerMs' | 'failingPercent' | 'attempts'>;
type Rule = Pick<Order, 'handlerMs' | 'failingPercent'>;

/** Whether the first attempt of sub-request `n` fails: spread evenly, and the same for all contenders. */
const failsFirst = (n: number, percent: number) => (n * percent) % 100 < percent;

/** The handlers of a process. A sub-request that fails succeeds at its second attempt, if it has one. */
export class Handlers {
  #made = 0;
  #failed = 0;

  constructor(readonly rule: Rule) {}

  readonly handle: Handle = async ({ n }, attempt) => {
    const { handlerMs, failingPercent } = this.rule;
    this.#made += 1;
    if (handlerMs > 0) await sleep(handlerMs);
    if (attempt === 1 && failsFirst(n, failingPercent)) {
      this.#failed += 1;
      throw new Error(`sub-request ${n} fails at its first attempt`);
    }
    return n;
  };

  /** Attempts since the last call. */
  take(): Attempts {
    const attempts = { made: this.#made, failed: this.#failed };
    [this.#made, this.#failed] = [0, 0];
    return attempts;
  }
}

/** @throws Error unless each sub-request was attempted once, and those that fail by the rule once more if they may */
export function checkAttempts(
  { count, size, failingPercent, attempts }: Omit<Order, 'handlerMs'>,
  { made, failed }: Attempts,
): void {
  const all = Array.from({ length: count * size }, (_, n) => n);
  const failing = all.filter((n) => failsFirst(n, failingPercent)).length;
  const due = all.length + (attempts - 1) * failing;
  if (made === due && failed === failing) return;
  throw new Error(`${made} attempts, of which ${failed} failed, instead of ${due} and ${failing}`);
}
