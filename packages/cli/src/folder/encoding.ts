import type { JsonText } from '@piecework/protocol/contract';
import { bytesOf } from '../input/binary.js';
import { delimiterOf } from '../input/delimiter.js';
import type { InputValues } from '../input/input-values.js';
import { elementsOf } from '../json/json-parts.js';

/**
 * Items as text that `--split` reads as the same items again: the opposite of `input/`, kind by kind
 * (docs/decisions/0080).
 */

/** The texts of one file. */
export interface Encoding {
  /** How the file is read: a value of `--split`. */
  readonly split: string;
  /** The text of the next item, with what stands before it; undefined: it needs a file of its own. */
  next(item: JsonText): string | Buffer | undefined;
  /** Why a reader refuses the items that begin so. */
  readonly unreadable?: string | undefined;
  /** What stands behind the last item. */
  readonly end: string;
}

/** How the items of one input are written. */
export interface ItemFormat {
  /** Of the names of the files. */
  readonly extension: string;
  /** Begins a file. */
  begin(): Encoding;
  /** The items of the input that one payload is made of. */
  itemsOf(payload: JsonText): readonly JsonText[];
}

type FormatValues = Pick<
  InputValues,
  'batch' | 'binary' | 'csvDelimiter' | 'csvHeader' | 'jsonPath'
>;

/** @param by the value of `--split` @param delimiter between the fields of the rows that were read */
export function itemFormatOf(
  by: string,
  { batch, binary, csvDelimiter, csvHeader, jsonPath }: FormatValues,
  delimiter: string | undefined,
): ItemFormat {
  const isBatch = batch !== undefined || by.startsWith('chunk:');
  const itemsOf = (payload: JsonText) => (isBatch ? elementsOf(payload) : [payload]);
  const format = (extension: string, begin: () => Encoding) => ({ extension, begin, itemsOf });
  if (by === 'ndjson') return format('ndjson', ndjson);
  if (by === 'json') return format('json', () => json(jsonPath?.split('.') ?? []));
  if (by === 'files') return format('txt', paths);
  if (by === 'csv' || by === 'tsv')
    return format(by, () =>
      rows(by, { given: csvDelimiter && delimiterOf(csvDelimiter), read: delimiter }, csvHeader),
    );
  const between = by.startsWith('delimiter:') ? delimiterOf(by.slice(10)) : '\n';
  return format(binary ? 'bin' : 'txt', () => texts(by, between, binary));
}

/** A first line that is an array would be taken for an array in one line, so an empty line stands before it. */
function ndjson(): Encoding {
  let isFirst = true;
  return {
    ...{ split: 'ndjson', end: '' },
    next({ text }) {
      const before = isFirst && /^\s*\[/.test(text) ? '\n' : '';
      isFirst = false;
      return `${before}${text}\n`;
    },
  };
}

/** One array, where the path leads to. */
function json(path: readonly string[]): Encoding {
  let before = `${path.map((name) => `{${JSON.stringify(name)}:`).join('')}[\n`;
  return {
    ...{ split: 'json', end: `\n]${'}'.repeat(path.length)}\n` },
    next({ text }) {
      const whole = before + text;
      before = ',\n';
      return whole;
    },
  };
}

function texts(split: string, delimiter: string, binary: boolean): Encoding {
  return {
    ...{ split, end: '' },
    next({ value }) {
      if (binary) return Buffer.concat([bytesOf(value) ?? Buffer.alloc(0), Buffer.from(delimiter)]);
      return delimiter === '\n' ? lineOf(String(value)) : `${value}${delimiter}`;
    },
  };
}

/** Before a line end a reader leaves one CR out. */
const lineOf = (text: string) => (text.endsWith('\r') ? `${text}\r\n` : `${text}\n`);

/** Names of files, one a line; those with line ends in them are in files of their own, with NUL between them. */
function paths(): Encoding {
  let hasLineEnds: boolean | undefined;
  return {
    get split() {
      return hasLineEnds ? 'delimiter:\\0' : 'lines';
    },
    end: '',
    next({ value }) {
      const path = String(value);
      hasLineEnds ??= path.includes('\n');
      if (hasLineEnds !== path.includes('\n')) return undefined;
      return hasLineEnds ? `${path}\0` : lineOf(path);
    },
  };
}

/**
 * Rows below the header that names their fields; rows with other names are in a file of their own. `sep=` names a
 * delimiter that no flag names, and confirms a single column.
 */
function rows(
  kind: 'csv' | 'tsv',
  { given, read }: { given: string | undefined; read: string | undefined },
  header: string | undefined,
): Encoding {
  const delimiter = kind === 'tsv' ? '\t' : (given ?? read ?? ',');
  let names: readonly string[] | undefined;
  let unreadable: string | undefined;
  const lineOfRow = (fields: readonly string[]) =>
    kind === 'tsv'
      ? lineOf(fields.join(delimiter))
      : `${fields.map((field) => quoted(field, delimiter)).join(delimiter)}\n`;
  return {
    ...{ split: kind, end: '' },
    get unreadable() {
      return unreadable;
    },
    next({ value }) {
      const item = value as readonly string[] | Readonly<Record<string, string>>;
      const isFirst = names === undefined;
      // Objects have names that are numbers before all others, so the flag names the order.
      const found = header && header !== 'none' ? header.split(',') : Object.keys(item);
      names ??= found;
      if (!isFirst && names.join('\0') !== found.join('\0')) return undefined;
      const fields = Array.isArray(item)
        ? item
        : names.map((name) => (item as Record<string, string>)[name] ?? '');
      const row = lineOfRow(fields);
      if (!isFirst) return row;
      const isOdd =
        /\r/.test(fields.join('')) || (header === 'none' && /^[^\t]*[,;|][^\t]*$/.test(row));
      if (kind === 'tsv' && header !== undefined && isOdd) unreadable = ODD_ROW;
      const whole = header === undefined ? lineOfRow(names) + row : row;
      const isUnsure = given === undefined && (delimiter !== ',' || names.length === 1);
      const isSep = /^"?sep=/i.test(whole);
      return kind === 'csv' && (isUnsure || isSep) ? `sep=${delimiter}\n${whole}` : whole;
    },
  };
}

const ODD_ROW = 'its first row looks like one that is separated in another way';

/** A field by RFC 4180. */
const quoted = (field: string, delimiter: string) =>
  field.includes(delimiter) || /["\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
