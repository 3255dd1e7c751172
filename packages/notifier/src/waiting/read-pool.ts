import { backoff } from '@piecework/protocol';
import { WaitScope } from './wait-scope.js';

/** Reads under way at once. */
const AT_ONCE = 256;
/** After this time a read is given up and repeated, in ms; a stuck server must not hold up the others. */
const READ_MS = 10_000;

/**
 * Reads many things, some at a time. A thing that is asked for while it is being read is read once more
 * afterwards; one whose read fails is read again, with backoff.
 */
export class ReadPool<Thing extends object> {
  readonly #read: (thing: Thing) => Promise<void>;
  readonly #onError: (error: unknown) => void;
  readonly #asked = new Set<Thing>();
  readonly #failed = new Set<Thing>();
  /** What is read for nobody any more. */
  readonly #forgotten = new WeakSet<Thing>();
  readonly #backoff = backoff(50, 2_000);
  #underWay = 0;
  #retry: NodeJS.Timeout | undefined;

  constructor(read: (thing: Thing) => Promise<void>, onError: (error: unknown) => void) {
    this.#read = read;
    this.#onError = onError;
  }

  ask(things: Iterable<Thing>): void {
    for (const thing of things) {
      this.#forgotten.delete(thing);
      this.#asked.add(thing);
    }
    this.#begin();
  }

  forget(thing: Thing): void {
    this.#forgotten.add(thing);
    this.#asked.delete(thing);
    this.#failed.delete(thing);
    if (this.#failed.size > 0) return;
    clearTimeout(this.#retry);
    this.#retry = undefined;
  }

  #begin(): void {
    for (const thing of this.#asked) {
      if (this.#underWay >= AT_ONCE) return;
      this.#asked.delete(thing);
      void this.#readOne(thing);
    }
  }

  async #readOne(thing: Thing): Promise<void> {
    this.#underWay += 1;
    try {
      using scope = new WaitScope('reading the state of a request', { timeoutMs: READ_MS });
      await scope.race(this.#read(thing));
      this.#backoff.reset();
    } catch (error) {
      if (this.#forgotten.has(thing)) return;
      this.#onError(error);
      this.#failed.add(thing);
      this.#retry ??= setTimeout(() => this.#askFailed(), this.#backoff.next());
    } finally {
      this.#underWay -= 1;
      this.#begin();
    }
  }

  #askFailed(): void {
    this.#retry = undefined;
    const failed = [...this.#failed];
    this.#failed.clear();
    this.ask(failed);
  }
}
