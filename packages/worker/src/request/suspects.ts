import type { Entry } from '@piecework/protocol';
import type { RunLog } from '../report/run-log.js';
import type { Holder, Isolation } from '../shared/isolation.js';
import type { SessionMode } from './session-mode.js';

const NONE: ReadonlySet<Entry> = new Set();

interface Session extends Holder {
  readonly shard: { readonly paused: boolean };
}

interface Hooks {
  /** Nothing else runs in this process: they may run, with `company` suspects in all. */
  readonly run: (company: number) => void;
  readonly giveBack: (entry: string) => void;
  /** Registers at the server that these run now, with no more than `company` in this process. */
  readonly register: (
    company: number,
    suspects: readonly Entry[],
  ) => Promise<'ok' | 'gone' | 'lost'>;
  /** Checks the lease by the clock of this process. */
  readonly fence: () => void;
  readonly start: (suspect: Entry, now: number) => void;
}

/** The suspects of one session that wait until nothing else runs in this process. Each needs a permit. */
export class Suspects {
  readonly #context: { readonly isolation: Isolation; readonly closing: boolean };
  readonly #session: Session;
  readonly #mode: SessionMode;
  readonly #log: RunLog;
  readonly #hooks: Hooks;
  #waiting: readonly Entry[] = [];

  constructor(
    context: { readonly isolation: Isolation; readonly closing: boolean },
    session: Session,
    mode: SessionMode,
    log: RunLog,
    hooks: Hooks,
  ) {
    this.#context = context;
    this.#session = session;
    this.#mode = mode;
    this.#log = log;
    this.#hooks = hooks;
  }

  get waiting(): readonly Entry[] {
    return this.#waiting;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** Claims the process for the suspects among `entries`, up to `room`. Returns those that wait here now. */
  claim(entries: readonly Entry[], room: number): ReadonlySet<Entry> {
    const { isolation } = this.#context;
    if (room <= 0 || !this.#mayClaim || !entries.some(({ suspect }) => suspect)) return NONE;
    const suspects = entries.filter(({ suspect }) => suspect);
    const admitted = isolation.claim(this.#session, suspects.slice(0, room), {
      run: this.#hooks.run,
      giveBack: (waitedMs) => this.#passOn(waitedMs),
    });
    this.#waiting = [...this.#waiting, ...admitted];
    return new Set(admitted);
  }

  /** Others may have claimed the process while these were read, and made their session leave. */
  get #mayClaim(): boolean {
    const { isolation, closing } = this.#context;
    return this.#mode.working || (isolation.clearing && !closing && !this.#session.shard.paused);
  }

  /** Starts them; nothing else runs in this process, and the server knows before they do. */
  async startAll(company: number): Promise<'ok' | 'gone' | 'lost'> {
    const suspects = this.#waiting;
    if (suspects.length === 0) return 'ok';
    const verdict = await this.#hooks.register(company, suspects);
    if (verdict !== 'ok') return verdict;
    // cure: the lease is checked before a suspect starts
    this.#hooks.fence();
    // They may have been given back meanwhile.
    if (this.#waiting !== suspects) return 'ok';
    this.#waiting = [];
    for (const suspect of suspects) this.#hooks.start(suspect, performance.now());
    return 'ok';
  }

  /** Gives all of them back. */
  return(): void {
    if (this.#waiting.length === 0) return;
    for (const { entry } of this.#waiting) this.#hooks.giveBack(entry);
    this.#waiting = [];
    this.#context.isolation.end(this.#session);
  }

  /** Forgets them, as the request has ended. */
  clear(): void {
    this.#waiting = [];
  }

  /** What ran beside them did not end within `waitedMs`: another process is to run them. */
  #passOn(waitedMs: number): void {
    if (this.#waiting.length === 0) return;
    this.#log.passedOn(this.#waiting, waitedMs);
    this.return();
    this.#mode.passOn();
    this.#session.leave();
  }
}
