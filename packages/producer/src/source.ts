import { AbortError, InvalidOptionError, PayloadError } from '@piecework/protocol';

/** Items of a submission: anything that can be iterated, also endlessly. */
export type Items<Item> = Iterable<Item> | AsyncIterable<Item> | ReadableStream<Item>;

/** What the source threw, told apart from what Redis answered. */
export class SourceFailure extends Error {}

/**
 * The items of one submission, read one after the other and encoded. The source may hold a file or a
 * socket, so it is told when it is not read to its end; and it may never answer again, so a signal
 * ends the waiting for it.
 */
export class Source {
  readonly #iterator: AsyncIterator<unknown> | Iterator<unknown>;
  readonly #encode: (item: unknown) => string;
  readonly #signal: AbortSignal | undefined;
  #ended = false;

  /** @throws InvalidOptionError when `items` cannot be iterated, or is a string */
  constructor(items: unknown, encode: (item: unknown) => string, signal: AbortSignal | undefined) {
    this.#iterator = iteratorOf(items);
    this.#encode = encode;
    this.#signal = signal;
  }

  /**
   * The first item, encoded, or undefined when there is none. Nothing has been written yet, so what
   * the source throws is thrown as it is.
   */
  async first(): Promise<string | undefined> {
    try {
      return await this.next();
    } catch (error) {
      throw error instanceof SourceFailure ? error.cause : error;
    }
  }

  /**
   * The next item, encoded, or undefined at the end.
   * @throws SourceFailure when the source threw · PayloadError · AbortError
   */
  async next(): Promise<string | undefined> {
    const { done, value } = await this.#read();
    if (!done) return this.#encode(value);
    this.#ended = true;
    return undefined;
  }

  /** Tells a source that was not read to its end; does not wait for its answer. */
  release(): void {
    if (this.#ended) return;
    this.#ended = true;
    try {
      Promise.resolve(this.#iterator.return?.()).catch(() => {});
    } catch {
      // It threw before, or does now: either way it is told.
    }
  }

  async #read(): Promise<IteratorResult<unknown>> {
    if (this.#signal?.aborted) throw this.#aborted();
    try {
      const reading = this.#iterator.next();
      if (!this.#signal || !(reading instanceof Promise)) return await reading;
      return await this.#unlessAborted(reading, this.#signal);
    } catch (error) {
      if (error instanceof PayloadError || error instanceof AbortError) throw error;
      this.#ended = true;
      throw new SourceFailure('the source threw', { cause: error });
    }
  }

  async #unlessAborted<T>(reading: Promise<T>, signal: AbortSignal): Promise<T> {
    let onAbort = () => {};
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(this.#aborted());
      signal.addEventListener('abort', onAbort, { once: true });
    });
    try {
      return await Promise.race([reading, aborted]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  #aborted(): AbortError {
    return new AbortError('submission', this.#signal?.reason);
  }
}

function iteratorOf(items: unknown): AsyncIterator<unknown> | Iterator<unknown> {
  const source = items as Partial<AsyncIterable<unknown> & Iterable<unknown>> | null | undefined;
  if (typeof source === 'object' && source !== null) {
    if (typeof source[Symbol.asyncIterator] === 'function') return source[Symbol.asyncIterator]!();
    if (typeof source[Symbol.iterator] === 'function') return source[Symbol.iterator]!();
  }
  throw new InvalidOptionError(
    'items',
    items,
    'an Iterable, AsyncIterable or ReadableStream, not a string',
  );
}
