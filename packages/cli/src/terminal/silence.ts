import prettyMs from 'pretty-ms';
import { say } from './print.js';

/** After this much silence a line is printed, in ms; the next one after twice the time, at most a minute later. */
const FIRST_MS = 5_000;
const LONGEST_MS = 60_000;

const lasting = (ms: number) => prettyMs(ms, { secondsDecimalDigits: 0 });

/**
 * Says on standard error since when Redis has not answered, and when it answers again. Without that, a person who
 * watches would see values that no longer change, as if nothing happened.
 */
export class Silence implements Disposable {
  readonly #everyMs: number;
  #answeredAt = performance.now();
  #sayAtMs = FIRST_MS;
  readonly #timer: NodeJS.Timeout;

  /** `everyMs`: how often Redis is asked. */
  constructor(everyMs: number) {
    this.#everyMs = everyMs;
    this.#timer = setInterval(() => this.#check(), 1_000);
  }

  /** Notes that Redis has answered. */
  noteAnswer(): void {
    if (this.#sayAtMs > FIRST_MS) say(`redis answers again, after ${lasting(this.#silentMs)}`);
    this.#answeredAt = performance.now();
    this.#sayAtMs = FIRST_MS;
  }

  /** Passes answers on, and notes each. */
  async *of<T>(answers: AsyncIterable<T>): AsyncGenerator<T> {
    for await (const answer of answers) {
      this.noteAnswer();
      yield answer;
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  get #silentMs(): number {
    return Math.max(0, performance.now() - this.#answeredAt - this.#everyMs);
  }

  #check(): void {
    const silentMs = this.#silentMs;
    if (silentMs < this.#sayAtMs) return;
    this.#sayAtMs = silentMs + Math.min(silentMs, LONGEST_MS);
    say(`redis has not been reachable for ${lasting(silentMs)}, asking again`);
  }
}
