import { LongTimer, type QueuePause } from '@piecework/protocol';

/**
 * Whether the queue of this worker is paused, as the server told it last: by message, by the reply of
 * a tick, or by a hold of one of its own handlers. They may come in any order; the latest of the
 * server's times counts. A pause with an end is over by the own clock, without another word.
 */
export class PauseWatch {
  readonly #onChange: (paused: boolean) => void;
  #paused = false;
  #asOf = 0;
  #end: LongTimer | undefined;

  constructor(onChange: (paused: boolean) => void) {
    this.#onChange = onChange;
  }

  learn({ until, at }: QueuePause): void {
    if (at < this.#asOf) return;
    this.#asOf = at;
    this.#end?.clear();
    this.#set(until === 0 || until > at);
    if (until <= at) return;
    this.#end = new LongTimer(until - at, () => this.#set(false)).unref();
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
