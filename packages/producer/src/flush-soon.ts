/** How long an item of a slow source waits for others, to be sent with them, in ms. */
const FLUSH_MS = 100;

/** Sends what was gathered of a slow source, before a whole chunk of it is there. */
export class FlushSoon {
  readonly #request: { flush(): Promise<void> };
  #timer: NodeJS.Timeout | undefined;

  constructor(request: { flush(): Promise<void> }) {
    this.#request = request;
  }

  /** There is an item that waits for others. */
  begin(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      // What is wrong is told to the next call.
      void this.#request.flush().catch(() => {});
    }, FLUSH_MS);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}
