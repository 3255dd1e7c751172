import type { Entry } from '@piecework/protocol';

/** What may hold sub-requests in this process: a session. */
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

/** The slots of the process. */
interface Capacity {
  readonly capacity: number;
  /** Takes `n` of them from all who share them; negative: gives them back. */
  take(n: number): void;
}

/** Suspects of one session. */
interface Party {
  readonly size: number;
  /** Starts them; told how many suspects run in all. */
  readonly run: (company: number) => void;
  /** Gives them back, to this process or another; told for how long they waited, in ms. */
  readonly giveBack: (waitedMs: number) => void;
}

/**
 * The company in which a suspect runs is the one in which it crashed, divided by this. More makes fewer
 * crashes until the guilty one is found, less fewer runs: docs/decisions/0028-company-of-suspects.md.
 */
const SHRINK = 4;
/** How long suspects wait at first for the handlers that run beside them, in ms; twice as long each next time. */
const PATIENCE_MS = 5_000;
const LONGEST_PATIENCE_MS = 600_000;
/** How long a process that could not clear itself keeps a suspect that comes again before it gives it back, in ms. */
const PASS_ON_MS = 1_000;

/**
 * Lets suspects, sub-requests whose next crash may be their last, run with nothing but suspects beside
 * them, in smaller company after each crash and alone in the end: so each is judged by what it does
 * itself, and takes nobody else with it.
 *
 *   off → clearing → running → off
 *              └────────────────→ off, and refusing
 *
 * clearing: somebody claimed the process for its suspects. Every session leaves, all slots are taken,
 *           so that no token is popped; what runs may end, what was only read goes back. Suspects that
 *           others had asked for by then join, as far as the company of each allows.
 * running:  nothing is left but the suspects, which run now. When all are settled the slots are free
 *           again, and work goes on as usual.
 * refusing: what ran before them did not end in time: a handler that hangs would stop this process, and keep
 *           the suspects from one that is idle. They go back, and for as long as the next attempt would take
 *           this process works as usual; suspects that come meanwhile go on to others after a moment.
 */
export class Isolation {
  readonly #slots: Capacity;
  readonly #held: () => Iterable<Holder>;
  readonly #handlers: () => number;
  readonly #parties = new Map<Holder, Party>();
  /** The smallest company that one of them may run in. */
  #most = Number.POSITIVE_INFINITY;
  #running = false;
  #patienceMs = PATIENCE_MS;
  #timer: NodeJS.Timeout | undefined;
  /** As performance.now(). */
  #refusesUntil = 0;

  /** `handlers`: how many run now, those included that nobody waits for any more. */
  constructor(slots: Capacity, held: () => Iterable<Holder>, handlers: () => number) {
    this.#slots = slots;
    this.#held = held;
    this.#handlers = handlers;
  }

  /** Whether this process takes no work because of suspects. */
  get active(): boolean {
    return this.#parties.size > 0;
  }

  /** Whether more suspects may join. */
  get clearing(): boolean {
    return this.active && !this.#running;
  }

  /**
   * Claims the process for suspects of `holder`, or joins who did. Returns those that got in, or wait to be given
   * back: the others would be too many for one of them.
   */
  claim<S extends Pick<Entry, 'company'>>(
    holder: Holder,
    suspects: readonly S[],
    calls: Pick<Party, 'run' | 'giveBack'>,
  ): readonly S[] {
    if (this.#running) return [];
    if (!this.active && performance.now() < this.#refusesUntil) {
      setTimeout(() => calls.giveBack(PASS_ON_MS), PASS_ON_MS).unref();
      return suspects;
    }
    let size = this.#size;
    const admitted = suspects.filter((suspect) => {
      const most = Math.min(this.#most, this.#allowedTo(suspect));
      if (size >= most) return false;
      this.#most = most;
      size += 1;
      return true;
    });
    if (admitted.length === 0) return admitted;
    const first = !this.active;
    const before = this.#parties.get(holder)?.size ?? 0;
    this.#parties.set(holder, { size: before + admitted.length, ...calls });
    if (first) {
      this.#timer = setTimeout(() => this.#giveUp(), this.#patienceMs).unref();
      this.#slots.take(this.#slots.capacity);
      for (const one of this.#held()) one.leave();
    }
    return admitted;
  }

  /** To be called whenever something ended: runs the suspects once nothing else is left. */
  look(): void {
    if (!this.clearing || this.#handlers() > 0) return;
    for (const one of this.#held()) if (!this.#parties.has(one) || !one.quiet) return;
    this.#running = true;
    this.#patienceMs = PATIENCE_MS;
    clearTimeout(this.#timer);
    const company = this.#size;
    for (const { run } of [...this.#parties.values()]) run(company);
  }

  /** Its suspects are settled, or were given back; without effect for anybody else. */
  end(holder: Holder): void {
    if (!this.#parties.delete(holder) || this.active) return;
    this.#most = Number.POSITIVE_INFINITY;
    this.#running = false;
    clearTimeout(this.#timer);
    this.#slots.take(-this.#slots.capacity);
  }

  #giveUp(): void {
    const waitedMs = this.#patienceMs;
    this.#patienceMs = Math.min(2 * waitedMs, LONGEST_PATIENCE_MS);
    this.#refusesUntil = performance.now() + this.#patienceMs;
    for (const [holder, { giveBack }] of [...this.#parties]) {
      giveBack(waitedMs);
      // Its request may be over, and with it the suspects, while a handler of it still runs.
      this.end(holder);
    }
  }

  get #size(): number {
    let size = 0;
    for (const party of this.#parties.values()) size += party.size;
    return size;
  }

  #allowedTo({ company }: Pick<Entry, 'company'>): number {
    return Math.max(1, Math.floor((company || this.#slots.capacity) / SHRINK));
  }
}
