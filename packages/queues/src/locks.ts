import type { Holding } from './holding.js';

/**
 * What a Scheduler has locked, by key. A lock is remembered for as long again as it lasted: whoever
 * removes a little late still means what he took, not what came after it.
 */
export class Locks {
  readonly #held = new Map<string, { readonly holding: Holding; readonly untilMs: number }>();

  add(holding: Holding): void {
    this.#sweep();
    const { endsMs, renewedMs, taken } = holding;
    this.#held.delete(taken.key);
    this.#held.set(taken.key, { holding, untilMs: endsMs + (endsMs - renewedMs) });
  }

  /** The token of its lock; undefined: it is not locked here. */
  tokenOf(key: string): string | undefined {
    const found = this.#held.get(key);
    if (!found || found.untilMs < performance.now()) return undefined;
    return found.holding.token;
  }

  /** What was locked under `token` was removed, or moved. */
  forget(key: string, token: string | undefined): void {
    const found = this.#held.get(key);
    // It may have been taken again meanwhile.
    if (!found || found.holding.token !== token) return;
    this.#held.delete(key);
    found.holding.end();
  }

  /** The oldest go first; those behind a longer lock wait for it. */
  #sweep(): void {
    for (const [key, { untilMs }] of this.#held) {
      if (untilMs >= performance.now()) return;
      this.#held.delete(key);
    }
  }
}
