import prettyMs from 'pretty-ms';
import { say } from './progress-bar.js';

/** From how much silence on it is said, in ms; doubled each time it is said again, up to a minute. */
const FIRST_MS = 5_000;
const LONGEST_MS = 60_000;

const lasting = (ms: number) => prettyMs(ms, { secondsDecimalDigits: 0 });

/**
 * For a person who looks on: what is read again and again stands still while Redis is away, as if nothing
 * happened. Says on standard error how long that has been, and when it is over.
 */
export class Silence implements Disposable {
  readonly #everyMs: number;
  #heardAt = performance.now();
  #sayAtMs = FIRST_MS;
  readonly #timer: NodeJS.Timeout;

  /** `everyMs`: how often something is read. */
  constructor(everyMs: number) {
    this.#everyMs = everyMs;
    this.#timer = setInterval(() => this.#look(), 1_000);
  }

  /** Redis has answered. */
  heard(): void {
    if (this.#sayAtMs > FIRST_MS) say(`redis answers again, after ${lasting(this.#silentMs)}`);
    this.#heardAt = performance.now();
    this.#sayAtMs = FIRST_MS;
  }

  /** The same for each that is passed on. */
  async *of<T>(answers: AsyncIterable<T>): AsyncGenerator<T> {
    for await (const answer of answers) {
      this.heard();
      yield answer;
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  get #silentMs(): number {
    return Math.max(0, performance.now() - this.#heardAt - this.#everyMs);
  }

  #look(): void {
    const silentMs = this.#silentMs;
    if (silentMs < this.#sayAtMs) return;
    this.#sayAtMs = silentMs + Math.min(silentMs, LONGEST_MS);
    say(`redis not reachable since ${lasting(silentMs)}, asking again`);
  }
}
