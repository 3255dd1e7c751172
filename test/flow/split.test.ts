import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { split } from '@piecework/producer';
import { InvalidOptionError, PayloadError, SourceError } from '@piecework/protocol';
import { afterEach, beforeEach, describe, expect } from 'vitest';
import { gate, test } from '../support/flow.js';
import { until } from '../support/until.js';

const input = (...pieces: string[]) => Readable.from(pieces.map((piece) => Buffer.from(piece)));

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** A stream that ends in an error after its pieces. */
function broken(...pieces: string[]): Readable {
  return Readable.from(
    (async function* () {
      yield* pieces;
      throw new Error('disk on fire');
    })(),
  );
}

describe('lines', () => {
  test.for<[string, string[], string[]]>([
    ['an empty input has none', [], []],
    ['a line end at the end adds none', ['a\nb\n'], ['a', 'b']],
    ['the last one needs no line end', ['a\nb'], ['a', 'b']],
    ['empty ones count', ['a\n\n\nb\n'], ['a', '', '', 'b']],
    ['one line end alone is an empty line', ['\n'], ['']],
    ['end in CRLF as well, without it in the item', ['a\r\nb\r\n'], ['a', 'b']],
    ['are put together from pieces', ['a', 'b\nc', '\r', '\nd'], ['ab', 'c', 'd']],
  ])('%s', async ([, pieces, wanted]) => {
    expect(await all(split.lines(input(...pieces)))).toEqual(wanted);
  });

  test('keep letters whole that a piece cuts in two', async () => {
    const bytes = Buffer.from('grüße\n日本\n');
    const pieces = [...bytes].map((byte) => Buffer.from([byte]));
    expect(await all(split.lines(Readable.from(pieces)))).toEqual(['grüße', '日本']);
  });

  test('fail when the input fails', async () => {
    await expect(all(split.lines(broken('a\n', 'b\n')))).rejects.toThrow('disk on fire');
  });

  test('let go of an input that is not read to its end', async () => {
    const endless = Readable.from(
      (function* () {
        for (;;) yield 'line\n';
      })(),
    );
    for await (const line of split.lines(endless)) {
      expect(line).toBe('line');
      break;
    }
    await new Promise(setImmediate);
    expect(endless.destroyed).toBe(true);
  });
});

describe('ndjson', () => {
  test('reads a value from every line and skips empty ones', async () => {
    const text = '{"a":1}\r\n\n  \n[2]\n"three"\n4\nnull';
    expect(await all(split.ndjson(input(text)))).toEqual([{ a: 1 }, [2], 'three', 4, null]);
  });

  test('names the line that is not JSON', async () => {
    const reading = all(split.ndjson(input('{"a":1}\n\n{"b":\n')));
    await expect(reading).rejects.toBeInstanceOf(PayloadError);
    await expect(all(split.ndjson(input('{"a":1}\n\n{"b":\n')))).rejects.toThrow('line 3');
  });

  test('does not mind the byte order mark that some editors put first', async () => {
    expect(await all(split.ndjson(input('\ufeff{"a":1}\n{"b":2}\n')))).toEqual([
      { a: 1 },
      { b: 2 },
    ]);
  });

  test('fails when the input fails', async () => {
    await expect(all(split.ndjson(broken('1\n')))).rejects.toThrow('disk on fire');
  });
});

describe('chunks', () => {
  test('are of so many lines, the last one may be shorter', async () => {
    const text = '1\n2\n3\n4\n5\n';
    expect(await all(split.chunks(input(text), 2))).toEqual([['1', '2'], ['3', '4'], ['5']]);
    expect(await all(split.chunks(input(text), 5))).toHaveLength(1);
    expect(await all(split.chunks(input(), 5))).toEqual([]);
  });

  test.for([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'of %s lines are refused',
    async (size) => {
      await expect(all(split.chunks(input('1\n2\n'), size))).rejects.toBeInstanceOf(
        InvalidOptionError,
      );
    },
  );
});

describe('files', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'piecework-split-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  test('are all below the folder, by absolute path; links to files are files', async () => {
    await mkdir(join(folder, 'b', 'deep'), { recursive: true });
    await mkdir(join(folder, 'empty'));
    await mkdir(join(folder, '.git'));
    for (const name of ['a.txt', '.hidden', '.git/x', 'b/one', 'b/deep/two', 'ümlaut name'])
      await writeFile(join(folder, name), name);
    await symlink(join(folder, 'a.txt'), join(folder, 'link-to-file'));
    await symlink('link-to-file', join(folder, 'link-to-link'));
    await symlink(folder, join(folder, 'b', 'link-to-folder'));
    await symlink('nothing', join(folder, 'b', 'link-to-nothing'));
    await symlink('/dev/null', join(folder, 'b', 'link-to-null'));
    const skipped: [string, string][] = [];
    const found = await all(
      split.files(folder, { onSkipped: (path, why) => skipped.push([path, why]) }),
    );
    const wanted = ['a.txt', 'b/deep/two', 'b/one', 'link-to-file', 'link-to-link', 'ümlaut name'];
    expect(found).toEqual(wanted.map((name) => join(folder, name)));
    expect(skipped).toEqual([
      [join(folder, '.git'), 'hidden'],
      [join(folder, '.hidden'), 'hidden'],
      [join(folder, 'b/link-to-folder'), 'link to a folder'],
      [join(folder, 'b/link-to-nothing'), 'broken link'],
      [join(folder, 'b/link-to-null'), 'no file'],
    ]);
  });

  test('whose names are not UTF-8 are refused, with the name as bash reads it', async () => {
    const name = (bytes: string) => Buffer.from(bytes, 'latin1');
    await writeFile(join(folder, 'a'), '');
    await writeFile(Buffer.concat([Buffer.from(`${folder}/`), name("g\xfc'\\.txt")]), '');
    const found: string[] = [];
    const reading = async () => {
      for await (const path of split.files(folder)) found.push(path);
    };
    await expect(reading()).rejects.toThrow(
      `a name in ${folder} is not UTF-8, so no payload can contain it: rename $'g\\xfc\\x27\\x5c.txt'`,
    );
    await expect(reading()).rejects.toBeInstanceOf(PayloadError);
    expect(found).toEqual([join(folder, 'a'), join(folder, 'a')]);
  });

  test('an empty folder has none; one that is not there is an error', async () => {
    expect(await all(split.files(folder))).toEqual([]);
    await expect(all(split.files(join(folder, 'nowhere')))).rejects.toMatchObject({
      code: 'ENOENT',
    });
  });
});

test('an input that fails half-way has the request cancelled', async ({ flow }) => {
  const rest = gate();
  const source = Readable.from(
    (async function* () {
      yield 'a\nb\n';
      await rest.opened;
      throw new Error('disk on fire');
    })(),
  );
  const submitting = flow.producer().submit(split.lines(source), { id: flow.id('broken') });
  await until(async () => (await flow.request(flow.id('broken')).state())?.status === 'open');
  rest.open();
  const error = await submitting.catch((thrown) => thrown);
  expect(error).toBeInstanceOf(SourceError);
  expect(error.cause.message).toBe('disk on fire');
  expect(await flow.complete(flow.id('broken'))).toMatchObject({ outcome: 'cancelled' });
});

test('a bad line half-way names itself, and the request is cancelled', async ({ flow }) => {
  const submitting = flow
    .producer()
    .submit(split.ndjson(input('1\n2\nthree\n')), { id: flow.id('bad') });
  await expect(submitting).rejects.toThrow('line 3 is not JSON');
  expect(await flow.complete(flow.id('bad'))).toMatchObject({ outcome: 'cancelled' });
});
