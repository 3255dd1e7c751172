import { pipeline, type Readable } from 'node:stream';
import { LineSplitter, Utf8Check } from '@piecework/producer';
import { PayloadError } from '@piecework/protocol';
import type { CsvError, Options } from 'csv-parse';
import { binaryOf } from './binary.js';

/** An item of the input, and where it stands. */
export interface InputRecord {
  readonly item: unknown;
  /** `line 7`. */
  readonly where: string;
}

export type Records = (bytes: Readable) => AsyncIterable<InputRecord>;

const NOT_UTF8 =
  ': --binary passes its bytes as they are, iconv -t UTF-8 turns other encodings into it';
const MORE = '--max-payload-bytes allows more';
/** What a line of bytes may have to fit into a payload: base64 makes four characters of three. */
const binaryBytes = (maxBytes: number) =>
  Math.max(1, Math.floor(((maxBytes - '{"$binary":""}'.length) * 3) / 4) - 2);
/** Characters that separate the fields. */
const FIELDS = { csv: ',', tsv: '\t' } as const;

/** Each line, or what stands between two delimiters, is an item. */
export function linesOf({
  delimiter = '\n',
  binary,
  maxPayloadBytes,
}: {
  delimiter?: string | undefined;
  binary: boolean;
  maxPayloadBytes: number;
}): Records {
  const maxBytes = binary ? binaryBytes(maxPayloadBytes) : maxPayloadBytes;
  const unit = delimiter === '\n' ? 'line' : 'item';
  const ends =
    unit === 'line' ? 'lines end in LF or CRLF; --split says what else ends an item; ' : '';
  const advice = `: ${ends}${MORE}`;
  return async function* (bytes) {
    const split = new LineSplitter({ maxBytes, delimiter, binary, advice });
    // A failure of the bytes reaches the reader as one of the lines.
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

/** Each line is a JSON value; empty ones are skipped. */
export function ndjsonOf(maxPayloadBytes: number): Records {
  const lines = linesOf({ binary: false, maxPayloadBytes });
  return async function* (bytes) {
    for await (const { item, where } of lines(bytes)) {
      const line = item as string;
      if (line.trim() === '') continue;
      yield { item: parsed(line, where), where };
    }
  };
}

function parsed(line: string, where: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new PayloadError(`${where} is not JSON: ${(error as Error).message}`);
  }
}

/**
 * Each row is an object, by the names of the header; all values are texts. Rows end in LF, CRLF or CR, and have as many
 * fields as the header; empty lines are skipped, where the header has more than one field.
 */
export function rowsOf(
  kind: keyof typeof FIELDS,
  maxPayloadBytes: number,
  onHeader: (names: readonly string[]) => void = () => {},
): Records {
  return async function* (bytes) {
    // Few commands need it.
    const csv = await import('csv-parse');
    let line = 1;
    const options: Options<CsvRow, string[]> = {
      bom: true,
      delimiter: FIELDS[kind],
      max_record_size: maxPayloadBytes,
      record_delimiter: ['\r\n', '\n', '\r'],
      // They are counted below, where the error can say more.
      relax_column_count: true,
      // Where a row begins; the parser counts CRLF within quotes as two lines.
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

/** Why a row cannot be read, by the code of the parser. */
const REASONS: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: 'a quote is not closed',
  CSV_INVALID_CLOSING_QUOTE:
    'something follows a closing quote; within quotes, write a quote twice',
  INVALID_OPENING_QUOTE:
    'a quote within a field that does not begin with one; put the field into quotes and write it twice',
};

function broken(
  { code, message }: CsvError,
  kind: string,
  where: string,
  maxBytes: number,
): PayloadError {
  const what = `the row that begins in ${where} is no ${kind.toUpperCase()}`;
  const why =
    code === 'CSV_MAX_RECORD_SIZE'
      ? `it has more than ${maxBytes} characters; is a quote not closed? ${MORE}`
      : (REASONS[code] ?? message);
  return new PayloadError(`${what}: ${why}`);
}

/** An object, also where a name is one that objects have anyway. */
function rowOf(fields: readonly string[], header: readonly string[], where: string): unknown {
  if (fields.length === header.length)
    return Object.fromEntries(header.map((name, i) => [name, fields[i]]));
  const [has, wanted] = [counted(fields.length), counted(header.length)];
  throw new PayloadError(`${where} has ${has}, the header ${wanted}`);
}

const counted = (fields: number) => (fields === 1 ? '1 field' : `${fields} fields`);

/** Of two fields of one name, one would be lost. */
function checkedHeader(names: readonly string[], where: string): readonly string[] {
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice === undefined) return names;
  throw new PayloadError(`${where}: the header has ${JSON.stringify(twice)} twice`);
}
