import { LongTimer } from '@piecework/protocol';

/**
 * Whether the queue of this worker is paused, as the server answered last: to a tick, to a `holdQueue` of one of its
 * handlers, or to a read after a notice. Answers come in the order of the states that they contain, whatever the
 * server's clock does. A pause with an end ends by this process's own clock, without another answer.
 */
export class PauseWatch {
  readonly #onChange: (paused: boolean) => void;
  #paused = false;
  #closed = false;
  #end: LongTimer | undefined;

  constructor(onChange: (paused: boolean) => void) {
    this.#onChange = onChange;
  }

  /** `pausedMs`: for how long from now; 0: until it is resumed; -1: it is not paused. */
  learn(pausedMs: number): void {
    if (this.#closed) return;
    this.#end?.clear();
    // cure: the last reply about a pause counts
    this.#set(pausedMs >= 0);
    if (pausedMs <= 0) return;
    this.#end = new LongTimer(pausedMs, () => this.#set(false)).unref();
  }

  /** The queue stays as it is now. */
  close(): void {
    this.#closed = true;
    this.#end?.clear();
  }

  #set(paused: boolean): void {
    if (paused === this.#paused) return;
    this.#paused = paused;
    this.#onChange(paused);
  }
}
