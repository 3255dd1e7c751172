import { InvalidOptionError, type JsonText } from '@piecework/protocol/contract';
import { bytesOf } from '../input/binary.js';
import { elementsOf, membersOf, oneLine } from '../json/json-parts.js';
import { quoted } from '../terminal/quoted.js';
import { type Part, type Placeholder, partsOf } from './placeholders.js';
import { programError } from './program-error.js';

/**
 * The command of `--exec` with its placeholders: `{}` is the payload, `{index}` the index of the sub-request, and
 * `{name}` a column of a row, where the input has columns. All other braces belong to the shell.
 *
 * A payload is never inserted into the text that the shell parses. `{}` becomes the expansion of an environment
 * variable in double quotes, `"${PIECEWORK_ITEM?}"`, which the shell neither parses, splits nor globs, and at which it
 * fails if the command has unset the variable. A placeholder that cannot become one, as in single quotes or
 * backquotes, is refused.
 */

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

  /**
   * @param columns names that, in braces, are fields of the payload, an object
   * @throws InvalidOptionError when a placeholder is in a place where it cannot be replaced
   */
  constructor(command: string, input: ExecInput = 'json', columns: readonly string[] = []) {
    this.#parts = partsOf(command, (name) => columns.includes(name));
    this.#input = input;
    const barred = this.#parts.find(isBarred);
    if (barred)
      throw new InvalidOptionError(
        '--exec',
        command,
        `no {} ${barred.barred}`.replaceAll('{}', nameOf(barred)),
      );
  }

  /** Whether the payload, or a field of it, is an argument. Then it is not on standard input. */
  get takesItem(): boolean {
    return this.#parts.some(isItem);
  }

  /** @throws Error when the payload cannot be an argument */
  invocation(payload: JsonText, index: number): Invocation {
    const env: Record<string, string> = {};
    const command = this.#render(index, payload, (words, name, quoted) => {
      const names = words.map((_, i) => (words.length === 1 ? name : `${name}_${i}`));
      for (const [i, one] of names.entries()) env[one] = words[i] ?? '';
      return names.map((one) => (quoted ? `\${${one}?}` : `"\${${one}?}"`));
    });
    return { command, env, stdin: this.takesItem ? '' : this.#stdin(payload) };
  }

  /**
   * The same command as a person would type it.
   * @param clean what is done to texts of the payload
   */
  shown(payload: JsonText, index: number, clean: (text: string) => string): string {
    const command = this.#render(index, payload, (words, _, within) =>
      words.map(clean).map((word) => (within ? word.replace(/["$`\\]/g, '\\$&') : quoted(word))),
    );
    if (this.takesItem) return command;
    const stdin = this.#stdin(payload);
    const given =
      typeof stdin === 'string' ? `printf %s ${quoted(clean(stdin))}` : `printf '${octal(stdin)}'`;
    return `${given} | ${/[;&|\n]/.test(command) ? `sh -c ${quoted(command)}` : command}`;
  }

  /** @param show turns `words` into the text for the shell; variables of the given name are free to use */
  #render(
    index: number,
    payload: JsonText,
    show: (words: readonly string[], name: string, quoted: boolean) => readonly string[],
  ): string {
    return this.#parts
      .map((part, i) => {
        if (typeof part === 'string') return part;
        const { of, quoted, attached } = part;
        if (of === 'index') return String(index);
        const words =
          of === 'item'
            ? this.#items(payload).map(wordOf)
            : fieldsOf(payload, of.column).map(wordOf);
        // The rest of `x={}` would be a command.
        if (attached && words.length !== 1)
          throw programError(
            `${nameOf(part)} of a batch is ${words.length} words: write it as a word of its own, or in double quotes`,
          );
        return show(words, of === 'item' ? NAME : `${NAME}_PART_${i}`, quoted).join(' ');
      })
      .join('');
  }

  #stdin(payload: JsonText): string | Buffer {
    if (this.#input === 'json' || !isArray(payload))
      return bytesOf(payload.value) ?? textOf(payload);
    const lines = elementsOf(payload).flatMap((item) => [
      bytesOf(item.value) ?? Buffer.from(textOf(item, oneLine)),
      LINE_END,
    ]);
    return Buffer.concat(lines);
  }

  #items(payload: JsonText): JsonText[] {
    return this.#input === 'lines' && isArray(payload) ? elementsOf(payload) : [payload];
  }
}

/** One column of a row, or of each row of a batch. */
function fieldsOf(payload: JsonText, column: string): JsonText[] {
  return (isArray(payload) ? elementsOf(payload) : [payload]).map((row) => {
    const field = isObject(row) ? membersOf(row).get(column) : undefined;
    if (field) return field;
    throw programError(`the item has no field for {${column}}`);
  });
}

const isArray = ({ text }: JsonText) => /^\s*\[/.test(text);
const isObject = ({ text }: JsonText) => /^\s*\{/.test(text);

const LINE_END = Buffer.from('\n');
/** Longest argument or environment variable on Linux, in bytes, with the NUL that ends it. */
const MAX_WORD_BYTES = 131_072;

/** A string as it is, anything else as JSON. */
function textOf(item: JsonText, jsonOf: (json: JsonText) => string = ({ text }) => text): string {
  const { value } = item;
  if (typeof value !== 'string') return jsonOf(item);
  if (!/\p{Cs}/u.test(value)) return value;
  throw programError('the item has half of a surrogate pair, for which UTF-8 has no bytes');
}

function wordOf(item: JsonText): string {
  const instead = 'leave {} out, then the program gets it on standard input';
  if (bytesOf(item.value)) throw programError(`bytes cannot be an argument: ${instead}`);
  const word = textOf(item);
  if (word.includes('\0')) throw programError(`a NUL cannot be in an argument: ${instead}`);
  const bytes = Buffer.byteLength(word);
  if (bytes + NAME.length + 30 < MAX_WORD_BYTES) return word;
  throw programError(`the item has ${bytes} bytes, too many for an argument: ${instead}`);
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
  const names = partsOf(command, () => true).flatMap((part) =>
    typeof part === 'string' || part.barred || typeof part.of === 'string' ? [] : [part.of.column],
  );
  return [...new Set(names)];
}

/** Whether a command has a `{}` that would be replaced. */
export const hasItem = (command: string): boolean =>
  partsOf(command, () => false).some((part) => isItem(part) && !part.barred);

const isItem = (part: Part): part is Placeholder => typeof part !== 'string' && part.of !== 'index';

const isBarred = (part: Part): part is Placeholder =>
  typeof part !== 'string' && part.barred !== undefined;

function nameOf({ of }: Placeholder): string {
  if (of === 'item') return '{}';
  return of === 'index' ? '{index}' : `{${of.column}}`;
}
