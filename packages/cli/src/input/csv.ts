import { type BadRecord, MORE, NOT_UTF8, utf8Of } from './records.js';

/** A row of CSV, and the line in which it begins. */
export interface Row {
  readonly fields: readonly string[];
  readonly number: number;
  /** As it stands in the input. */
  readonly text: string;
}

interface CsvOptions {
  /** One character. */
  readonly delimiter: string;
  readonly maxBytes: number;
  /** Number of the first line. */
  readonly line: number;
  /** Whether a row that is too long is read to its end, so that the rows behind it can be read. */
  readonly goesOn: boolean;
}

const HALVES = ['"', '\r'];
const LINE_END = /\r\n|\n|\r/g;

/**
 * Cuts CSV by RFC 4180 into its rows. Fields in double quotes may contain delimiters, line ends, and quotes written
 * twice. Rows end in LF, CRLF or CR. Texts are bytes here, each as a character.
 *
 * A row with a quote in the wrong place is bad as a whole. It ends where it would without that mistake, because a quote
 * that is not written twice always ends the quoted text. A quote that is not closed costs all rows up to the next quote
 * (docs/decisions/0038).
 */
export class CsvReader {
  readonly #options: CsvOptions;
  /** The delimiter in bytes. */
  readonly #delimiter: string;
  /** The last characters, whose meaning depends on those that follow. */
  #rest = '';
  /** Parts of the row that has not ended yet, up to the limit, and its size. */
  #begun: string[] = [];
  #bytes = 0;
  /** Its last characters that may be a delimiter. */
  #tail = '';
  /** Whether its end is within quotes, and whether it has had quotes. */
  #quoted = false;
  #quotes = false;
  #line: number;
  /** Line ends within the row. */
  #breaks = 0;

  constructor(options: CsvOptions) {
    this.#options = options;
    this.#delimiter = Buffer.from(options.delimiter).toString('latin1');
    this.#line = options.line;
  }

  *read(chunk: string): Generator<Row | BadRecord> {
    yield* this.#cut(this.#rest + chunk, false);
  }

  *end(): Generator<Row | BadRecord> {
    yield* this.#cut(this.#rest, true);
    if (this.#bytes === 0) return;
    // The line end at the end of the input begins no line.
    if (this.#quoted && /[\r\n]$/.test(this.#tail)) this.#breaks -= 1;
    yield this.#row();
  }

  *#cut(text: string, ended: boolean): Generator<Row | BadRecord> {
    const next = /"|\r\n|\n|\r/g;
    let from = 0;
    let until = text.length;
    for (let found = next.exec(text); found; found = next.exec(text)) {
      const at = found.index;
      // The next character may be the other half of a CRLF, or of a quote within quotes.
      if (!ended && HALVES.includes(found[0]) && at + 1 === text.length) {
        until = at;
        break;
      }
      if (found[0] === '"') next.lastIndex = this.#quote(text, from, at);
      else if (!this.#quoted) {
        this.#add(text.slice(from, at));
        yield this.#row();
        from = next.lastIndex;
      }
    }
    this.#add(text.slice(from, until));
    this.#rest = text.slice(until);
    if (this.#isTooLong && !this.#options.goesOn) yield this.#row();
  }

  /** Notes what a quote means. @returns where to read on */
  #quote(text: string, from: number, at: number): number {
    this.#quotes = true;
    const behind = at + 1;
    if (!this.#quoted) {
      const before = at - this.#delimiter.length;
      const isFirst = at === from && this.#bytes === 0;
      this.#quoted =
        isFirst ||
        (before >= from
          ? text.startsWith(this.#delimiter, before)
          : (this.#tail + text.slice(from, at)).endsWith(this.#delimiter));
      return behind;
    }
    if (text[behind] === '"') return behind + 1;
    this.#quoted = false;
    return behind;
  }

  get #isTooLong(): boolean {
    return this.#bytes > this.#options.maxBytes;
  }

  #add(part: string): void {
    if (part === '') return;
    if (!this.#isTooLong) this.#begun.push(part);
    this.#bytes += part.length;
    this.#tail = (this.#tail + part).slice(-this.#delimiter.length);
    if (this.#quotes) this.#breaks += part.match(LINE_END)?.length ?? 0;
  }

  /** The row that has been read, and begins the next one. */
  #row(): Row | BadRecord {
    const { maxBytes, delimiter } = this.#options;
    const bytes = this.#begun.join('').slice(0, maxBytes);
    const [number, lines, open] = [this.#line, this.#breaks + 1, this.#quoted];
    const [isTooLong, hasQuotes] = [this.#isTooLong, this.#quotes];
    this.#begun = [];
    this.#bytes = 0;
    this.#tail = '';
    this.#quoted = false;
    this.#quotes = false;
    this.#line += lines;
    this.#breaks = 0;
    const bad = (wrong: string, more = false) => ({
      ...{ number, wrong, bytes },
      ...(more ? { more } : {}),
      ...(lines > 1 ? { lines } : {}),
    });
    if (isTooLong) {
      const maybe = hasQuotes ? '; or is a quote in it not closed?' : '';
      return bad(`begins a row of more than ${maxBytes} bytes: ${MORE}${maybe}`, true);
    }
    if (open) return bad('begins a row that is not valid CSV: a quote is not closed');
    const text = utf8Of(bytes);
    if (text === undefined) return bad(NOT_UTF8);
    const fields = hasQuotes ? fieldsOf(text, delimiter) : text.split(delimiter);
    if (typeof fields !== 'string') return { fields, number, text };
    return bad(`begins a row that is not valid CSV: ${fields}`);
  }
}

/** The fields of a row; or why it is not valid. */
function fieldsOf(row: string, delimiter: string): string[] | string {
  const fields: string[] = [];
  for (let at = 0; ; at += delimiter.length) {
    let field = '';
    if (row[at] === '"') {
      const parts: string[] = [];
      do {
        const end = row.indexOf('"', at + 1);
        if (end < 0) return 'a quote is not closed';
        parts.push(row.slice(at + 1, end));
        at = end + 1;
      } while (row[at] === '"');
      field = parts.join('"');
      if (at < row.length && !row.startsWith(delimiter, at))
        return 'a closing quote is not followed by a delimiter; a quote within quotes is written twice';
    } else {
      const end = row.indexOf(delimiter, at);
      field = row.slice(at, end < 0 ? undefined : end);
      at += field.length;
      if (field.includes('"'))
        return 'there is a quote within a field without quotes; put the field into quotes, and write the quote twice';
    }
    fields.push(field);
    if (at >= row.length) return fields;
  }
}
