import { pipeline, type Readable } from 'node:stream';
import { LineSplitter, Utf8Check } from '@piecework/producer/items';
import { PayloadError } from '@piecework/protocol/contract';
import type { CsvError, Options } from 'csv-parse';
import { binaryOf } from './binary.js';

/** An item of the input, and its place. */
export interface InputRecord {
  readonly item: unknown;
  /** `line 7`. */
  readonly where: string;
}

export type Records = (bytes: Readable) => AsyncIterable<InputRecord>;

export const NOT_UTF8 =
  ': --binary passes the bytes unchanged, iconv -t UTF-8 converts other encodings';
export const MORE = '--max-payload-bytes allows more';
/** The longest line of bytes that fits into a payload: base64 makes four characters of three bytes. */
const binaryBytes = (maxBytes: number) =>
  Math.max(1, Math.floor(((maxBytes - '{"$binary":""}'.length) * 3) / 4) - 2);
/** The characters that separate fields. */
const FIELDS = { csv: ',', tsv: '\t' } as const;

/** Each line, or the text between two delimiters, is an item. */
export function linesOf({
  delimiter = '\n',
  binary,
  maxPayloadBytes,
  advice: also = '',
}: {
  delimiter?: string | undefined;
  binary: boolean;
  maxPayloadBytes: number;
  /** What else to do about a line that is too long. */
  advice?: string;
}): Records {
  const maxBytes = binary ? binaryBytes(maxPayloadBytes) : maxPayloadBytes;
  const unit = delimiter === '\n' ? 'line' : 'item';
  const ends = unit === 'line' ? 'lines end in LF or CRLF; --split sets another delimiter; ' : '';
  const advice = `: ${ends}${also}${MORE}`;
  return async function* (bytes) {
    const split = new LineSplitter({ maxBytes, delimiter, binary, advice });
    // An error of the bytes is also thrown to the reader of the lines.
    if (binary) pipeline(bytes, split, () => {});
    else pipeline(bytes, new Utf8Check({ delimiter, advice: NOT_UTF8 }), split, () => {});
    let number = 0;
    for await (const line of split as AsyncIterable<string>) {
      number += 1;
      const item = binary ? binaryOf(Buffer.from(line, 'latin1')) : line;
      yield { item, where: `${unit} ${number}` };
    }
  };
}

/**
 * Each row is an object with the names of the header; all values are strings. Rows end in LF, CRLF or CR, and have as
 * many fields as the header. Empty lines are skipped if the header has more than one field.
 */
export function rowsOf(
  kind: keyof typeof FIELDS,
  maxPayloadBytes: number,
  onHeader: (names: readonly string[]) => void = () => {},
): Records {
  return async function* (bytes) {
    // Loaded only by commands that need it.
    const csv = await import('csv-parse');
    let line = 1;
    const options: Options<CsvRow, string[]> = {
      bom: true,
      delimiter: FIELDS[kind],
      max_record_size: maxPayloadBytes,
      record_delimiter: ['\r\n', '\n', '\r'],
      // `rowOf` counts the fields, with a better error.
      relax_column_count: true,
      // Counts lines here, as the parser counts CRLF within quotes as two lines.
      on_record: (fields) => {
        const where = `line ${line}`;
        for (const field of fields) line += field.match(/\r\n|\n|\r/g)?.length ?? 0;
        line += 1;
        return { fields, where };
      },
    };
    const rows = csv.parse(options as Options<unknown> as Options);
    pipeline(bytes, new Utf8Check({ advice: NOT_UTF8 }), rows, () => {});
    let header: readonly string[] | undefined;
    try {
      for await (const { fields, where } of rows as AsyncIterable<CsvRow>) {
        if (header) {
          if (fields.length === 1 && fields[0] === '' && header.length > 1) continue;
          yield { item: rowOf(fields, header, where), where };
        } else {
          header = checkedHeader(fields, where);
          onHeader(header);
        }
      }
    } catch (error) {
      throw error instanceof csv.CsvError
        ? broken(error, kind, `line ${line}`, maxPayloadBytes)
        : error;
    }
  };
}

interface CsvRow {
  readonly fields: readonly string[];
  readonly where: string;
}

/** Why a row cannot be read, by the error code of the parser. */
const REASONS: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: 'a quote is not closed',
  CSV_INVALID_CLOSING_QUOTE:
    'a closing quote is not followed by a delimiter; a quote within quotes is written twice',
  INVALID_OPENING_QUOTE:
    'there is a quote within a field without quotes; put the field into quotes, and write the quote twice',
};

function broken(
  { code, message }: CsvError,
  kind: string,
  where: string,
  maxBytes: number,
): PayloadError {
  const what = `the row that begins in ${where} is not valid ${kind.toUpperCase()}`;
  const why =
    code === 'CSV_MAX_RECORD_SIZE'
      ? `it has more than ${maxBytes} characters; is there a quote that is not closed? ${MORE}`
      : (REASONS[code] ?? message);
  return new PayloadError(`${what}: ${why}`);
}

/** The object of a row. `fromEntries` also accepts names such as `__proto__`. */
function rowOf(fields: readonly string[], header: readonly string[], where: string): unknown {
  if (fields.length === header.length)
    return Object.fromEntries(header.map((name, i) => [name, fields[i]]));
  const [has, wanted] = [counted(fields.length), counted(header.length)];
  throw new PayloadError(`${where} has ${has}, the header ${wanted}`);
}

const counted = (fields: number) => (fields === 1 ? '1 field' : `${fields} fields`);

/** Refuses two fields of one name: one of them would be lost. */
function checkedHeader(names: readonly string[], where: string): readonly string[] {
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice === undefined) return names;
  throw new PayloadError(`${where}: the header has ${JSON.stringify(twice)} twice`);
}
