import {
  AbortError,
  InvalidOptionError,
  isThrown,
  onAbort,
  PayloadError,
  readThrown,
} from '@piecework/protocol';

/**
 * Items of a submission: anything that can be iterated, also endlessly. Arrays are named separately so that the
 * compiler points at the one item that is wrong.
 */
export type Items<Item> =
  | readonly Item[]
  | Iterable<Item>
  | AsyncIterable<Item>
  | ReadableStream<Item>;

/** `Array.isArray` that answers false where a revoked proxy makes it throw. */
export function isArray(items: unknown): items is readonly unknown[] {
  try {
    return Array.isArray(items);
  } catch {
    return false;
  }
}

/** Wraps what the source threw, to distinguish it from errors of Redis. */
export class SourceFailure extends Error {}

/**
 * The items of one submission, read one after the other and encoded. The source may have a file or a socket open, so
 * its `return` is called if it is not read to its end. It may also never answer again, so a signal, or `end`, ends
 * the wait for it.
 */
export class Source {
  readonly #iterator: AsyncIterator<unknown> | Iterator<unknown>;
  readonly #encode: (item: unknown, index: number) => string;
  readonly #signal: AbortSignal | undefined;
  #count = 0;
  #ended = false;
  #over: Error | undefined;
  #giveUp: ((error: Error) => void) | undefined;

  /** @throws InvalidOptionError when `items` cannot be iterated, or is a string */
  constructor(
    items: unknown,
    encode: (item: unknown, index: number) => string,
    signal: AbortSignal | undefined,
  ) {
    this.#iterator = iteratorOf(items);
    this.#encode = encode;
    this.#signal = signal;
  }

  /**
   * The first item, encoded, or undefined when there is none. Nothing has been written yet, so an error of the
   * source is thrown as it is.
   */
  async first(): Promise<string | undefined> {
    try {
      return await this.next();
    } catch (error) {
      throw error instanceof SourceFailure ? error.cause : error;
    }
  }

  /**
   * The next item, encoded, or undefined at the end; no promise when the source answers synchronously.
   * @throws SourceFailure when the source threw · PayloadError · AbortError
   */
  next(): string | undefined | Promise<string | undefined> {
    if (this.#over) throw this.#over;
    if (this.#signal?.aborted) throw this.#aborted();
    const { read, arrives } = this.#read();
    return arrives ? this.#arrived(arrives).then((it) => this.#item(it)) : this.#item(read);
  }

  /** The submission is over: the read that waits, and every later one, throws `error`. */
  end(error: Error): void {
    this.#over ??= error;
    this.#giveUp?.(error);
  }

  /** Calls `return` of a source that was not read to its end; does not wait for its answer. */
  release(): void {
    if (this.#ended) return;
    this.#ended = true;
    try {
      Promise.resolve(this.#iterator.return?.()).catch(() => {});
    } catch {
      // A source that throws here has been called all the same.
    }
  }

  #item(read: IteratorResult<unknown>): string | undefined {
    const item = this.#valueOf(read);
    if (item) return this.#encode(item.value, this.#count++);
    this.#ended = true;
    return undefined;
  }

  /** Reads the source's answer, whose properties may throw. */
  #valueOf(read: IteratorResult<unknown>): { readonly value: unknown } | undefined {
    try {
      return read.done ? undefined : { value: read.value };
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** The iterator's answer, which is inspected only here: inspecting it may throw. */
  #read(): Reading {
    try {
      const reading = this.#iterator.next();
      return isPromise(reading) ? { arrives: reading } : { read: reading };
    } catch (error) {
      throw this.#failed(error);
    }
  }

  async #arrived(reading: Promise<IteratorResult<unknown>>): Promise<IteratorResult<unknown>> {
    // A close ends the wait for a source that does not answer.
    const answered = new Promise<IteratorResult<unknown>>((resolve, reject) => {
      this.#giveUp = reject;
      Promise.resolve(reading).then(resolve, reject);
    });
    try {
      return await (this.#signal ? this.#unlessAborted(answered, this.#signal) : answered);
    } catch (error) {
      throw this.#over && error === this.#over ? error : this.#failed(error);
    } finally {
      this.#giveUp = undefined;
    }
  }

  #failed(error: unknown): Error {
    if (isThrown(error, PayloadError) || isThrown(error, AbortError)) return error;
    this.#ended = true;
    return new SourceFailure('the source threw', { cause: error });
  }

  async #unlessAborted<T>(reading: Promise<T>, signal: AbortSignal): Promise<T> {
    let stop = () => {};
    const aborted = new Promise<never>((_, reject) => {
      stop = onAbort(signal, () => reject(this.#aborted()));
    });
    try {
      return await Promise.race([reading, aborted]);
    } finally {
      stop();
    }
  }

  #aborted(): AbortError {
    return new AbortError('submission', this.#signal?.reason);
  }
}

/** An item, or a promise of one. */
type Reading =
  | { readonly read: IteratorResult<unknown>; readonly arrives?: never }
  | { readonly read?: never; readonly arrives: Promise<IteratorResult<unknown>> };

/** Anything with a `then`: an iterator may answer with any kind of promise. */
const isPromise = <T>(it: T | Promise<T>): it is Promise<T> =>
  typeof (it as Partial<Promise<T>> | null | undefined)?.then === 'function';

function iteratorOf(items: unknown): AsyncIterator<unknown> | Iterator<unknown> {
  try {
    const iterator = iteratorIn(items);
    if (iterator) return iterator;
  } catch (error) {
    const { name, message } = readThrown(error);
    throw new InvalidOptionError('items', items, `what can be iterated (${name}: ${message})`);
  }
  throw new InvalidOptionError(
    'items',
    items,
    'an Iterable, AsyncIterable or ReadableStream, not a string',
  );
}

function iteratorIn(items: unknown): AsyncIterator<unknown> | Iterator<unknown> | undefined {
  const source = items as Partial<AsyncIterable<unknown> & Iterable<unknown>> | null | undefined;
  if (typeof source !== 'object' || source === null) return undefined;
  const made = source[Symbol.asyncIterator]?.() ?? source[Symbol.iterator]?.();
  return typeof made?.next === 'function' ? made : undefined;
}
