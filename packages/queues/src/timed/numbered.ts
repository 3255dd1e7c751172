import { ClosedError, IndeterminateError } from '@piecework/protocol';

/**
 * Writes of one caller, sent one call at a time, each with its number: so that the server tells a call
 * that arrives twice, or behind a later one, from a new one. What is asked for while a call is under
 * way goes together in the next.
 */
export interface NumberedParts<Entry, Verdict> {
  /** What is written to, for errors. */
  readonly what: string;
  readonly send: (
    number: number,
    entries: readonly Entry[],
  ) => Promise<readonly Verdict[] | 'late'>;
  /** Bytes of an entry, about. */
  readonly sizeOf: (entry: Entry) => number;
}

/** Most entries, and bytes, of one call. */
const MOST = 200;
const MOST_BYTES = 1_000_000;

interface Waiting<Entry, Verdict> {
  readonly entry: Entry;
  readonly resolve: (verdict: Verdict) => void;
  readonly reject: (error: unknown) => void;
}

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

  /** Takes nothing more; resolves when all that was taken is answered. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#sending;
  }

  async #sendAll(): Promise<void> {
    // What is asked for in the same turn goes along.
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
