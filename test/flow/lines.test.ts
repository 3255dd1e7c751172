import { Readable } from 'node:stream';
import { split } from '@piecework/producer';
import { InvalidOptionError, PayloadError } from '@piecework/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { test as cliTest } from '../support/command-line.js';

const input = (...pieces: (string | Buffer)[]) =>
  Readable.from(pieces.map((piece) => Buffer.from(piece)));

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** Says how much of it was read. */
function endless(piece: Buffer): { input: Readable; bytes: () => number } {
  let bytes = 0;
  const pieces = function* () {
    for (;;) {
      bytes += piece.length;
      yield piece;
    }
  };
  return { input: Readable.from(pieces()), bytes: () => bytes };
}

const MAX = 1_048_576;

describe('a line that is too long', () => {
  test.for<[string, (from: Readable) => AsyncIterable<unknown>]>([
    ['lines', (from) => split.lines(from)],
    ['ndjson', (from) => split.ndjson(from)],
    ['chunks', (from) => split.chunks(from, 2)],
  ])('is refused by %s before the rest of it is read', async ([, of]) => {
    const { input: from, bytes } = endless(Buffer.alloc(65_536, 'x'));
    await expect(all(of(from))).rejects.toThrow('line 1 has more than 1048576 bytes');
    expect(bytes()).toBeLessThan(4 * MAX);
    expect(from.destroyed).toBe(true);
  });

  test('is named by its number', async () => {
    const reading = all(split.lines(input('a\nb', 'b\r\nccc', 'ccc\nd\n'), { maxLineBytes: 4 }));
    const error = await reading.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(PayloadError);
    expect((error as Error).message).toContain('line 3 has more than 4 bytes');
  });

  test('is one of more bytes, of which a letter may have several', async () => {
    const of = (...pieces: string[]) => all(split.lines(input(...pieces), { maxLineBytes: 4 }));
    expect(await of('abcd\r', '\nüü\r\n日a', '\n', 'abcd')).toEqual(['abcd', 'üü', '日a', 'abcd']);
    await expect(of('abcd\ré')).rejects.toThrow('line 1');
    await expect(of('a\n日', '本')).rejects.toThrow('line 2');
    await expect(of('abcde')).rejects.toThrow('line 1');
  });

  test('may be allowed, and is read in linear time', async () => {
    const long = 'x'.repeat(40_000_000);
    const pieces = Array.from({ length: 400 }, () => Buffer.alloc(100_000, 'x'));
    const options = { maxLineBytes: 100_000_000 };
    const [line] = await all(split.lines(input(...pieces), options));
    expect(line === long).toBe(true);
  });

  test.for([0, 1.5, '5', null, 300_000_000])('has no bound of %s', (maxLineBytes) => {
    const options = { maxLineBytes } as never;
    expect(() => split.lines(input('a'), options)).toThrow(InvalidOptionError);
  });

  cliTest('of a file ends the command at once, and names itself', async ({ commandLine }) => {
    const { run, file, queue } = commandLine;
    const path = await file('long.txt', `short\n${'x'.repeat(40_000_000)}`);
    for (const how of ['lines', 'ndjson']) {
      const path2 =
        how === 'lines' ? path : await file('long.ndjson', `1\n${'1'.repeat(3_000_000)}`);
      const { code, stderr } = await run(
        'submit',
        '--input',
        path2,
        '--split',
        how,
        '--id',
        `${queue}.${how}`,
      );
      expect(code).toBe(1);
      expect(stderr).toContain('line 2 has more than 1048576 bytes');
    }
  });
});

test('text that is not UTF-8 is refused by the number of its line, also a letter that is cut off', async () => {
  const of = (...pieces: Buffer[]) => all(split.lines(input(...pieces)));
  const [first, second] = [Buffer.from('a\nb'), Buffer.from('ü\n')];
  expect(await of(first, second.subarray(0, 1), second.subarray(1))).toEqual(['a', 'bü']);
  await expect(of(first, second.subarray(0, 1))).rejects.toThrow('line 2 is not UTF-8 text');
  await expect(of(second, Buffer.from([0xff, 10]))).rejects.toThrow('line 2 is not UTF-8 text');
});

test('a byte order mark at the start is no part of the first line', async () => {
  expect(await all(split.lines(input('\ufeffa\r\n\ufeffb\n')))).toEqual(['a', '\ufeffb']);
  const [first, second, third] = Buffer.from('\ufeff');
  const bytes = [first, second, third].map((byte) => Buffer.from([byte as number]));
  expect(await all(split.lines(input(...bytes, 'a\n')))).toEqual(['a']);
  expect(await all(split.lines(input('\ufeff')))).toEqual([]);
  expect(await all(split.chunks(input('\ufeffa\nb'), 2))).toEqual([['a', 'b']]);
  expect(await all(split.ndjson(input('\ufeff{"a":1}\n2')))).toEqual([{ a: 1 }, 2]);
});

test('lines are the same however the text is cut into chunks', async () => {
  const text = fc.string({ unit: fc.constantFrom('a', '\n', '\r', 'ü', '日', '\ufeff', '😀') });
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat(40)), async (whole, cuts) => {
      const bytes = Buffer.from(whole);
      const places = [0, ...cuts.filter((at) => at <= bytes.length).sort((a, b) => a - b)];
      const pieces = places.map((at, i) => bytes.subarray(at, places[i + 1]));
      const expected = whole.replace(/^\ufeff/, '').split(/\r?\n/);
      if (expected.at(-1) === '') expected.pop();
      expect(await all(split.lines(input(...pieces)))).toEqual(expected);
    }),
  );
});
