import { bytesOf } from '../input/binary.js';
import { NAMED } from './field-name.js';
import { programError } from './program.js';

/**
 * The command of `--exec` with its placeholders: `{}` is the payload, `{index}` the index of the sub-request, and
 * `{name}` a column of a row, where the input has columns. All other braces belong to the shell.
 *
 * A payload is never inserted into the text that the shell parses. `{}` becomes the expansion of an environment
 * variable, `"$PIECEWORK_ITEM"`, and the shell does not parse the result of an expansion. So no payload can be run as
 * code, wherever `{}` is; the quotes around it only decide how it is split into words. Within single quotes it stays
 * unchanged, as `$` does there.
 */

/** A placeholder, inside or outside double quotes. */
interface Placeholder {
  /** `{ column }`: its name. */
  readonly of: 'item' | 'index' | { readonly column: string };
  readonly quoted: boolean;
}

/** A placeholder, or the text between two. */
type Part = string | Placeholder;

/** How an array is given to a program: as JSON, or a line for each element. */
export type ExecInput = 'json' | 'lines';

/** One run of the command. */
export interface Invocation {
  readonly command: string;
  /** Environment variables besides those that all programs get. */
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string | Buffer;
}

const NAME = 'PIECEWORK_ITEM';

export class ExecCommand {
  readonly #parts: readonly Part[];
  readonly #input: ExecInput;

  /** @param columns names that, in braces, are fields of the payload, an object */
  constructor(command: string, input: ExecInput = 'json', columns: readonly string[] = []) {
    this.#parts = partsOf(command, (name) => columns.includes(name));
    this.#input = input;
  }

  /** Whether the payload, or a field of it, is an argument. Then it is not on standard input. */
  get takesItem(): boolean {
    return this.#parts.some((part) => typeof part !== 'string' && part.of !== 'index');
  }

  /** @throws Error when the payload cannot be an argument */
  invocation(payload: unknown, index: number): Invocation {
    const env: Record<string, string> = {};
    const command = this.#render(index, payload, (words, name, quoted) => {
      const names = words.map((_, i) => (words.length === 1 ? name : `${name}_${i}`));
      for (const [i, one] of names.entries()) env[one] = words[i] ?? '';
      return names.map((one) => (quoted ? `\${${one}}` : `"\${${one}}"`));
    });
    return { command, env, stdin: this.takesItem ? '' : this.#stdin(payload) };
  }

  /** The same command as a person would type it. */
  shown(payload: unknown, index: number): string {
    const command = this.#render(index, payload, (words, _, within) =>
      words.map((word) => (within ? word.replace(/["$`\\]/g, '\\$&') : quoted(word))),
    );
    if (this.takesItem) return command;
    const stdin = this.#stdin(payload);
    const given =
      typeof stdin === 'string' ? `printf %s ${quoted(stdin)}` : `printf '${octal(stdin)}'`;
    return `${given} | ${/[;&|\n]/.test(command) ? `sh -c ${quoted(command)}` : command}`;
  }

  /** @param show turns `words` into the text for the shell; variables of the given name are free to use */
  #render(
    index: number,
    payload: unknown,
    show: (words: readonly string[], name: string, quoted: boolean) => readonly string[],
  ): string {
    return this.#parts
      .map((part, i) => {
        if (typeof part === 'string') return part;
        const { of, quoted } = part;
        if (of === 'index') return String(index);
        const words =
          of === 'item'
            ? this.#items(payload).map(wordOf)
            : fieldsOf(payload, of.column).map(wordOf);
        return show(words, of === 'item' ? NAME : `${NAME}_PART_${i}`, quoted).join(' ');
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

  #items(payload: unknown): unknown[] {
    return this.#input === 'lines' && Array.isArray(payload) ? payload : [payload];
  }
}

/** One column of a row, or of each row of a batch. */
function fieldsOf(payload: unknown, column: string): unknown[] {
  return (Array.isArray(payload) ? payload : [payload]).map((row: unknown) => {
    if (typeof row === 'object' && row !== null && Object.hasOwn(row, column))
      return (row as Record<string, unknown>)[column];
    throw programError(`the item has no field for {${column}}`);
  });
}

const LINE_END = Buffer.from('\n');
/** Longest argument or environment variable on Linux, in bytes, with the NUL that ends it. */
const MAX_WORD_BYTES = 131_072;

const textOf = (item: unknown) => (typeof item === 'string' ? item : JSON.stringify(item));

function wordOf(item: unknown): string {
  const instead = 'leave {} out, then the program gets it on standard input';
  if (bytesOf(item)) throw programError(`bytes cannot be an argument: ${instead}`);
  const word = textOf(item);
  if (word.includes('\0')) throw programError(`a NUL cannot be in an argument: ${instead}`);
  const bytes = Buffer.byteLength(word);
  if (bytes + NAME.length + 30 < MAX_WORD_BYTES) return word;
  throw programError(`the item has ${bytes} bytes, too many for an argument: ${instead}`);
}

/** A word for a shell, with quotes where it needs them. */
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

/** The names in braces that would be placeholders if there were columns of these names. */
export function namesIn(command: string): string[] {
  const names = new Set<string>();
  partsOf(command, (name) => {
    names.add(name);
    return true;
  });
  return [...names];
}

function placeholderAt(
  command: string,
  at: number,
  isColumn: (name: string) => boolean,
): { readonly of: Placeholder['of']; readonly length: number } | undefined {
  if (command.startsWith('{}', at)) return { of: 'item', length: 2 };
  if (command.startsWith('{index}', at)) return { of: 'index', length: 7 };
  NAMED.lastIndex = at;
  const [whole = '', column = ''] = NAMED.exec(command) ?? [];
  return whole !== '' && isColumn(column) ? { of: { column }, length: whole.length } : undefined;
}

/**
 * Finds the placeholders that are not in single quotes or behind a backslash or `$`, and whether each is in double
 * quotes. The text in `$(…)` has quotes of its own.
 */
function partsOf(command: string, isColumn: (name: string) => boolean): Part[] {
  const parts: Part[] = [];
  /** What surrounds the current place: double quotes, or `$(…)` with a number of open brackets in it. */
  const within: ('"' | { brackets: number })[] = [{ brackets: 0 }];
  let from = 0;
  let at = 0;
  while (at < command.length) {
    const place = within.at(-1);
    const letter = command[at];
    const found = placeholderAt(command, at, isColumn);
    let length = 1;
    if (letter === '\\') length = 2;
    // `${` begins a variable of the shell.
    else if (command.startsWith('${', at)) length = 2;
    else if (found) {
      parts.push(command.slice(from, at), { of: found.of, quoted: place === '"' });
      length = found.length;
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

/** The place behind the next `what`, or the end of the text. */
function endOf(text: string, what: string, from: number): number {
  const found = text.indexOf(what, from);
  return found < 0 ? text.length : found + 1;
}
