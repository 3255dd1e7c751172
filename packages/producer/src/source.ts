import {
  AbortError,
  InvalidOptionError,
  isThrown,
  onAbort,
  PayloadError,
  readThrown,
} from '@piecework/protocol';

/**
 * Items of a submission: anything that can be iterated, also endlessly. Arrays stand by themselves so that
 * a compiler blames the one item that is wrong.
 */
export type Items<Item> =
  | readonly Item[]
  | Iterable<Item>
  | AsyncIterable<Item>
  | ReadableStream<Item>;

/** `Array.isArray`, which a revoked proxy makes throw. */
export function isArray(items: unknown): items is readonly unknown[] {
  try {
    return Array.isArray(items);
  } catch {
    return false;
  }
}

/** What the source threw, told apart from what Redis answered. */
export class SourceFailure extends Error {}

/**
 * The items of one submission, read one after the other and encoded. The source may hold a file or a
 * socket, so it is told when it is not read to its end; and it may never answer again, so a signal
 * ends the waiting for it.
 */
export class Source {
  readonly #iterator: AsyncIterator<unknown> | Iterator<unknown>;
  readonly #encode: (item: unknown, index: number) => string;
  readonly #signal: AbortSignal | undefined;
  #count = 0;
  #ended = false;

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
   * The next item, encoded, or undefined at the end; no promise when the source has it at hand.
   * @throws SourceFailure when the source threw · PayloadError · AbortError
   */
  next(): string | undefined | Promise<string | undefined> {
    if (this.#signal?.aborted) throw this.#aborted();
    const { read, arrives } = this.#read();
    return arrives ? this.#arrived(arrives).then((it) => this.#item(it)) : this.#item(read);
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

  #item(read: IteratorResult<unknown>): string | undefined {
    const item = this.#valueOf(read);
    if (item) return this.#encode(item.value, this.#count++);
    this.#ended = true;
    return undefined;
  }

  /** What the source answered is its own, too. */
  #valueOf(read: IteratorResult<unknown>): { readonly value: unknown } | undefined {
    try {
      return read.done ? undefined : { value: read.value };
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** What the iterator answers, which is looked at here alone: it may throw when it is. */
  #read(): Reading {
    try {
      const reading = this.#iterator.next();
      return isPromise(reading) ? { arrives: reading } : { read: reading };
    } catch (error) {
      throw this.#failed(error);
    }
  }

  async #arrived(reading: Promise<IteratorResult<unknown>>): Promise<IteratorResult<unknown>> {
    try {
      return await (this.#signal ? this.#unlessAborted(reading, this.#signal) : reading);
    } catch (error) {
      throw this.#failed(error);
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

/** Anything with a `then`: iterators of others answer with promises of their own kind. */
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
