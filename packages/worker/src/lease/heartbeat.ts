import { ConnectionError, leaseCheckMs, renewAfterMs } from '@piecework/protocol';
import type { Logger } from 'pino';
import type { Events } from '../report/events.js';

/** What has a lease: a session. */
interface Leased {
  readonly id: string;
  readonly lease: {
    /** Stops believing in the lease when it ends by this process's own clock. */
    fence(): void;
    /** Extends the lease if nothing else did for `everyMs`. */
    renew(everyMs: number): Promise<void>;
  };
  readonly attempts: { noteSlow(): void };
  /** Gives back what only the server believes to run here, every `everyMs` at most. */
  compare(everyMs: number): void;
}

/**
 * Keeps the leases of all sessions of this process: renews each after a third of its time unless a settle did,
 * sooner when handlers reported progress, and makes a session leave when its lease is about to end by this
 * process's own clock. In the same rhythm each session compares what it runs with what the server believes that
 * it runs, and logs handlers that run far longer than usual.
 */
export class Heartbeat {
  readonly #leaseMs: number;
  readonly #sessions: () => Iterable<Leased>;
  readonly #logger: Logger;
  readonly #events: Events;
  #timer: NodeJS.Timeout | undefined;

  constructor(leaseMs: number, sessions: () => Iterable<Leased>, logger: Logger, events: Events) {
    this.#leaseMs = leaseMs;
    this.#sessions = sessions;
    this.#logger = logger;
    this.#events = events;
  }

  start(): void {
    // After what has arrived by then is read: the answer to a renewal may be among it.
    const beat = () => setImmediate(() => this.#beat());
    this.#timer ??= setInterval(beat, leaseCheckMs(this.#leaseMs));
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #beat(): void {
    if (this.#timer === undefined) return;
    for (const session of this.#sessions()) {
      session.lease.fence();
      session.attempts.noteSlow();
      // cure: give-back of entries that a lost reply brought
      session.compare(renewAfterMs(this.#leaseMs));
      session.lease.renew(renewAfterMs(this.#leaseMs)).catch((error: unknown) => {
        // The next beat tries again; the fence acts if none succeeds.
        if (!(error instanceof ConnectionError)) this.#logger.warn({ err: error }, 'renew failed');
        this.#events.emitError(error, { requestId: session.id });
      });
    }
  }
}
