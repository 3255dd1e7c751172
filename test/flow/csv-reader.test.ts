import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CsvReader } from '../../packages/cli/dist/input/csv.js';

/*
 * The reader of CSV against csv-parse, which reads the same rows, and refuses the same texts.
 */

/** Rows and bad rows of a text that comes in pieces. */
function rowsOf(pieces: readonly string[], delimiter: string) {
  const reader = new CsvReader({ delimiter, maxBytes: 1_000, line: 1, goesOn: true });
  return [...pieces.flatMap((piece) => [...reader.read(piece)]), ...reader.end()];
}

const parsed = (text: string, delimiter: string): string[][] | undefined => {
  const record_delimiter = ['\r\n', '\n', '\r'];
  try {
    return parse(text, { delimiter, record_delimiter, relax_column_count: true });
  } catch {
    return undefined;
  }
};

const LINE_END = /\r\n|\n|\r/;

const texts = fc.string({
  unit: fc.constantFrom('"', '"', ',', '\n', '\r\n', '\r', 'a', 'é', '§', ';'),
  maxLength: 20,
});

test('CSV is read as csv-parse reads it, however the text is cut into pieces, and its lines are counted', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        texts,
        texts.map((text) => text.replaceAll('"', '""').replace(/^|$/g, '"')),
      ),
      fc.constantFrom(',', ';', '§'),
      fc.array(fc.nat(40)),
      (text, delimiter, cuts) => {
        const bytes = Buffer.from(text).toString('latin1');
        const places = [0, ...cuts.filter((at) => at < bytes.length).sort((a, b) => a - b)];
        const rows = rowsOf(
          places.map((at, i) => bytes.slice(at, places[i + 1])),
          delimiter,
        );
        const expected = parsed(text, delimiter);
        const isBad = rows.some((row) => 'wrong' in row);
        expect(isBad).toBe(expected === undefined);
        if (expected) expect(rows.map((row) => 'fields' in row && row.fields)).toEqual(expected);
        let line = 1;
        for (const row of rows) {
          expect(row.number).toBe(line);
          line += 'text' in row ? row.text.split(LINE_END).length : (row.lines ?? 1);
        }
      },
    ),
    { numRuns: 2_000 },
  );
});
