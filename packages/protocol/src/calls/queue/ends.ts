/** How a generation of a request ended, for the queue side. */
export interface End {
  readonly id: string;
  readonly generation: number;
  /** 'succeeded', 'failed', 'cancelled', 'dropped' or 'gone'. */
  readonly outcome: string;
  /** From the reply that completed it; 0: there was none. */
  readonly spentAt: number;
}

/** Most ends of one call: while a script runs, all other callers wait. */
const ENDS_PER_CALL = 200;

interface Waiting {
  readonly end: End;
  /** Number of the connection over which the end was reported. */
  readonly epoch: number;
  readonly resolve: (sent: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Gathers the ends of requests that a process has to tell the queue side in one turn of its event loop, and sends them
 * in one call, in their order. Ends that were reported over different connections are sent apart: each is only right on
 * a server that has what its own connection has answered (run-behind.ts).
 */
export class Ends {
  readonly #send: (ends: readonly End[], epoch: number) => Promise<boolean>;
  #waiting: Waiting[] = [];
  #immediate: NodeJS.Immediate | undefined;

  /** `send` resolves with whether the connection of that number still is there and has answered. */
  constructor(send: (ends: readonly End[], epoch: number) => Promise<boolean>) {
    this.#send = send;
  }

  /** Resolves when the end was sent, with what `send` answers. Rejects when it does. */
  add(end: End, epoch: number): Promise<boolean> {
    this.#immediate ??= setImmediate(() => this.flush());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ end, epoch, resolve, reject });
    });
  }

  /** Sends what was gathered now: before a call about the same ids that must not overtake it. */
  flush(): void {
    clearImmediate(this.#immediate);
    this.#immediate = undefined;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (let from = 0; from < waiting.length; ) {
      const epoch = (waiting[from] as Waiting).epoch;
      let to = from + 1;
      // cure: ends in one call were reported over one connection
      while (to < waiting.length && to - from < ENDS_PER_CALL && waiting[to]?.epoch === epoch)
        to += 1;
      void this.#sendSome(waiting.slice(from, to), epoch);
      from = to;
    }
  }

  async #sendSome(some: readonly Waiting[], epoch: number): Promise<void> {
    try {
      const sent = await this.#send(
        some.map(({ end }) => end),
        epoch,
      );
      for (const { resolve } of some) resolve(sent);
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
  }
}
