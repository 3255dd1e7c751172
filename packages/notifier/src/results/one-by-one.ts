/**
 * Yields runs of items one by one. An async generator would do, but it waits three turns of the microtask queue
 * for each item, which costs more than decoding a small one. This class waits only between runs. As with a
 * generator, overlapping calls of `next` are answered in their order, and an error ends the iteration.
 */
export class OneByOne<Item> implements AsyncGenerator<Item, void, undefined> {
  readonly #runs: AsyncGenerator<Iterable<Item>, void, undefined>;
  /** Asked once, when the first item is wanted. */
  #atHand: (() => Iterable<Item> | undefined) | undefined;
  #run: Iterator<Item> | undefined;
  #isLast = false;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** `atHand`: all items, if they are known when the first is asked for; then `runs` is not begun. */
  constructor(
    runs: AsyncGenerator<Iterable<Item>, void, undefined>,
    atHand?: () => Iterable<Item> | undefined,
  ) {
    this.#runs = runs;
    this.#atHand = atHand;
  }

  next(): Promise<IteratorResult<Item, void>> {
    if (this.#waiting > 0) return this.#inTurn(() => this.#nextOf());
    try {
      if (this.#atHand) this.#beginAtHand(this.#atHand);
      const result = this.#run?.next();
      if (result && (!result.done || this.#isLast)) return Promise.resolve(result);
    } catch (error) {
      return this.#inTurn(() => this.#end(error));
    }
    return this.#inTurn(() => this.#nextOf());
  }

  #beginAtHand(atHand: () => Iterable<Item> | undefined): void {
    this.#atHand = undefined;
    this.#run = atHand()?.[Symbol.iterator]();
    this.#isLast = this.#run !== undefined;
  }

  return(): Promise<IteratorResult<Item, void>> {
    this.#atHand = undefined;
    return this.#inTurn(async () => {
      this.#run = undefined;
      await this.#runs.return();
      return { done: true, value: undefined };
    });
  }

  throw(error: unknown): Promise<IteratorResult<Item, void>> {
    return this.#inTurn(() => this.#end(error));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {});
    try {
      return await turn;
    } finally {
      this.#waiting -= 1;
    }
  }

  async #nextOf(): Promise<IteratorResult<Item, void>> {
    for (;;) {
      try {
        const result = this.#run?.next();
        if (result && !result.done) return result;
      } catch (error) {
        return this.#end(error);
      }
      this.#run = undefined;
      const { done, value } = await this.#runs.next();
      if (done) return { done, value: undefined };
      this.#run = (value as Iterable<Item>)[Symbol.iterator]();
    }
  }

  /** Releases the source, and fails. */
  async #end(error: unknown): Promise<never> {
    this.#atHand = undefined;
    this.#run = undefined;
    await this.#runs.return();
    throw error;
  }
}
