import type { Outcome } from '@piecework/protocol';
import type { Attempt } from '../handler/attempt.js';
import type { ServerMemory } from '../report/memory.js';
import type { Growth } from '../shared/growth.js';
import type { WorkerContext } from '../shared/worker-context.js';
import type { SessionCalls } from './session-calls.js';

/** How long a request is held whose results need room on a server that is nearly full. */
const FULL_HOLD_MS = 5_000;

/**
 * Whether the results of one request have room on its server. On a server that is nearly full, a request whose
 * results take more memory than its payloads free is not read; requests that free memory continue.
 */
export class MemoryRoom {
  readonly #context: WorkerContext;
  readonly #calls: SessionCalls;
  readonly #growth: Growth;
  #server: ServerMemory;

  constructor(context: WorkerContext, calls: SessionCalls, growth: Growth) {
    this.#context = context;
    this.#calls = calls;
    this.#growth = growth;
    this.#server = context.memory.of(calls.key);
  }

  /**
   * How many permits to ask for of `want`: none when the request lacks room, and it is held then; one while it is
   * unknown whether it needs any, so that a single sub-request shows it.
   */
  async permitsFor(want: number): Promise<number> {
    this.#server = this.#context.memory.of(this.#calls.key);
    if (want === 0) return want;
    if (this.#server.isStale) await this.#server.refresh();
    if (!this.#server.tight) return want;
    if (!this.#growth.isKnown) return 1;
    if (!(await this.#needsRoom())) return want;
    await this.#calls.holdRequest(FULL_HOLD_MS, 'memory');
    return 0;
  }

  /** Whether `holdIfFull` has to be called before more is read. */
  get mayLack(): boolean {
    const { isKnown, keeps, needsRoom } = this.#growth;
    const grows = isKnown && (keeps === undefined || needsRoom);
    return this.#server.isStale || (this.#server.tight && grows);
  }

  /**
   * Holds the request, for the whole fleet, when the server is too full for more of it: its permits are given back
   * as handlers end, and new tokens come when the hold ends. Returns whether it did.
   */
  async holdIfFull(): Promise<boolean> {
    if (this.#server.isStale) await this.#server.refresh();
    if (!this.#server.tight || !(await this.#needsRoom())) return false;
    await this.#calls.holdRequest(FULL_HOLD_MS, 'memory');
    return true;
  }

  /** Notes how much memory settling this outcome takes, and how much it frees. */
  note(attempt: Attempt, outcome: Outcome, isFinal: boolean): void {
    if (outcome.kind === 'b') return;
    const { length } = outcome.value;
    this.#server.settled(length);
    if (outcome.kind === 's') this.#growth.note(attempt.size, length);
    else if (isFinal) this.#growth.note(attempt.size, 0, length);
  }

  async #needsRoom(): Promise<boolean> {
    const growth = this.#growth;
    if (!growth.isKnown) return false;
    growth.keeps ??= await this.#calls.keepsResults();
    return growth.needsRoom;
  }
}
