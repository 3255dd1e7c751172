import { ConnectionError } from '@piecework/protocol';
import type { Logger } from 'pino';
import type { Events } from '../report/events.js';

/** What is held under one lease: an session. */
interface Leased {
  readonly id: string;
  /** Stops believing in the lease by the own clock. */
  fence(): void;
  noteSlow(): void;
  /** Hands back what only the server believes to run here, every `everyMs` at most. */
  compare(everyMs: number): void;
  /** Extends the lease if nothing else did for `everyMs`. */
  renew(everyMs: number): Promise<void>;
}

/**
 * Keeps the leases of everything that this process holds: renews each at a third of its time unless
 * a settle did, sooner when handlers reported progress, and tells an session to stop when, by our
 * own clock, its lease is about to end. In the same rhythm each compares what it runs with what the
 * server believes that it runs, and logs what runs far longer than usual.
 */
export class Heartbeat {
  readonly #leaseMs: number;
  readonly #held: () => Iterable<Leased>;
  readonly #logger: Logger;
  readonly #events: Events;
  #timer: NodeJS.Timeout | undefined;

  constructor(leaseMs: number, held: () => Iterable<Leased>, logger: Logger, events: Events) {
    this.#leaseMs = leaseMs;
    this.#held = held;
    this.#logger = logger;
    this.#events = events;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#look(), Math.min(1_000, this.#leaseMs / 10));
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    for (const session of this.#held()) {
      session.fence();
      session.noteSlow();
      session.compare(this.#leaseMs / 3);
      session.renew(this.#leaseMs / 3).catch((error: unknown) => {
        // Tried again at the next look; the fence acts if it never succeeds.
        if (!(error instanceof ConnectionError)) this.#logger.warn({ err: error }, 'renew failed');
        this.#events.tellError(error, { requestId: session.id });
      });
    }
  }
}
