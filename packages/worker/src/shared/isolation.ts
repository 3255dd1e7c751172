import type { Entry, RegisteredWorker } from '@piecework/protocol';

/** What may run sub-requests in this process: a session. */
export interface Holder {
  /** Id of its request. */
  readonly id: string;
  /** Reads no more, and returns what it has not started. */
  leave(): void;
  /** Whether nothing runs, waits to be settled, or is under way. */
  readonly quiet: boolean;
}

/** What a worker runs. */
export interface Member {
  readonly sessions: () => Iterable<Holder>;
  /** How many handlers run now, abandoned ones included. */
  readonly running: () => number;
}

/** The slots of the process. */
interface Capacity {
  readonly capacity: number;
  /** Takes `n` of them from all who share them. */
  take(n: number): void;
  release(n: number): void;
}

/** Suspects of one session. */
interface Party {
  readonly size: number;
  /** Starts them; `company` suspects run in all. */
  readonly run: (company: number) => void;
  /** Gives them back, to this process or another, after they waited for `waitedMs`. */
  readonly giveBack: (waitedMs: number) => void;
}

/**
 * A suspect runs in the company in which it crashed, divided by this. A larger divisor needs fewer crashes to find
 * the guilty one, a smaller divisor fewer runs: docs/decisions/0028-suspects-in-groups.md.
 */
const SHRINK = 4;
/** How long suspects first wait for the handlers that run beside them, in ms; twice as long each next time. */
const PATIENCE_MS = 5_000;
const LONGEST_PATIENCE_MS = 600_000;
/** Of how many requests it reports suspects. */
const REPORTED = 10;
/** How long a process that could not be cleared keeps another suspect before it gives it back, in ms. */
const PASS_ON_MS = 1_000;

/**
 * Isolates suspects: sub-requests whose next crash may be their last. They run with nothing but suspects beside
 * them, in smaller company after each crash, and in the end with nothing else. So each is judged by what it does
 * itself, and a crash takes no other work with it.
 *
 *   off → clearing → running → off
 *              └────────────────→ off, and refusing
 *
 * clearing: a session claimed the process for its suspects. Every session leaves, and all slots are taken, so that
 *           no token is popped; what runs may end, what was only read is given back. Suspects that other sessions
 *           had asked for by then join, as far as the company of each allows.
 * running:  only the suspects are left, and run now. When all are settled, the slots are free again, and the
 *           process works as usual.
 * refusing: what ran before them did not end in time. A handler that hangs would block this process, and keep the
 *           suspects from an idle one. They are given back, and for as long as the next try would take, this
 *           process works as usual; suspects that come meanwhile are passed on to others after a moment.
 */
export class Isolation {
  readonly #slots: Capacity;
  readonly #sessions: () => Iterable<Holder>;
  readonly #handlers: () => number;
  readonly #parties = new Map<Holder, Party>();
  /** While it refuses: the requests whose suspects were given back or passed on. */
  readonly #refused = new Set<string>();
  /** The smallest company that one of them may run in. */
  #most = Number.POSITIVE_INFINITY;
  #running = false;
  #patienceMs = PATIENCE_MS;
  #timer: NodeJS.Timeout | undefined;
  /** As performance.now(). */
  #refusesUntil = 0;

  /** `handlers`: how many run now, abandoned ones included. */
  constructor(slots: Capacity, sessions: () => Iterable<Holder>, handlers: () => number) {
    this.#slots = slots;
    this.#sessions = sessions;
    this.#handlers = handlers;
  }

  /** Whether this process takes no work because of suspects. */
  get active(): boolean {
    return this.#parties.size > 0;
  }

  /** The requests whose suspects run here alone, or wait for that; undefined: none. */
  get report(): RegisteredWorker['suspects'] {
    const isRefusing = !this.active && performance.now() < this.#refusesUntil;
    if (!isRefusing) this.#refused.clear();
    const ids = isRefusing ? this.#refused : Array.from(this.#parties.keys(), ({ id }) => id);
    const requests = [...ids].slice(0, REPORTED);
    return requests.length === 0 ? undefined : { requests, wait: !this.#running };
  }

  /** Why this process takes no work; '': it does. */
  get said(): string {
    if (!this.active || !this.report) return '';
    const [first, ...others] = this.report.requests;
    const more = others.length === 0 ? '' : ` and ${others.length} more`;
    const whose = `sub-requests of ${first}${more} whose workers died`;
    return this.#running
      ? `${whose} run alone in it`
      : `${whose} wait to run alone in it, until the handlers beside them end`;
  }

  /** Whether more suspects may join. */
  get clearing(): boolean {
    return this.active && !this.#running;
  }

  /**
   * Claims the process for suspects of `holder`, or joins those for whom it is claimed. Returns the suspects that
   * wait here now. The company of one of them allows no more than these.
   */
  claim<S extends Pick<Entry, 'company'>>(
    holder: Holder,
    suspects: readonly S[],
    calls: Pick<Party, 'run' | 'giveBack'>,
  ): readonly S[] {
    // cure: suspects of several requests make one company
    if (this.#running) return [];
    if (!this.active && performance.now() < this.#refusesUntil) {
      this.#refused.add(holder.id);
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
      for (const one of this.#sessions()) one.leave();
    }
    return admitted;
  }

  /** To be called whenever something ended: runs the suspects once nothing else is left. */
  check(): void {
    if (!this.clearing || /* cure: a suspect runs in isolation */ this.#handlers() > 0) return;
    // cure: isolation waits until all sessions are quiet
    for (const one of this.#sessions()) if (!this.#parties.has(one) || !one.quiet) return;
    this.#running = true;
    this.#patienceMs = PATIENCE_MS;
    clearTimeout(this.#timer);
    const company = this.#size;
    for (const { run } of [...this.#parties.values()]) run(company);
  }

  /** The suspects of `holder` are settled, or were given back; without effect if it has none. */
  end(holder: Holder): void {
    if (!this.#parties.delete(holder) || this.active) return;
    this.#most = Number.POSITIVE_INFINITY;
    this.#running = false;
    clearTimeout(this.#timer);
    this.#slots.release(this.#slots.capacity);
  }

  #giveUp(): void {
    const waitedMs = this.#patienceMs;
    this.#patienceMs = Math.min(2 * waitedMs, LONGEST_PATIENCE_MS);
    this.#refusesUntil = performance.now() + this.#patienceMs;
    this.#refused.clear();
    for (const [holder, { giveBack }] of [...this.#parties]) {
      this.#refused.add(holder.id);
      // cure: suspects are returned when other handlers do not end
      giveBack(waitedMs);
      // Its request, and with it the suspects, may have ended while one of its handlers still runs.
      this.end(holder);
    }
  }

  get #size(): number {
    let size = 0;
    for (const party of this.#parties.values()) size += party.size;
    return size;
  }

  #allowedTo({ company }: Pick<Entry, 'company'>): number {
    // cure: a crash makes the company smaller
    return Math.max(1, Math.floor((company || this.#slots.capacity) / SHRINK));
  }
}
