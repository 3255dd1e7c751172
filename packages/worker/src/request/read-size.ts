import type { Entry } from '@piecework/protocol';

/** Most that one settle is to bring, in characters of payloads: Redis holds it several times meanwhile. */
const MOST = 1_048_576;
/** How many are read as long as nothing is known of their payloads; as many as an `enter` may bring. */
const FIRST = 16;

/** How many sub-requests of one request to read at once, by how large their payloads were so far. */
export class ReadSize {
  #average: number | undefined;

  note(entries: readonly Entry[]): void {
    if (entries.length === 0) return;
    let length = 0;
    for (const { payload } of entries) length += payload.length;
    const average = length / entries.length;
    // What came last counts as much as all before: items that grow are noticed soon.
    this.#average = this.#average === undefined ? average : (this.#average + average) / 2;
  }

  /** At most `free`, at least one of them. */
  of(free: number): number {
    if (this.#average === undefined) return Math.min(free, FIRST);
    return Math.min(free, Math.max(1, Math.floor(MOST / Math.max(1, this.#average))));
  }
}
