const [QUOTE, BACKSLASH, LINE_END] = [0x22, 0x5c, 0x0a];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

const marks = (characters: string) => {
  const table = new Uint8Array(256);
  for (const byte of Buffer.from(characters)) table[byte] = 1;
  return table;
};
/** The bytes that may stand outside of strings. */
const LEGAL = marks(' \t\r\n[]{},:"0123456789+-.eEtrufalsn');
/** The bytes that end a number or a word. */
const ENDS = marks(' \t\r\n[]{},:"');

/** A character that JSON has nowhere outside of strings. */
export class UnexpectedCharacter extends Error {}

/**
 * Finds where a JSON value ends that may span many chunks of UTF-8. It follows only brackets and strings, so that
 * neither depth nor length of the value costs memory; whether the value is JSON is for JSON.parse to say. It stops
 * early at characters that occur in no JSON outside of strings, such as those of comments and NaN: quotes in a comment
 * would be taken for strings.
 */
export class ValueScan {
  /** The number of line ends that were passed. */
  lines = 0;
  #depth = 0;
  #kind: 'unknown' | 'word' | 'nested' = 'unknown';
  #inString = false;
  #escaped = false;

  /** Whether the value is whole if nothing follows: a number or a word. */
  get mayEnd(): boolean {
    return this.#kind === 'word';
  }

  /**
   * Passes bytes of the value, which begins or continues at `from`.
   * @returns the index behind the value; -1: it continues in the next chunk
   * @throws UnexpectedCharacter
   */
  end(bytes: Buffer, from: number): number {
    for (let i = from; i < bytes.length; i += 1) {
      const byte = bytes[i] as number;
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (byte === BACKSLASH) this.#escaped = true;
        else if (byte === QUOTE) {
          this.#inString = false;
          if (this.#depth === 0) return i + 1;
        }
        if (byte === LINE_END) this.lines += 1;
        continue;
      }
      if (LEGAL[byte] === 0) throw unexpected(bytes, i);
      if (this.#kind === 'word') {
        if (ENDS[byte] === 1) return i;
        continue;
      }
      if (byte === QUOTE) this.#inString = true;
      else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) this.#depth += 1;
      else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) this.#depth -= 1;
      else if (byte === LINE_END) this.lines += 1;
      if (this.#kind === 'unknown') {
        // A value begins with none of the other bytes that end a word.
        if (this.#depth < 0 || (ENDS[byte] === 1 && this.#depth === 0 && !this.#inString))
          throw unexpected(bytes, i);
        this.#kind = this.#depth === 0 && !this.#inString ? 'word' : 'nested';
      } else if (this.#depth === 0 && !this.#inString) return i + 1;
    }
    return -1;
  }
}

/** The chunks of a checked input end between characters. */
function unexpected(bytes: Buffer, at: number): UnexpectedCharacter {
  const [character = ''] = bytes.subarray(at, at + 4).toString();
  return new UnexpectedCharacter(`unexpected ${character}`);
}
