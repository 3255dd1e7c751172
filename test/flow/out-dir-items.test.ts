import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { itemFormatOf } from '../../packages/cli/dist/folder/encoding.js';
import { ItemFiles } from '../../packages/cli/dist/folder/item-files.js';
import { openInput } from '../../packages/cli/dist/input/input.js';
import { jsonTextOf } from '../../packages/cli/dist/json/json-parts.js';

/*
 * Items that `--out-dir` writes are read again as the same items, with the same flags.
 */

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'piecework-items-'));
});
afterEach(() => rm(folder, { recursive: true }));

type Values = Parameters<typeof itemFormatOf>[1] & { readonly split: string };

/** Writes items, and reads them again. @returns the JSON of each, before and after */
async function roundTrip(
  values: Values,
  items: readonly unknown[],
  read = ',',
): Promise<string[][]> {
  const files = new ItemFiles(
    folder,
    'failed',
    itemFormatOf(values.split, values, read),
    values.binary,
  );
  const texts = items.map((item) => jsonTextOf(item));
  for (const text of texts) if (text) await files.add(text);
  await files.close();
  const listed = await files.publish();
  const found: string[] = [];
  // Files that are split in other ways are read by another command.
  for (const split of new Set(listed.map((file) => file.split))) {
    const paths = listed.filter((file) => file.split === split);
    const input = paths.map(({ name }) => join(folder, name));
    using again = await openInput({ ...values, split: split as string, input });
    for await (const item of again) found.push(jsonTextOf(item)?.text ?? '');
  }
  expect(listed.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThan(0);
  return [texts.map((text) => text?.text ?? ''), found];
}

const LINES = { split: 'lines', binary: false };
/** Texts that mean something to some reader. */
const odd = fc.constantFrom(
  ...[
    '',
    'a',
    '"',
    'a"b',
    ',',
    ';',
    '\t',
    '|',
    "'",
    '\r',
    'a\r',
    '\ufeff',
    '\ufeffa',
    'sep=;',
    'sep=,',
  ],
  ...[
    '%PDF-1.4',
    'BZh91AY&SY',
    'PK\u0003\u0004',
    '\u0000',
    'é',
    '𝒳',
    '#',
    '[',
    '{}',
    'index',
    '__proto__',
    '1',
  ],
  'x'.repeat(600),
);
const words = fc.oneof(odd, fc.string({ unit: 'grapheme', maxLength: 8 }));
const lines = words.filter((text) => !text.includes('\n'));
const some = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: 1, maxLength: 6 });
const check = <T>(given: fc.Arbitrary<T>, holds: (given: T) => Promise<void>) =>
  fc.assert(fc.asyncProperty(given, holds), { numRuns: 60 });
const same = async (values: Values, items: readonly unknown[], read?: string) => {
  const [before, after] = await roundTrip(values, items, read);
  expect(after).toEqual(before);
};

test('lines, texts between delimiters, and names of files', async () => {
  await check(some(lines), (items) => same(LINES, items));
  const between = some(words.filter((text) => !text.includes('\0')));
  await check(between, (items) => same({ ...LINES, split: 'delimiter:\\0' }, items));
  await check(some(words.filter((text) => !text.includes('|'))), (items) =>
    same({ ...LINES, split: 'delimiter:||' }, items),
  );
  await check(some(words.filter((text) => text !== '' && !text.includes('\0'))), async (items) => {
    const [before, after] = await roundTrip({ ...LINES, split: 'files' }, items);
    expect(after?.sort()).toEqual(before?.sort());
  });
});

test('lines of bytes, except where the first looks like a compressed file', async () => {
  const bytes = fc
    .uint8Array({ maxLength: 12 })
    .filter((all) => !all.includes(0x0a) && all[0] !== 0x1f);
  await check(some(bytes), (items) =>
    same(
      { ...LINES, binary: true },
      items.map((all) => ({ $binary: Buffer.from(all).toString('base64') })),
    ),
  );
  const files = new ItemFiles(
    folder,
    'pending',
    itemFormatOf('lines', { binary: true }, undefined),
    true,
  );
  await files.add(
    jsonTextOf({ $binary: Buffer.from([0x1f, 0x8b, 8]).toString('base64') }) as never,
  );
  await files.close();
  expect(await files.publish()).toEqual([
    {
      ...{ name: 'pending.bin', count: 1, split: 'lines' },
      unreadable: 'its first item begins as a compressed file or another format does',
    },
  ]);
});

test('JSON values, also one that is an array, and below a path', async () => {
  const values = some(fc.oneof(fc.jsonValue(), fc.array(fc.jsonValue(), { maxLength: 2 })));
  await check(values, (items) => same({ ...LINES, split: 'ndjson' }, items));
  await check(values, (items) => same({ ...LINES, split: 'json' }, items));
  await check(values, (items) => same({ ...LINES, split: 'json', jsonPath: 'a."b' }, items));
});

test('rows, with and without header, of several columns or one', async () => {
  const names = fc.uniqueArray(
    lines.filter((text) => text !== '' && !/[\r,]/.test(text)),
    {
      ...{ minLength: 1, maxLength: 3 },
    },
  );
  const table = (field: fc.Arbitrary<string>) =>
    names.chain((columns) =>
      some(fc.tuple(...columns.map(() => field))).map((rows) => ({ columns, rows })),
    );
  const objects = ({ columns, rows }: { columns: string[]; rows: string[][] }) =>
    rows.map((row) => Object.fromEntries(row.map((field, i) => [columns[i], field])));
  for (const read of [',', ';', '|'])
    await check(table(words), (all) => same({ ...LINES, split: 'csv' }, objects(all), read));
  await check(table(words), ({ columns, rows }) =>
    same(
      { ...LINES, split: 'csv', csvHeader: columns.join(','), csvDelimiter: '\\t' },
      objects({ columns, rows }),
    ),
  );
  await check(table(words), ({ rows }) =>
    same({ ...LINES, split: 'csv', csvHeader: 'none' }, rows, ';'),
  );
  // Rows of two files with other names.
  await check(fc.tuple(table(words), table(words)), ([one, other]) =>
    same({ ...LINES, split: 'csv' }, [...objects(one), ...objects(other)]),
  );
  const fields = lines.filter((text) => !text.includes('\t'));
  const headed = table(fields).filter(({ columns }) => !/[\t;|]/.test(columns.join('')));
  await check(headed, ({ columns, rows }) =>
    same({ ...LINES, split: 'tsv' }, objects({ columns, rows }), '\t'),
  );
  // The reader takes a CR in a first row for the end of a row.
  const headless = table(fields).filter(({ rows }) => !rows[0]?.join('').includes('\r'));
  await check(headless, ({ columns, rows }) =>
    same({ ...LINES, split: 'tsv', csvHeader: columns.join(',') }, objects({ columns, rows })),
  );
  // Whoever reads the first bytes sees one line end, and who writes them two.
  const rows = [
    { a: ' ', b: '\0' },
    { a: 'x'.repeat(600), b: 'y' },
  ];
  await same({ ...LINES, split: 'tsv', csvHeader: 'a,b' }, rows);
});

test.for<[string, unknown]>([
  ['none', ['a,b']],
  ['none', ['a\r', 'b']],
  ['a,b', { a: '1', b: '\r2' }],
])('rows of TSV whose first is refused are noted: %s %j', async ([csvHeader, item]) => {
  const values = { ...LINES, split: 'tsv', csvHeader };
  const files = new ItemFiles(folder, 'failed', itemFormatOf('tsv', values, '\t'), false);
  await files.add(jsonTextOf(item) as never);
  await files.close();
  const [listed] = await files.publish();
  expect(listed?.unreadable).toBe('its first row looks like one that is separated in another way');
  const input = [join(folder, 'failed.tsv')];
  await expect(openInput({ ...values, input })).rejects.toThrow(/line 1 (contains a CR|is one)/);
});

test('batches', async () => {
  const batches = some(lines).map((all) =>
    Array.from({ length: Math.ceil(all.length / 2) }, (_, i) => all.slice(2 * i, 2 * i + 2)),
  );
  await check(batches, (items) => same({ ...LINES, split: 'chunk:2' }, items));
  await check(batches, (items) => same({ ...LINES, split: 'ndjson', batch: 2 }, items));
});
