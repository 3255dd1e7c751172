import type { Readable } from 'node:stream';
import { PayloadError } from '@piecework/protocol/contract';
import { type Columns, named, unnamed } from './columns.js';
import { CsvReader, type Row } from './csv.js';
import { separatesFields } from './delimiter.js';
import { type BadRecord, isBad, linesOf, type Records, utf8Of } from './records.js';

/**
 * Rows as items: those of CSV, and those of tab-separated text as databases write it (COPY of PostgreSQL, `mysql -B`),
 * where a quote or a backslash is data and a line is a row.
 */

export interface RowsOptions {
  readonly kind: 'csv' | 'tsv';
  readonly maxPayloadBytes: number;
  /** One character; by default that of `sep=X` in the first line, else a comma. */
  readonly delimiter?: string | undefined;
  /** Names of the columns; `none`: rows have no names. By default the first row has them. */
  readonly header?: readonly string[] | 'none' | undefined;
  /** Whether rows that are too long are read to their end. */
  readonly goesOn: boolean;
  /** Called before the first item of each input. */
  readonly onColumns: (columns: Columns, delimiter: string) => void;
}

interface Rows {
  /** Known from the first row on. */
  readonly delimiter: string;
  /** Whether somebody has said that it is this one. */
  readonly isSure: boolean;
  readonly rows: AsyncIterable<Row | BadRecord>;
}

/** Empty lines are skipped, unless there is one column only. */
export function rowsOf(options: RowsOptions): Records {
  const { kind, header, onColumns } = options;
  return async function* (from) {
    const read = kind === 'csv' ? csvOf(from, options) : tabbed(from, options.maxPayloadBytes);
    let columns: Columns | undefined;
    let isFirst = true;
    for await (const row of read.rows) {
      if (!columns && Array.isArray(header)) {
        columns = named(header, '--csv-header');
        onColumns(columns, read.delimiter);
      }
      if (isBad(row)) {
        yield isFirst && header === undefined ? { ...row, isHeader: true as const } : row;
        continue;
      }
      const { fields, number } = row;
      // One name says that there is one column.
      if (isFirst && columns?.width !== 1) checkFirst(fields, `line ${number}`, kind, read);
      const isHeader = isFirst && header === undefined;
      isFirst = false;
      if (!columns) {
        columns = isHeader ? named(fields, 'the header', `line ${number}`) : unnamed(fields.length);
        onColumns(columns, read.delimiter);
      }
      if (isHeader || (fields.length === 1 && fields[0] === '' && columns.width > 1)) continue;
      const item = columns.itemOf(fields);
      if (typeof item === 'string') yield badRow(row, item, kind);
      else yield { ...item, number };
    }
  };
}

function badRow({ fields, number, text }: Row, why: string, kind: 'csv' | 'tsv'): BadRecord {
  const isQuoted = kind === 'tsv' && fields.some((field) => field.startsWith('"'));
  const wrong = isQuoted ? `${why}; ${QUOTED_TSV}` : why;
  return { wrong, number, bytes: Buffer.from(text).toString('latin1') };
}

const QUOTED_TSV = "--split csv --csv-delimiter '\\t' reads fields in quotes";

/** Rows end in LF or CRLF, and fields in a tab. */
function tabbed(from: Readable, maxPayloadBytes: number): Rows {
  const lines = linesOf({ binary: false, maxPayloadBytes });
  const rows = async function* () {
    for await (const line of lines(from)) {
      if (isBad(line)) {
        yield line;
        continue;
      }
      const text = line.item as string;
      yield { fields: text.split('\t'), number: line.number, text };
    }
  };
  return { delimiter: '\t', isSure: false, rows: rows() };
}

/** `sep=;`, with which Excel is told the delimiter. */
const SEP = /^"?sep=([^\r\n]{1,4}?)"?(?:\r\n|\n|\r)/i;
const MAYBE_SEP = /^"?(?:s[^\n]*)?$/i;
/** The most characters of such a line. */
const SEP_LENGTH = 12;

function csvOf(
  from: Readable,
  { delimiter: given, maxPayloadBytes: maxBytes, goesOn }: RowsOptions,
): Rows {
  const rows = { delimiter: given ?? ',', isSure: given !== undefined };
  const begin = (text: string) => {
    const [line = '', bytes = ''] = SEP.exec(text) ?? [];
    const said = utf8Of(bytes) ?? '';
    if (!separatesFields(said)) return { line: '', reader: readerOf(1) };
    if (given !== undefined && given !== said)
      throw new PayloadError(`line 1 is sep=${said}, but --csv-delimiter is ${given}`);
    rows.delimiter = said;
    rows.isSure = true;
    return { line, reader: readerOf(2) };
  };
  const readerOf = (line: number) =>
    new CsvReader({ delimiter: rows.delimiter, maxBytes, line, goesOn });
  const read = async function* () {
    let reader: CsvReader | undefined;
    let first = '';
    const open = () => {
      const begun = begin(first);
      reader = begun.reader;
      return reader.read(first.slice(begun.line.length));
    };
    for await (const chunk of from as AsyncIterable<Buffer>) {
      const text = chunk.toString('latin1');
      if (reader) yield* reader.read(text);
      else {
        first += text;
        // A slow input is not awaited for longer than it may begin with such a line.
        if (first.length >= SEP_LENGTH || !MAYBE_SEP.test(first)) yield* open();
      }
    }
    if (!reader) yield* open();
    yield* (reader as CsvReader | undefined)?.end() ?? [];
  };
  return Object.assign(rows, { rows: read() });
}

/** Longest part of a field that a message repeats. */
const SHOWN = 40;

/** Refuses a first row that seems to have another delimiter: all of it would be one field. */
function checkFirst(
  [field = '', ...others]: readonly string[],
  place: string,
  kind: 'csv' | 'tsv',
  { isSure }: Rows,
): void {
  const shown = JSON.stringify(field.length > SHOWN ? `${field.slice(0, SHOWN)}…` : field);
  if (kind === 'tsv' && /\r/.test([field, ...others].join('')))
    throw new PayloadError(
      `${place} contains a CR: --split csv --csv-delimiter '\\t' reads rows that end in CR`,
    );
  if (others.length > 0 || isSure) return;
  const found = [...(kind === 'tsv' ? ',;|' : ';\t|')].find((char) => field.includes(char));
  if (found === undefined) return;
  const typed = found === '\t' ? '\\t' : found;
  const splits = found === ',' ? '--split csv' : `--split csv --csv-delimiter '${typed}'`;
  const whole = kind === 'tsv' ? "--split csv --csv-delimiter '\\t'" : '--csv-delimiter ,';
  throw new PayloadError(
    `${place} is one column, ${shown}: ${splits} splits it, ${whole} leaves it whole`,
  );
}
