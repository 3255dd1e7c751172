/** Longest time of a timer in Node, in ms. */
const LONGEST_MS = 2_147_483_647;

/**
 * Whether the queue of this worker is paused, as the server answered last: to a tick, to a hold of one of its own
 * handlers, or to the question that a message makes it ask. Answers come in the order of the state that they tell of,
 * whatever the server's clock does. A pause with an end is over by the own clock, without another word.
 */
export class PauseWatch {
  readonly #onChange: (paused: boolean) => void;
  #paused = false;
  #end: NodeJS.Timeout | undefined;

  constructor(onChange: (paused: boolean) => void) {
    this.#onChange = onChange;
  }

  /** `pausedMs`: for how long from now; 0: until it is resumed; -1: it is not paused. */
  learn(pausedMs: number): void {
    clearTimeout(this.#end);
    this.#set(pausedMs >= 0);
    if (pausedMs <= 0) return;
    this.#end = setTimeout(() => this.#set(false), Math.min(pausedMs, LONGEST_MS));
    this.#end.unref();
  }

  stop(): void {
    clearTimeout(this.#end);
  }

  #set(paused: boolean): void {
    if (paused === this.#paused) return;
    this.#paused = paused;
    this.#onChange(paused);
  }
}
