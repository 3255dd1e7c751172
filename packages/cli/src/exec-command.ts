import { bytesOf } from './binary.js';
import { programError } from './exec-program.js';

/**
 * The command of `--exec` with its placeholders: `{}` is the payload, `{index}` the index of the sub-request.
 *
 * A payload never becomes part of what the shell reads: `{}` turns into an expansion of an environment
 * variable, as `"$PIECEWORK_ITEM"`, and the shell does not read again what it expands. So no payload can be run,
 * wherever `{}` stands; which quotes stand around it only decides about words. Within single quotes it
 * stays as it is, as `$` does there.
 */

/** A placeholder in double quotes, or in none. */
interface Placeholder {
  readonly of: 'item' | 'index';
  readonly quoted: boolean;
}

/** What stands between two placeholders, or one of these. */
type Part = string | Placeholder;

/** How an array is given to a program: as JSON, or a line for each element. */
export type ExecInput = 'json' | 'lines';

/** One run of the command. */
export interface Invocation {
  readonly command: string;
  /** Environment beside the one that all programs have. */
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string | Buffer;
}

const NAME = 'PIECEWORK_ITEM';

export class ExecCommand {
  readonly #parts: readonly Part[];
  readonly #input: ExecInput;

  constructor(command: string, input: ExecInput = 'json') {
    this.#parts = partsOf(command);
    this.#input = input;
  }

  /** Whether the payload is an argument. Then it is not on standard input as well. */
  get takesItem(): boolean {
    return this.#parts.some((part) => typeof part !== 'string' && part.of === 'item');
  }

  /** @throws Error when the payload cannot be an argument */
  invocation(payload: unknown, index: number): Invocation {
    const words = this.takesItem ? this.#words(payload) : [];
    const command = this.#render(index, (quoted) => {
      const names = words.map((_, i) => `\${${variable(i, words)}}`);
      return quoted ? names : names.map((name) => `"${name}"`);
    });
    const env = Object.fromEntries(words.map((word, i) => [variable(i, words), word]));
    return { command, env, stdin: this.takesItem ? '' : this.#stdin(payload) };
  }

  /** The same as a person would type it. */
  shown(payload: unknown, index: number): string {
    const words = this.takesItem ? this.#words(payload) : [];
    const command = this.#render(index, (within) =>
      words.map((word) => (within ? word.replace(/["$`\\]/g, '\\$&') : quoted(word))),
    );
    if (this.takesItem) return command;
    const stdin = this.#stdin(payload);
    const given =
      typeof stdin === 'string' ? `printf %s ${quoted(stdin)}` : `printf '${octal(stdin)}'`;
    return `${given} | ${/[;&|\n]/.test(command) ? `sh -c ${quoted(command)}` : command}`;
  }

  #render(index: number, words: (quoted: boolean) => readonly string[]): string {
    return this.#parts
      .map((part) => {
        if (typeof part === 'string') return part;
        return part.of === 'index' ? String(index) : words(part.quoted).join(' ');
      })
      .join('');
  }

  #stdin(payload: unknown): string | Buffer {
    const bytes = bytesOf(payload);
    if (bytes) return bytes;
    if (typeof payload === 'string') return payload;
    if (this.#input === 'json' || !Array.isArray(payload)) return JSON.stringify(payload);
    const lines = payload.flatMap((item) => [bytesOf(item) ?? Buffer.from(textOf(item)), LINE_END]);
    return Buffer.concat(lines);
  }

  #words(payload: unknown): string[] {
    const items = this.#input === 'lines' && Array.isArray(payload) ? payload : [payload];
    return items.map(wordOf);
  }
}

const LINE_END = Buffer.from('\n');
/** Longest string that Linux takes as an argument or variable, in bytes, with what ends it. */
const MAX_WORD_BYTES = 131_072;

const textOf = (item: unknown) => (typeof item === 'string' ? item : JSON.stringify(item));
const variable = (i: number, { length }: readonly unknown[]) =>
  length === 1 ? NAME : `${NAME}_${i}`;

function wordOf(item: unknown): string {
  const instead = 'leave {} out, and the program gets it on standard input';
  if (bytesOf(item)) throw programError(`bytes cannot be an argument: ${instead}`);
  const word = textOf(item);
  if (word.includes('\0')) throw programError(`a NUL cannot be in an argument: ${instead}`);
  const bytes = Buffer.byteLength(word);
  if (bytes + NAME.length + 10 < MAX_WORD_BYTES) return word;
  throw programError(`the item has ${bytes} bytes, too many for an argument: ${instead}`);
}

/** A word for a shell, in quotes where it needs them. */
export function quoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

const octal = (bytes: Buffer) =>
  [...bytes]
    .map((byte) =>
      byte >= 0x20 && byte < 0x7f && !"'\\%".includes(String.fromCharCode(byte))
        ? String.fromCharCode(byte)
        : `\\${byte.toString(8).padStart(3, '0')}`,
    )
    .join('');

const PLACEHOLDERS = [
  ['{}', 'item'],
  ['{index}', 'index'],
] as const;

/**
 * Finds each placeholder that is not in single quotes or behind a backslash, and whether it is in double ones. What
 * stands in `$(…)` has quotes of its own.
 */
function partsOf(command: string): Part[] {
  const parts: Part[] = [];
  /** In what the place is: double quotes, or `$(…)` with so many brackets open in it. */
  const within: ('"' | { brackets: number })[] = [{ brackets: 0 }];
  let from = 0;
  let at = 0;
  while (at < command.length) {
    const place = within.at(-1);
    const letter = command[at];
    const found = PLACEHOLDERS.find(([name]) => command.startsWith(name, at));
    let length = 1;
    if (letter === '\\') length = 2;
    else if (found) {
      const [name, of] = found;
      parts.push(command.slice(from, at), { of, quoted: place === '"' });
      length = name.length;
      from = at + length;
    } else if (command.startsWith('$(', at)) {
      within.push({ brackets: 0 });
      length = 2;
    } else if (letter === '"') {
      if (place === '"') within.pop();
      else within.push('"');
    } else if (place !== undefined && place !== '"') {
      if (letter === "'") length = endOf(command, "'", at + 1) - at;
      else if (letter === '#' && /(^|[\s;&|()])$/.test(command.slice(0, at)))
        length = endOf(command, '\n', at) - at;
      else if (letter === '(') place.brackets += 1;
      else if (letter === ')' && place.brackets > 0) place.brackets -= 1;
      else if (letter === ')' && within.length > 1) within.pop();
    }
    at += length;
  }
  parts.push(command.slice(from));
  return parts;
}

/** Behind the next `what`, or the end. */
function endOf(text: string, what: string, from: number): number {
  const found = text.indexOf(what, from);
  return found < 0 ? text.length : found + 1;
}
