/** What was found in what a client writes to its socket. */
export interface Found {
  readonly commands: number;
  readonly scripts: number;
}

/* For what has to be searched: every command begins with this, and no payload contains it. */
const COMMAND = /\*\d+\r\n\$/g;
const SCRIPT = /\r\nevalsha\r\n/gi;

const CR = 13;
const DOLLAR = 36;
const STAR = 42;
const SCRIPT_NAME = 'evalsha';

/** Finds the commands in what is written at once. */
export function foundIn(chunk: string | Uint8Array): Found {
  // Lengths are in bytes: a text of other characters than ASCII has to be searched, as a part of a command has.
  const isWalkable = typeof chunk !== 'string' || Buffer.byteLength(chunk) === chunk.length;
  return (isWalkable ? new Walk(chunk).found() : undefined) ?? searched(chunk);
}

/** Goes from argument to argument by their lengths. */
class Walk {
  readonly #chunk: string | Uint8Array;
  #at = 0;

  constructor(chunk: string | Uint8Array) {
    this.#chunk = chunk;
  }

  found(): Found | undefined {
    const { length } = this.#chunk;
    let [commands, scripts] = [0, 0];
    while (this.#at < length) {
      const count = this.#number(STAR);
      if (count === undefined) return undefined;
      for (let i = 0; i < count; i += 1) {
        const size = this.#number(DOLLAR);
        if (size === undefined || this.#at + size + 2 > length) return undefined;
        if (
          i === 0 &&
          size === SCRIPT_NAME.length &&
          this.#text(size).toLowerCase() === SCRIPT_NAME
        )
          scripts += 1;
        this.#at += size + 2;
      }
      commands += 1;
    }
    return { commands, scripts };
  }

  /** The number behind `mark`, up to the end of the line. */
  #number(mark: number): number | undefined {
    if (this.#code(this.#at) !== mark) return undefined;
    let value = 0;
    for (this.#at += 1; this.#code(this.#at) !== CR; this.#at += 1) {
      const digit = this.#code(this.#at) - 48;
      if (!(digit >= 0 && digit <= 9)) return undefined;
      value = 10 * value + digit;
    }
    this.#at += 2;
    return value;
  }

  #code(at: number): number {
    const chunk = this.#chunk;
    return typeof chunk === 'string' ? chunk.charCodeAt(at) : (chunk[at] ?? Number.NaN);
  }

  #text(size: number): string {
    const part = this.#chunk.slice(this.#at, this.#at + size);
    return typeof part === 'string' ? part : Buffer.from(part).toString('latin1');
  }
}

function searched(chunk: string | Uint8Array): Found {
  const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('latin1');
  const [commands, scripts] = [COMMAND, SCRIPT].map((what) => text.match(what)?.length ?? 0);
  return { commands: commands ?? 0, scripts: scripts ?? 0 };
}
