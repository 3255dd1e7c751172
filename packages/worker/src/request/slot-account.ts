import type { Slots } from '../shared/slots.js';

/** For so long, in ms, a session waits for a promised slot; then it gives its permit back. */
const AWAIT_MS = 1_000;

/**
 * The slots that one session occupies in its process. A session whose handlers end soon can promise its slots to
 * another one: each that becomes free passes to that session at once, and nobody else takes it in between.
 */
export class SlotAccount {
  readonly #slots: Slots;
  readonly #onReceived: () => void;
  /** For enters that are not answered yet. */
  #reserved = 0;
  #occupied = 0;
  /** How many were promised to it, and are still occupied by another session. */
  #awaited = 0;
  #surplus = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Those that get what becomes free here, in this order. */
  readonly #successors: SlotAccount[] = [];

  /** `onReceived`: a promised slot is free now, or will not come. */
  constructor(slots: Slots, onReceived: () => void) {
    this.#slots = slots;
    this.#onReceived = onReceived;
  }

  /** How many it occupies and has not promised yet. */
  get promisable(): number {
    const promised = this.#successors.reduce((sum, one) => sum + one.#awaited, 0);
    return Math.max(0, this.#occupied - promised);
  }

  /** How many it occupies for the permits that were granted, and for zombies. */
  get held(): number {
    return this.#occupied - this.#reserved;
  }

  /** How many permits have no slot yet. */
  get withoutSlot(): number {
    return this.#awaited + this.#surplus;
  }

  /** How many permits will get no slot: they are to be given back. */
  get surplus(): number {
    return this.#surplus;
  }

  /** `from`: the account that promises them; otherwise they are free now. */
  reserve(n: number, from?: SlotAccount): void {
    this.#reserved += n;
    if (!from || n === 0) return;
    this.#awaited += n;
    from.#successors.push(this);
    this.#timer ??= this.#wait();
  }

  /**
   * An enter for `n` slots was answered. Until the next `occupy` nothing may be awaited, or the slots would be given
   * out twice. `unused`: how many of them another session promised in vain.
   */
  answered(n: number, unused = 0): void {
    this.#reserved -= n;
    this.#awaited = Math.max(0, this.#awaited - unused);
  }

  /** So many permits have no slot, and get none. */
  addSurplus(n: number): void {
    this.#surplus += n;
  }

  /** So many permits were given back. */
  returned(n: number): void {
    this.#surplus = Math.max(0, this.#surplus - n);
  }

  /** Waits no longer for slots that were promised. */
  renounce(): void {
    this.#surplus += this.#awaited;
    this.#awaited = 0;
  }

  /** So many are needed, for what runs and for permits, beside those that are reserved; `inUse`: for what runs. */
  occupy(needed: number, inUse: number): void {
    const wanted = needed + this.#reserved;
    this.#awaited = Math.min(this.#awaited, Math.max(0, wanted - inUse));
    const occupied = wanted - this.#awaited;
    let freed = this.#occupied - occupied;
    this.#occupied = occupied;
    while (freed > 0 && this.#successors[0]) {
      const [successor] = this.#successors;
      freed -= successor.#receive(freed);
      if (successor.#awaited === 0) this.#successors.shift();
    }
    if (freed !== 0) this.#slots.release(freed);
  }

  #wait(): NodeJS.Timeout {
    return setTimeout(() => {
      this.#timer = undefined;
      if (this.#awaited === 0) return;
      this.renounce();
      this.#onReceived();
    }, AWAIT_MS).unref();
  }

  #receive(free: number): number {
    const n = Math.min(free, this.#awaited);
    this.#awaited -= n;
    this.#occupied += n;
    if (n > 0) this.#onReceived();
    return n;
  }
}
