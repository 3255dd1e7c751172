import { LongTimer } from '@piecework/protocol';

/**
 * Whether the queue of this worker is paused, as the server answered last: to a tick, to a hold of one of its own
 * handlers, or to the question that a message makes it ask. Answers come in the order of the state that they tell of,
 * whatever the server's clock does. A pause with an end is over by the own clock, without another word.
 */
export class PauseWatch {
  readonly #onChange: (paused: boolean) => void;
  #paused = false;
  #end: LongTimer | undefined;

  constructor(onChange: (paused: boolean) => void) {
    this.#onChange = onChange;
  }

  /** `pausedMs`: for how long from now; 0: until it is resumed; -1: it is not paused. */
  learn(pausedMs: number): void {
    this.#end?.clear();
    this.#set(pausedMs >= 0);
    if (pausedMs <= 0) return;
    this.#end = new LongTimer(pausedMs, () => this.#set(false)).unref();
  }

  stop(): void {
    this.#end?.clear();
  }

  #set(paused: boolean): void {
    if (paused === this.#paused) return;
    this.#paused = paused;
    this.#onChange(paused);
  }
}
