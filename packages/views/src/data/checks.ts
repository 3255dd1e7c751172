import type { Admin, Finding } from 'piecework';
import type { Verdict } from '../shape/views.js';
import { type Addresses, cut } from './private.js';
import type { OnProblem } from './problems.js';

/** The doctor reads every open request: with more than this many it only works when somebody asks for it. */
const BY_ITSELF_UP_TO = 500;
const BY_ITSELF_EVERY_MS = 60_000;
/** However often somebody asks. */
const AT_MOST_EVERY_MS = 10_000;

export interface Checked {
  readonly at: number;
  readonly findings: readonly Verdict[];
}

/** What the doctor finds. It takes longer than a round, so a round does not wait for it. */
export class Checks {
  readonly #admin: Admin;
  readonly #addresses: Pick<Addresses, 'without'>;
  readonly #onProblem: OnProblem;
  #last: Checked | undefined;
  #begunAt = 0;
  #running: Promise<void> | undefined;

  constructor(admin: Admin, addresses: Pick<Addresses, 'without'>, onProblem: OnProblem) {
    this.#admin = admin;
    this.#onProblem = onProblem;
    this.#addresses = addresses;
  }

  get last(): (Checked & { readonly busy: boolean }) | null {
    const busy = this.#running !== undefined;
    if (!this.#last) return busy ? { at: 0, findings: [], busy } : null;
    return { ...this.#last, busy };
  }

  /** Begins when it is time, and the queue is small enough. */
  perhaps(open: number): void {
    if (open > BY_ITSELF_UP_TO || Date.now() - this.#begunAt < BY_ITSELF_EVERY_MS) return;
    void this.#begin();
  }

  /** Somebody asks. @returns whether it has begun, or is under way */
  ask(): boolean {
    if (this.#running) return true;
    if (Date.now() - this.#begunAt < AT_MOST_EVERY_MS) return false;
    void this.#begin();
    return true;
  }

  #begin(): Promise<void> {
    this.#running ??= this.#check().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #check(): Promise<void> {
    this.#begunAt = Date.now();
    let findings: Verdict[];
    try {
      findings = (await this.#admin.doctor()).map((finding) => this.#verdict(finding));
    } catch (error) {
      this.#onProblem(error, 'checks');
      const cure = 'On a terminal, piecework doctor says why.';
      findings = [{ level: 'error', what: 'The checks could not be finished.', cure }];
    }
    this.#last = { at: Date.now(), findings };
  }

  #verdict({ level, what, advice }: Finding): Verdict {
    const text = (said: string) => cut(this.#addresses.without(said), 600);
    return { level, what: text(what), cure: text(advice) };
  }
}
