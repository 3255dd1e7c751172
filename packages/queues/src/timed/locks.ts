import { createHash } from 'node:crypto';
import type { TakenItem } from './taken-item.js';

/** Longer keys, in characters, are remembered by their digest. */
const LONG = 1_024;

/**
 * The key under which the Map remembers an object. V8 hashes texts of more than 16,383 characters by their length
 * alone: in a Map of long texts of the same length, each lookup would go through all of them.
 */
// cure: long keys are remembered by a digest
const digestOf = (key: string) =>
  key.length > LONG ? createHash('sha256').update(key).digest('base64') : key;

/**
 * The locks of one Scheduler, by key. A lock is remembered for twice its length: a `remove` that comes a little late
 * still removes the occurrence that was taken, and not one that was enqueued since.
 */
export class Locks {
  readonly #locked = new Map<string, { readonly item: TakenItem; readonly untilMs: number }>();

  add(item: TakenItem): void {
    this.#sweep();
    const { endsMs, renewedMs, taken } = item;
    const digest = digestOf(taken.key);
    this.#locked.delete(digest);
    this.#locked.set(digest, { item, untilMs: endsMs + (endsMs - renewedMs) });
  }

  /** The token of the lock on `key`, or undefined if this Scheduler has none. */
  tokenOf(key: string): string | undefined {
    const found = this.#locked.get(digestOf(key));
    if (!found || found.untilMs < performance.now()) return undefined;
    return found.item.token;
  }

  /** The object that was locked under `token` was removed, or moved. */
  forget(key: string, token: string | undefined): void {
    const digest = digestOf(key);
    const found = this.#locked.get(digest);
    // It may have been taken again meanwhile.
    if (!found || found.item.token !== token) return;
    this.#locked.delete(digest);
    found.item.end();
  }

  /** Forgets expired locks, oldest first, up to the first that has not expired. */
  #sweep(): void {
    for (const [digest, { untilMs }] of this.#locked) {
      if (untilMs >= performance.now()) return;
      this.#locked.delete(digest);
    }
  }
}
