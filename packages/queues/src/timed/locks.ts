import { createHash } from 'node:crypto';
import type { Holding } from './holding.js';

/** Longer keys are remembered by their digest, in characters. */
const LONG = 1_024;

/**
 * A key of a Map. V8 hashes a text of more than 16,383 characters by its length alone, so that a Map of long texts of
 * one length is a list.
 */
const digestOf = (key: string) =>
  key.length > LONG ? createHash('sha256').update(key).digest('base64') : key;

/**
 * What a Scheduler has locked, by key. A lock is remembered for as long again as it lasted: whoever
 * removes a little late still means what he took, not what came after it.
 */
export class Locks {
  readonly #held = new Map<string, { readonly holding: Holding; readonly untilMs: number }>();

  add(holding: Holding): void {
    this.#sweep();
    const { endsMs, renewedMs, taken } = holding;
    const digest = digestOf(taken.key);
    this.#held.delete(digest);
    this.#held.set(digest, { holding, untilMs: endsMs + (endsMs - renewedMs) });
  }

  /** The token of its lock; undefined: it is not locked here. */
  tokenOf(key: string): string | undefined {
    const found = this.#held.get(digestOf(key));
    if (!found || found.untilMs < performance.now()) return undefined;
    return found.holding.token;
  }

  /** What was locked under `token` was removed, or moved. */
  forget(key: string, token: string | undefined): void {
    const digest = digestOf(key);
    const found = this.#held.get(digest);
    // It may have been taken again meanwhile.
    if (!found || found.holding.token !== token) return;
    this.#held.delete(digest);
    found.holding.end();
  }

  /** The oldest go first; those behind a longer lock wait for it. */
  #sweep(): void {
    for (const [digest, { untilMs }] of this.#held) {
      if (untilMs >= performance.now()) return;
      this.#held.delete(digest);
    }
  }
}
