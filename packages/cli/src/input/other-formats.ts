import { PayloadError } from '@piecework/protocol/contract';
import { quoted } from '../terminal/quoted.js';

/**
 * Formats that are no text, by their first bytes. Inputs of these formats are refused, with the command that turns them
 * into text. No text begins with any of these patterns.
 */

interface Format {
  readonly name: string;
  /** The first bytes, each as a character, up to four. Behind them more bytes are waited for, to be sure. */
  readonly start?: string;
  /** What the first bytes match. */
  readonly magic: RegExp;
  /** The command that writes the text of a file. */
  readonly command: (file: string) => string;
  /** Whether the command reads standard input, too, as the file `-`. */
  readonly reads?: true;
  readonly split?: 'csv' | 'json' | 'ndjson';
}

// biome-ignore-start lint/suspicious/noControlCharactersInRegex: no text contains them
const FORMATS: readonly Format[] = [
  {
    ...{ name: 'bzip2', start: 'BZh', magic: /^BZh[1-9](?:1AY&SY|\x17rE8P\x90)/ },
    ...{ command: (file) => `bzip2 -dc ${file}`, reads: true },
  },
  {
    ...{ name: 'xz', start: '\xfd7zX', magic: /^\xfd7zXZ\0/ },
    ...{ command: (file) => `xz -dc ${file}`, reads: true },
  },
  {
    ...{ name: 'lz4', start: '\x04"M\x18', magic: /^\x04"M\x18/ },
    ...{ command: (file) => `lz4 -dc ${file}`, reads: true },
  },
  {
    ...{ name: 'lzip', start: 'LZIP', magic: /^LZIP[\0\x01]/ },
    ...{ command: (file) => `lzip -dc ${file}`, reads: true },
  },
  {
    ...{ name: 'compressed by compress', start: '\x1f\x9d', magic: /^\x1f\x9d/ },
    ...{ command: (file) => `gzip -dc ${file}`, reads: true },
  },
  {
    ...{ name: 'a tar archive', magic: /^[\s\S]{257}ustar[\0 ]/ },
    ...{ command: (file) => `tar -xOf ${file}`, reads: true },
  },
  {
    ...{ name: 'an Office document, such as xlsx', start: 'PK\x03\x04' },
    magic: /^PK\x03\x04[\s\S]{26}(?:\[Content_Types\]|_rels\/|docProps\/|xl\/)/,
    ...{ command: (file) => `in2csv ${file}`, split: 'csv' },
  },
  {
    ...{ name: 'an old Office document, such as xls', start: '\xd0\xcf\x11\xe0' },
    ...{ magic: /^\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1/, command: (file) => `in2csv ${file}` },
    split: 'csv',
  },
  {
    ...{ name: 'a zip archive', start: 'PK', magic: /^PK(?:\x03\x04|\x05\x06|\x07\x08)/ },
    command: (file) => `unzip -p ${file}`,
  },
  {
    ...{ name: 'a 7z archive', start: '7z\xbc\xaf', magic: /^7z\xbc\xaf'\x1c/ },
    command: (file) => `7z x -so ${file}`,
  },
  {
    ...{ name: 'a rar archive', start: 'Rar!', magic: /^Rar!\x1a\x07/ },
    command: (file) => `unrar p -inul ${file}`,
  },
  {
    ...{ name: 'Parquet', start: 'PAR1', magic: /^PAR1\x15/ },
    command: (file) =>
      `duckdb -c ${quoted(`copy (from ${sql(file)}) to '/dev/stdout' (format json)`)}`,
    split: 'ndjson',
  },
  {
    ...{ name: 'Avro', start: 'Obj\x01', magic: /^Obj\x01/ },
    ...{ command: (file) => `avro-tools tojson ${file}`, split: 'ndjson' },
  },
  {
    // A name of a column may begin with these letters.
    ...{ name: 'ORC', start: 'ORC', magic: /^ORC[\s\S]{0,60}?[\0-\x08\x0e-\x1a\x1c-\x1f]/ },
    ...{ command: (file) => `orc-contents ${file}`, split: 'ndjson' },
  },
  {
    ...{ name: 'an SQLite database', start: 'SQLi', magic: /^SQLite format 3\0/ },
    ...{ command: (file) => `sqlite3 -json ${file} 'select * from TABLE'`, split: 'json' },
  },
  {
    ...{ name: 'a PDF', start: '%PDF', magic: /^%PDF-\d/ },
    command: (file) => `pdftotext ${file} -`,
  },
];
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: no text contains them

/** Most first bytes by which a format is recognised. */
export const FORMAT_BYTES = 512;
/** As many as all formats need that have a `start`. */
const SURE_BYTES = 64;

const textOf = (head: Buffer) => head.toString('latin1', 0, FORMAT_BYTES);

/** Whether more bytes may show that it is one of these formats. */
export function mayBeOther(head: Buffer): boolean {
  const text = textOf(head);
  return (
    text.length < SURE_BYTES &&
    FORMATS.some(({ start }) => start !== undefined && text.startsWith(start))
  );
}

/** Whether the bytes are the first of one of these formats. */
export const isOther = (head: Buffer): boolean =>
  FORMATS.some(({ magic }) => magic.test(textOf(head)));

/**
 * @param path '-' is standard input
 * @param unpack the command that decompressed it, if it was compressed
 * @throws PayloadError when the bytes are the first of one of these formats
 */
export function refuseOther(head: Buffer, path: string, piecework: string, unpack?: string): void {
  const text = textOf(head);
  const found = FORMATS.find(({ magic }) => magic.test(text));
  if (!found) return;
  const { name, command, reads, split } = found;
  const isFile = path !== '-' && unpack === undefined;
  const file = isFile ? path : reads ? '-' : 'FILE';
  const read = command(found.name === 'Parquet' ? file : quoted(file));
  const before =
    isFile || !reads
      ? []
      : [unpack === undefined ? '…' : `${unpack} ${path === '-' ? '' : quoted(path)}`];
  const by = split === undefined ? '' : ` --split ${split}`;
  const pipe = [...before, read, `piecework ${piecework} --input -${by} …`].join(' | ');
  const first = isFile || reads ? '' : 'write it into a FILE, then ';
  throw new PayloadError(`this is ${name}, not text: ${first}${pipe}`);
}

const sql = (text: string) => `'${text.replaceAll("'", "''")}'`;
