/** How many values are kept, and the longest text for which one is kept. */
const MOST = 100;
const LONGEST = 4_096;

/** Keeps what was made of a text, for the texts that came last. */
export class LastUsed<Value> {
  readonly #kept = new Map<string, Value>();

  get(text: string, make: () => Value): Value {
    const kept = this.#kept.get(text);
    if (kept !== undefined) return kept;
    const made = make();
    if (text.length > LONGEST) return made;
    this.#kept.set(text, made);
    if (this.#kept.size > MOST) this.#kept.delete(this.#kept.keys().next().value as string);
    return made;
  }
}
