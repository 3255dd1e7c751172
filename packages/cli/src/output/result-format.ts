import type { ResultItem } from '@piecework/notifier';
import { JsonText } from '@piecework/protocol/contract';
import { bytesOf } from '../input/binary.js';
import { objectLine, oneLine, parsedOf } from '../json/json-parts.js';

/** How `--out` is written. */
export type ResultFormat = 'ndjson' | 'text' | 'csv';

export interface ResultWriter {
  /** The line before the first result. */
  readonly head?: string;
  /** Control characters of a line that a terminal gets as they are. Default: tabs. */
  readonly shown?: string;
  /** The line of a result, without the line end; undefined: there is none. */
  line(item: ResultItem<unknown>): string | Buffer | undefined;
}

/** A string as it is, anything else as JSON; undefined and null are the empty string. */
function textOf(given: unknown): string {
  const value = parsedOf(given);
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value;
  return given instanceof JsonText ? oneLine(given) : JSON.stringify(given);
}

/** Begins a formula in a spreadsheet, whether the field is in quotes or not. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** A field by RFC 4180. A single quote before the text keeps a spreadsheet from calculating it. */
function field(given: string): string {
  const text = FORMULA.test(given) && !NUMBER.test(given) ? `'${given}` : given;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const resultFormats: Readonly<Record<ResultFormat, ResultWriter>> = {
  /** `{"index":…,"status":…,"value"|"error":…}`, and its timing if it has one. */
  ndjson: {
    line(item) {
      const { index, status, timing } = item;
      const line =
        item.status === 'succeeded'
          ? { index, status, value: item.value === undefined ? null : item.value, timing }
          : { index, status, error: item.error, timing };
      return objectLine(line);
    },
  },

  /** The values of the sub-requests that succeeded; bytes as they are. */
  text: {
    shown: '\n\t',
    line(item) {
      if (item.status !== 'succeeded') return undefined;
      const bytes = bytesOf(parsedOf(item.value));
      if (!bytes) return textOf(item.value);
      return bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes;
    },
  },

  csv: {
    head: 'index,status,value,error',
    line(item) {
      const { index, status } = item;
      const value = item.status === 'succeeded' ? textOf(item.value) : '';
      const error = item.status === 'succeeded' ? '' : `${item.error.name}: ${item.error.message}`;
      return [index, status, field(value), field(error)].join(',');
    },
  },
};

/** The same without timing, which was measured for the joblog. */
export const untimed = (writer: ResultWriter): ResultWriter => ({
  ...writer,
  line: ({ timing: _, ...item }) => writer.line(item),
});
