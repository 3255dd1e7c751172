import { ClosedError, IndeterminateError } from '@piecework/protocol';

export interface NumberedParts<Entry, Verdict> {
  /** Name of the queue, for errors. */
  readonly what: string;
  readonly send: (
    number: number,
    entries: readonly Entry[],
  ) => Promise<readonly Verdict[] | 'late'>;
  /** Approximate size of an entry, in bytes. */
  readonly sizeOf: (entry: Entry) => number;
}

/** One call has at most this many entries, and this many bytes. */
const MOST = 200;
const MOST_BYTES = 1_000_000;

interface Waiting<Entry, Verdict> {
  readonly entry: Entry;
  readonly resolve: (verdict: Verdict) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends the writes of one object, one call at a time. Each call has a number, by which the server recognises a call
 * that arrives twice, or after a later one. Writes that are requested while a call is under way go together in the
 * next.
 */
export class Numbered<Entry, Verdict> {
  readonly #parts: NumberedParts<Entry, Verdict>;
  #waiting: Waiting<Entry, Verdict>[] = [];
  #number = 0;
  #sending: Promise<void> | undefined;
  #closed = false;

  constructor(parts: NumberedParts<Entry, Verdict>) {
    this.#parts = parts;
  }

  /** @throws ClosedError · whatever `send` throws */
  write(entry: Entry): Promise<Verdict> {
    if (this.#closed) return Promise.reject(new ClosedError(this.#parts.what));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entry, resolve, reject });
      this.#sending ??= this.#sendAll();
    });
  }

  /** Refuses further writes; resolves when all earlier ones are answered. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#sending;
  }

  async #sendAll(): Promise<void> {
    // Writes that are requested in the same turn go together.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#sendSome(this.#batch());
    this.#sending = undefined;
  }

  #batch(): Waiting<Entry, Verdict>[] {
    let bytes = 0;
    const end = this.#waiting.findIndex(({ entry }, i) => {
      bytes += this.#parts.sizeOf(entry);
      return i > 0 && (i === MOST || bytes > MOST_BYTES);
    });
    return this.#waiting.splice(0, end < 0 ? this.#waiting.length : end);
  }

  async #sendSome(batch: readonly Waiting<Entry, Verdict>[]): Promise<void> {
    this.#number += 1;
    try {
      const entries = batch.map(({ entry }) => entry);
      const verdicts = await this.#parts.send(this.#number, entries);
      if (verdicts === 'late') throw new IndeterminateError(this.#parts.what, undefined);
      for (const [i, { resolve }] of batch.entries()) resolve(verdicts[i] as Verdict);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
