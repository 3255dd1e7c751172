import { type Connection, isAborted, LongTimer, onAbort, Subscriber } from '@piecework/protocol';

/**
 * The longest wait without a check, in ms, give or take a fifth, unless it is frugal: a lost notice delays an item by no
 * more.
 */
const SLOW_MS = 10_000;
/** Time that the subscribing connection has to answer a ping, in ms. */
const PING_MS = 5_000;

export interface WaitFor {
  /** The `mark` before the check that found nothing due. */
  readonly mark: number;
  readonly ms: number;
  /** Each of them ends the wait, without an error. */
  readonly signals: readonly AbortSignal[];
  /** Whether notices end it. */
  readonly woken: boolean;
}

/**
 * Waits for takers and consumers: until the time that the server named, or until a notice says that something was put
 * that is due earlier.
 */
export class Wakes {
  readonly #subscriber: Subscriber;
  readonly #channel: string;
  readonly #slowMs: number;
  readonly #waiting = new Set<() => void>();
  #mark = 0;
  #listens = false;

  constructor(
    connection: Connection,
    channel: string,
    idleFactor: number,
    onError: (error: unknown) => void,
  ) {
    this.#channel = channel;
    this.#slowMs = SLOW_MS * idleFactor;
    this.#subscriber = new Subscriber(
      connection,
      {
        onNotice: () => this.#wake(),
        onMaybeMissed: () => this.#wake(),
        onError,
      },
      'piecework-queues',
    );
  }

  /** Changes with each notice. A notice that came between a check and the wait after it ends that wait at once. */
  get mark(): number {
    return this.#mark;
  }

  async wait({ mark, ms, signals, woken }: WaitFor): Promise<void> {
    if (woken && !this.#listens) {
      this.#listens = true;
      this.#subscriber.add(this.#channel);
    }
    const slow = this.#slowMs * (0.8 + 0.4 * Math.random());
    const endMs = performance.now() + Math.min(ms, woken ? slow : ms);
    while (!isAborted(signals) && !(woken && mark !== this.#mark)) {
      // A timer may fire a little early; a check at that moment would find nothing.
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) {
        if (woken && ms > slow) this.#subscriber.ping(PING_MS);
        return;
      }
      await this.#pause(Math.ceil(leftMs), signals, woken);
    }
  }

  async close(): Promise<void> {
    await this.#subscriber.close();
  }

  #wake(): void {
    this.#mark += 1;
    for (const wake of [...this.#waiting]) wake();
  }

  #pause(ms: number, signals: readonly AbortSignal[], woken: boolean): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        timer.clear();
        for (const stop of stops) stop();
        this.#waiting.delete(done);
        resolve();
      };
      const timer = new LongTimer(ms, done);
      const stops = signals.map((signal) => onAbort(signal, done));
      if (woken) this.#waiting.add(done);
    });
  }
}
