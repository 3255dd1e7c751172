import type { QueuePause } from '@piecework/protocol';

/** Longest time of a timer in Node, in ms. */
const LONGEST_MS = 2_147_483_647;

/**
 * Whether the queue of this worker is paused, as the server told it last: by message, by the reply of
 * a tick, or by a hold of one of its own handlers. They may come in any order; the latest of the
 * server's times counts. A pause with an end is over by the own clock, without another word.
 */
export class PauseWatch {
  readonly #onChange: (paused: boolean) => void;
  #paused = false;
  #asOf = 0;
  #end: NodeJS.Timeout | undefined;

  constructor(onChange: (paused: boolean) => void) {
    this.#onChange = onChange;
  }

  learn({ until, at }: QueuePause): void {
    if (at < this.#asOf) return;
    this.#asOf = at;
    clearTimeout(this.#end);
    this.#set(until === 0 || until > at);
    if (until <= at) return;
    this.#end = setTimeout(() => this.#set(false), Math.min(until - at, LONGEST_MS));
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
