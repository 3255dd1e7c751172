import { backoff } from '@piecework/protocol';
import { Stay } from './stay.js';

/** Looks under way at once. */
const AT_ONCE = 256;
/** After so long a look is given up and repeated; a stuck server must not hold up the others. */
const LOOK_MS = 10_000;

/**
 * Looks at many things, some at a time, each as often as it was asked for since its last look began.
 * What fails is looked at again, with backoff.
 */
export class Looks<Thing> {
  readonly #look: (thing: Thing) => Promise<void>;
  readonly #onError: (error: unknown) => void;
  readonly #asked = new Set<Thing>();
  readonly #failed = new Set<Thing>();
  readonly #backoff = backoff(50, 2_000);
  #underWay = 0;
  #retry: NodeJS.Timeout | undefined;

  constructor(look: (thing: Thing) => Promise<void>, onError: (error: unknown) => void) {
    this.#look = look;
    this.#onError = onError;
  }

  ask(things: Iterable<Thing>): void {
    for (const thing of things) this.#asked.add(thing);
    this.#begin();
  }

  forget(thing: Thing): void {
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
      void this.#lookAt(thing);
    }
  }

  async #lookAt(thing: Thing): Promise<void> {
    this.#underWay += 1;
    try {
      using stay = new Stay('reading the state of a request', { timeoutMs: LOOK_MS });
      await stay.race(this.#look(thing));
      this.#backoff.reset();
    } catch (error) {
      this.#onError(error);
      this.#failed.add(thing);
      this.#retry ??= setTimeout(() => this.#again(), this.#backoff.next());
    } finally {
      this.#underWay -= 1;
      this.#begin();
    }
  }

  #again(): void {
    this.#retry = undefined;
    const failed = [...this.#failed];
    this.#failed.clear();
    this.ask(failed);
  }
}
