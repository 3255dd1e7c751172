let behind: (() => void)[] = [];

/** Does behind this turn of the event loop, all in one turn, what its callers ask for: so their calls share a write. */
function afterTurn(act: () => void): void {
  if (behind.push(act) > 1) return;
  setImmediate(() => {
    const acts = behind;
    behind = [];
    for (const each of acts) each();
  });
}

/** Runs pieces of work one after the other, in the order in which they came. */
export class Mailbox {
  readonly #onError: (error: unknown) => void;
  readonly #onDone: (isEmpty: boolean) => void;
  #queued = 0;
  #kicked = false;
  #timer: NodeJS.Timeout | undefined;
  #tail: Promise<void> = Promise.resolve();

  /** `onDone`: after each piece, also one that failed. */
  constructor(hooks: {
    readonly onError: (error: unknown) => void;
    readonly onDone: (isEmpty: boolean) => void;
  }) {
    this.#onError = hooks.onError;
    this.#onDone = hooks.onDone;
  }

  /** Whether a piece of work runs, or waits for its turn. */
  get isBusy(): boolean {
    return this.#queued > 0;
  }

  /** Whether nothing runs, waits, or is about to wait. */
  get isQuiet(): boolean {
    return this.#queued === 0 && !this.#kicked;
  }

  /** Whether a piece of work waits for its time. */
  get isDelayed(): boolean {
    return this.#timer !== undefined;
  }

  run(work: () => Promise<void>): void {
    this.#queued += 1;
    this.#tail = this.#tail
      .then(work)
      .catch(this.#onError)
      .then(() => {
        this.#queued -= 1;
        this.#onDone(this.#queued === 0);
      });
  }

  /** Runs `work` once everything that ends in this turn of the event loop has ended; the first call counts. */
  runAfterTurn(work: () => Promise<void>): void {
    if (this.#kicked) return;
    this.#kicked = true;
    afterTurn(() => {
      this.#kicked = false;
      this.run(work);
    });
  }

  /** Runs `work` after so many ms; the first call counts until then. */
  runLater(ms: number, work: () => Promise<void>): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.run(work);
    }, ms);
  }

  /** Forgets the work that waits for its time. */
  cancelLater(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
