import type { SlotPool } from './slots.js';

/** What may hold sub-requests in this process: an engagement. */
interface Holder {
  /** Reads no more, and returns what it has not started. */
  leave(): void;
  /** Whether nothing runs, waits to be settled, or is under way. */
  readonly quiet: boolean;
}

/** What a worker holds, as long as it takes part in this. */
export interface Held {
  readonly held: () => Iterable<Holder>;
  /** How many handlers run now, those included that nobody waits for any more. */
  readonly running: () => number;
}

/**
 * Lets a suspect, a sub-request whose next crash would be its last, run alone in this process: so it
 * is judged by what it does itself, and takes nobody with it.
 *
 *   off → clearing → running → off
 *
 * clearing: somebody claimed it for a suspect. Every engagement leaves, all slots are taken, so that
 *           no token is popped; what runs may end, what was only read goes back.
 * running:  nothing is left but the suspect, which runs now. When it is settled the slots are free
 *           again, and work goes on as usual.
 */
export class Alone {
  readonly #slots: Pick<SlotPool, 'capacity' | 'take'>;
  readonly #held: () => Iterable<Holder>;
  readonly #handlers: () => number;
  #holder: Holder | undefined;
  #run: (() => void) | undefined;

  /** `handlers`: how many run now, those included that nobody waits for any more. */
  constructor(
    slots: Pick<SlotPool, 'capacity' | 'take'>,
    held: () => Iterable<Holder>,
    handlers: () => number,
  ) {
    this.#slots = slots;
    this.#held = held;
    this.#handlers = handlers;
  }

  /** Whether this process takes no work because of a suspect. */
  get active(): boolean {
    return this.#holder !== undefined;
  }

  /** Claims the process for a suspect of `holder`; `run` starts it. False: it is claimed already. */
  claim(holder: Holder, run: () => void): boolean {
    if (this.#holder) return false;
    this.#holder = holder;
    this.#run = run;
    this.#slots.take(this.#slots.capacity);
    for (const one of this.#held()) one.leave();
    return true;
  }

  /** To be called whenever something ended: runs the suspect once nothing else is left. */
  look(): void {
    const run = this.#run;
    if (!run || !this.#holder?.quiet || this.#handlers() > 0) return;
    for (const one of this.#held()) if (one !== this.#holder) return;
    this.#run = undefined;
    run();
  }

  /** The suspect is settled, or was given back; without effect for anybody else. */
  end(holder: Holder): void {
    if (this.#holder !== holder) return;
    this.#holder = undefined;
    this.#run = undefined;
    this.#slots.take(-this.#slots.capacity);
  }
}
