import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import { openInput } from '../../packages/cli/dist/input/input.js';
import { cli, startCli } from '../support/cli.js';
import { type CommandLine, jsonLines, test } from '../support/command-line.js';
import { freshName } from '../support/given.js';
import { keysOf } from '../support/leaks.js';
import { expectRefused } from '../support/refused-input.js';
import { until } from '../support/until.js';

// Ids of requests are used by nobody else, whatever server this is.
const unique = freshName('request');

const zstd = (text: string) => spawnSync('zstd', ['-qc'], { input: text }).stdout as Buffer | null;
const hasZstd = zstd('x') !== null;

/** Payloads as a dry run reads them. */
async function payloads({ run }: Pick<CommandLine, 'run'>, ...args: string[]): Promise<unknown[]> {
  const ended = await run('submit', '--dry-run', '--json', ...args);
  expect(ended.code, ended.stderr).toBe(0);
  return jsonLines<{ payload: unknown }>(ended.stdout).map(({ payload }) => payload);
}

describe('CSV', () => {
  test('rows are objects by the header, with quoted line ends and without a byte order mark', async ({
    commandLine,
  }) => {
    const text = '\ufeffname,note\r\nann,"two\r\nlines, ""q"""\r\n\r\nbob,\nzoë,x';
    const input = await commandLine.file('a.csv', text);
    const other = await commandLine.file('b.csv', '__proto__,id\n1,2\n');
    const args = ['--input', input, other, '--split', 'csv'];
    const found = await payloads(commandLine, ...args);
    expect(found.slice(0, 3)).toEqual([
      { name: 'ann', note: 'two\r\nlines, "q"' },
      { name: 'bob', note: '' },
      { name: 'zoë', note: 'x' },
    ]);
    expect(JSON.stringify(found[3])).toBe('{"__proto__":"1","id":"2"}');
    const tabs = await commandLine.file('a.tsv', 'a\tb\n1,5\t"x\ty"\n');
    const quoted = ['--split', 'csv', '--csv-delimiter', '\\t'];
    expect(await payloads(commandLine, '--input', tabs, ...quoted)).toEqual([
      { a: '1,5', b: 'x\ty' },
    ]);
  });
});

test('a named pipe is read like a file', async ({ commandLine }) => {
  const pipe = join(commandLine.folder, 'pipe');
  expect(spawnSync('mkfifo', [pipe]).status).toBe(0);
  // Without a Redis it loads what starts one, after it has looked at the pipe.
  const args = ['run', '--input', pipe, '--exec', 'cat', '--out', '-'];
  const [ended] = await Promise.all([cli(args), writeFile(pipe, 'a\nb\n')]);
  expect(ended.code, ended.stderr).toBe(0);
  expect(jsonLines(ended.stdout)).toMatchObject([{ value: 'a' }, { value: 'b' }]);
});

const BROKEN: readonly [string, string, string | Buffer, string][] = [
  ['a row with a field too few', 'csv', 'a,b\n1,2\n3\n', 'line 3 has 1 field, the header 2 fields'],
  [
    'a header with a name twice',
    'csv',
    'a,a\n1,2\n',
    'line 1: the header has "a" twice; rename one of them, or name all columns by --csv-header',
  ],
  [
    'a quote that is not closed',
    'csv',
    'a\n"x\r\ny"\n"z\n1\n',
    'line 4 begins a row that is not valid CSV: a quote is not closed',
  ],
  [
    'text behind a quote',
    'csv',
    'a,b\n1,"x"y\n',
    'line 2 begins a row that is not valid CSV: a closing quote',
  ],
  [
    'a quote within a field',
    'csv',
    'a,b\n1,5" x\n',
    'line 2 begins a row that is not valid CSV: there is a quote within',
  ],
  [
    'a row of 2 MiB',
    'csv',
    `a\n"${'x'.repeat(2_097_152)}"\n`,
    'line 2 begins a row of more than 1048576 bytes: --max-payload-bytes allows more; or is',
  ],
  ['CSV that is not UTF-8', 'csv', Buffer.from('a\nx\ng\xfc\n', 'latin1'), 'line 3 is not UTF-8'],
  [
    'a line that is not UTF-8',
    'lines',
    Buffer.from('a\n\xff\xfe\n', 'latin1'),
    'line 2 is not UTF-8 text: if it is Windows-1252',
  ],
  [
    'a letter that is cut off',
    'lines',
    Buffer.from('a\nb\xc3', 'latin1'),
    'line 2 is not UTF-8 text: if it is Windows-1252',
  ],
  [
    'UTF-16 that is cut off',
    'lines',
    Buffer.from('\ufeffa\nb', 'utf16le').subarray(0, -1),
    'it begins as UTF-16, but is not UTF-16 text: --binary',
  ],
  [
    'UTF-16 with half a character',
    'csv',
    Buffer.from('\ufeffa\n\ud83d\n', 'utf16le'),
    'it begins as UTF-16, but is not',
  ],
  ['UTF-32', 'lines', Buffer.from([0xff, 0xfe, 0, 0, 97, 0, 0, 0]), 'this is UTF-32: iconv'],
  ['a line that is not JSON', 'ndjson', '1\n\n{\n', 'line 3 is not JSON'],
  ['a line of 2 MiB', 'lines', `a\n${'x'.repeat(2_097_152)}`, 'line 2 has more than 1048576 bytes'],
  ['gzip that is cut off', 'lines', gzipSync('1\n2\n3\n').subarray(0, -4), 'broken gzip data'],
  [
    'something behind gzip',
    'lines',
    Buffer.concat([gzipSync('1\n'), Buffer.from('2\n')]),
    'broken gzip data',
  ],
  [
    'a line without end in gzip',
    'lines',
    gzipSync(Buffer.alloc(64_000_000)),
    'line 1 has more than',
  ],
  ...(hasZstd
    ? [
        [
          'zstd that is cut off',
          'lines',
          zstd('1\n2\n3\n')!.subarray(0, -4),
          'broken zstd data (premature end)',
        ] as [string, string, Buffer, string],
      ]
    : []),
];

describe('an input that is broken', () => {
  test.for(BROKEN)(
    '%s is refused with file and line',
    async ([, split, content, why], { commandLine: { file } }) => {
      const input = await file('input', content);
      const reading = async () => {
        using items = await openInput({ input: [input], split, binary: false });
        for await (const _ of items);
      };
      await expectRefused(reading(), input, why);
    },
  );

  test('from its beginning leaves nothing, and further on a request that was cancelled', async ({
    commandLine: { run, file, connection, queue },
  }) => {
    const first = await file('first.csv', 'a,a\n1,2\n');
    const refused = await run('submit', '--input', first, '--split', 'csv', '--json');
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stderr).error).toEqual({
      code: 'PAYLOAD',
      message: `${first}: line 1: the header has "a" twice; rename one of them, or name all columns by --csv-header`,
    });
    expect(await keysOf(connection.client, queue)).toEqual([]);
    const later = await file('later.txt', `a\n${'"'.repeat(1_048_000)}`);
    const ended = await run('submit', '--input', later);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toBe(
      `piecework: ${later}: line 2: payload has 2096002 bytes; allowed: 1048576 (--max-payload-bytes allows more)\n`,
    );
    const listed = await run('list', '--state', 'all', '--json');
    expect(jsonLines(listed.stdout)).toMatchObject([{ outcome: 'cancelled' }]);
  });

  test('far from its beginning ends a run, which keeps the results before it', async ({
    commandLine: { run, file },
  }) => {
    const good = await file('good.txt', 'a\nb\n');
    const bad = await file('bad.txt', Buffer.from('c\n\xff\n', 'latin1'));
    const ended = await run('run', '--input', good, bad, '--exec', 'cat', '--out', '-');
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain(`piecework: ${bad}: line 2 is not UTF-8 text`);
    for (const { value } of jsonLines<{ status: string; value: string }>(ended.stdout).filter(
      ({ status }) => status === 'succeeded',
    ))
      expect(['a', 'b', 'c']).toContain(value);
    const large = await file('large.txt', `a\n${'"'.repeat(1_048_000)}`);
    const second = await run('run', '--input', large, '--exec', 'cat');
    expect(second.stderr).toContain(`piecework: ${large}: line 2: payload has 2096002 bytes`);
  });
});

describe('compressed input', () => {
  test('is recognised by its bytes, from a file and from standard input, in several parts', async ({
    commandLine: { redis, queue, file },
  }) => {
    const twice = Buffer.concat([gzipSync('1\n2\n'), gzipSync('3\n')]);
    const one = await file('one', twice);
    const two = await file('two', (hasZstd && zstd('4\n5')) || '4\n5');
    const args = ['submit', '--dry-run', '--json', '--queue', queue];
    const { child, finished } = startCli([...args, '--input', one, two, '-'], {
      redis,
      input: null,
    });
    child.stdin?.end(gzipSync('6\n'));
    const { stdout } = await finished;
    expect(jsonLines(stdout).map(({ payload }) => payload)).toEqual(['1', '2', '3', '4', '5', '6']);
  });
});

describe('several inputs', () => {
  test('are read one after the other; a pattern is all files that match, in order', async ({
    commandLine,
  }) => {
    const { folder, file } = commandLine;
    const b = await file('b.log', '3\n4');
    const a = await file('a.log', '1\n2\n');
    await file('c.txt', 'no\n');
    const odd = await file('[d].log', '5\n');
    const args = ['--input', `${folder}/?.log`, '--input', odd];
    expect(await payloads(commandLine, ...args)).toEqual(['1', '2', '3', '4', '5']);
    expect(await payloads(commandLine, '--input', `${folder}/?.log`, '--split', 'files')).toEqual([
      a,
      b,
    ]);
  });

  test('are split by a delimiter, or into batches that continue across files', async ({
    commandLine,
  }) => {
    const { file, redis, queue } = commandLine;
    const names = await file('names', 'a b\0c\nd\0\0e');
    expect(await payloads(commandLine, '--input', names, '--split', 'delimiter:\\0')).toEqual([
      ...['a b', 'c\nd', '', 'e'],
    ]);
    const text = await file('text', 'a::b:c::\n');
    expect(await payloads(commandLine, '--input', text, '--split', 'delimiter:::')).toEqual([
      ...['a', 'b:c', '\n'],
    ]);
    const one = await file('one', '1\n2\n3\n');
    const two = await file('two', '1\n2\n3\n');
    const batches = await payloads(commandLine, '--input', one, two, '--batch', '4');
    expect(batches).toEqual([
      ['1', '2', '3', '1'],
      ['2', '3'],
    ]);
    const lines = ['run', '--input', one, two, '--batch', '4', '--exec', 'wc -l', '--queue', queue];
    const ended = await cli([...lines, '--out', '-', '--format', 'text'], { redis });
    expect(ended.stdout.split('\n').map(Number)).toEqual([4, 2, 0]);
  });
});

describe('gzip data in several members', () => {
  const numbers = Array.from({ length: 50_000 }, (_, i) => `${i}\n`).join('');
  const [many, last] = [gzipSync(numbers), gzipSync('last\n')];

  test.for<[string, number]>([
    ['with nothing between them', 0],
    ['with one zero between them', 1],
    ['with padding of more than a chunk', 200_000],
  ])('%s is read to its end', async ([, zeros], { commandLine: { file } }) => {
    const padding = Buffer.alloc(zeros);
    const input = await file('a.gz', Buffer.concat([many, padding, last, padding]));
    using items = await openInput({ input: [input], binary: false });
    const found: unknown[] = [];
    for await (const item of items) found.push(item);
    expect(found).toHaveLength(50_001);
    expect(found.slice(-2)).toEqual(['49999', 'last']);
  });

  test('is refused when other bytes follow it, or when it is cut off', async ({
    commandLine: { file },
  }) => {
    const broken = [
      Buffer.concat([last, Buffer.from('junk')]),
      Buffer.concat([last, Buffer.alloc(9), Buffer.from('junk')]),
      Buffer.concat([last, Buffer.alloc(9), last.subarray(0, -3)]),
    ];
    for (const bytes of broken) {
      const input = await file('b.gz', bytes);
      const readAll = async () => {
        using items = await openInput({ input: [input], binary: false });
        for await (const item of items) expect(item).toBe('last');
      };
      await expect(readAll()).rejects.toThrow(/b\.gz: broken gzip data/);
    }
  });
});

test('bytes reach a program and come back unchanged with --binary', async ({
  commandLine: { run, file, folder },
}) => {
  const bytes = Buffer.from('ok\n\xff\xfe\r\n\xef\xbb\xbf\0x\n', 'latin1');
  const input = await file('bytes', bytes);
  const out = `${folder}/out`;
  const ended = await run(
    ...['run', '--input', input, '--binary', '--exec', 'cat', '--out', out, '--format', 'text'],
  );
  expect(ended.code, ended.stderr).toBe(0);
  expect(await readFile(out, 'latin1')).toBe(bytes.toString('latin1'));
  const json = await run('run', '--input', input, '--binary', '--exec', 'cat', '--out', '-');
  expect(jsonLines(json.stdout)[1]).toMatchObject({ value: { $binary: '//4N' } });
});

test('a slow input is submitted as it comes, and an input that stays open does not delay the end', async ({
  commandLine: { redis, queue, run },
}) => {
  const id = `${unique}-slow`;
  const args = ['submit', '--input', '-', '--id', id, '--queue', queue];
  const { child, finished } = startCli(args, { redis, input: null });
  child.stdin?.write('one\n');
  const total = async () => {
    const { stdout, code } = await run('status', id, '--json');
    return code === 0 && JSON.parse(stdout).counts.total;
  };
  await until(async () => (await total()) === 1, { what: 'the first is in', timeoutMs: 45_000 });
  child.stdin?.write('two\n');
  await until(async () => (await total()) === 2, { what: 'the second is in', timeoutMs: 45_000 });
  child.kill('SIGTERM');
  expect((await finished).code).toBe(1);
});

describe('a dry run', () => {
  test('shows the first commands as one would type them, and writes nothing', async ({
    commandLine: { run, file, connection, queue, folder },
  }) => {
    const input = await file('items', `a b\nit's\n$(x)\n${'more\n'.repeat(10)}`);
    const begin = ['run', '--input', input, '--dry-run', '--out', `${folder}/out`];
    const args = await run(...begin, '--exec', 'wc {} "<{}>" > {index}.txt');
    expect(args.code, args.stderr).toBe(0);
    const lines = args.stdout.trimEnd().split('\n');
    expect(lines.slice(0, 3)).toEqual([
      `wc 'a b' "<a b>" > 0.txt`,
      `wc 'it'\\''s' "<it's>" > 1.txt`,
      `wc '$(x)' "<\\$(x)>" > 2.txt`,
    ]);
    expect(lines).toHaveLength(10);
    expect(args.stderr).toContain('the input continues');
    const stdin = await run(...begin, '--exec', 'read -r a; wc -c "$a"');
    expect(stdin.stdout).toMatch(/^printf %s 'a b' \| sh -c 'read -r a; wc -c "\$a"'\n/);
    // What it shows does the same.
    const shown = spawnSync('sh', [
      '-c',
      'cd "$1"; printf x > "a b"; eval "$2"',
      'sh',
      folder,
      lines[0]?.replace('"<a b>" ', '') ?? '',
    ]);
    expect(shown.stderr.toString()).toBe('');
    expect(await keysOf(connection.client, queue)).toEqual([]);
    expect(existsSync(`${folder}/out`)).toBe(false);
  });
});

describe('the format of results', () => {
  test('text is only the values, CSV has a header and quotes', async ({
    commandLine: { run, file },
  }) => {
    const input = await file('items', 'plain\nx\ntwo words\n');
    const id = `${unique}-formats`;
    const command = `case {} in x) echo 'no, "thanks"' >&2; exit 3;; esac; printf '%s\\n"%s"\\n' {index} {}`;
    const text = await run(
      ...['run', '--input', input, '--exec', command, '--out', '-', '--format', 'text', '--id', id],
    );
    expect(text.stdout).toBe('0\n"plain"\n2\n"two words"\n');
    const csv = await run('results', id, '--format', 'csv', '--failed');
    expect(csv.stdout).toBe(
      [
        'index,status,value,error',
        '0,succeeded,"0\n""plain""",',
        '1,failed,,"ExitError: exit code 3: no, ""thanks"""',
        '2,succeeded,"2\n""two words""",\n',
      ].join('\n'),
    );
  });
});

describe('what is larger than 1 MiB', () => {
  const LONG = 1_500_000;

  test('is accepted with --max-payload-bytes and --max-result-bytes, which the errors name', async ({
    commandLine: { run, file, folder },
  }) => {
    const text = 'x'.repeat(LONG);
    const inputs: [string, string][] = [
      ['lines', `${text}\n`],
      ['ndjson', `"${text}"\n`],
      ['csv', `a\n${text}\n`],
    ];
    const more = ['--max-payload-bytes', '2000000'];
    for (const [split, content] of inputs) {
      const input = await file(split, content);
      const dry = ['submit', '--dry-run', '--json', '--input', input, '--split', split];
      const refused = await run(...dry);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain('--max-payload-bytes');
      const read = await run(...dry, ...more);
      expect(read.code, read.stderr).toBe(0);
      expect(read.stdout.length).toBeGreaterThan(LONG);
    }
    const args = ['--input', `${folder}/lines`, ...more, '--out', '-', '--exec'];
    const [cut] = jsonLines<{ error: { message: string } }>(
      (await run('run', ...args, 'cat')).stdout,
    );
    expect(cut?.error.message).toMatch(
      /^more than 1048576 bytes of output: raise --max-result-bytes/,
    );
    const kept = await run('run', ...args, 'cat', '--max-result-bytes', '2000000');
    expect(kept.code, kept.stderr).toBe(0);
    expect(jsonLines(kept.stdout)[0]?.value).toBe(text);
    const program = `node -e 'require("readline").createInterface({input:process.stdin}).on("line",(l)=>console.log(JSON.stringify({value:JSON.parse(l).payload+"x".repeat(800000)})))'`;
    const live = [program, '--persistent', '--max-result-bytes', '2400000'];
    const answered = await run('run', ...args, ...live);
    expect(answered.code, answered.stderr).toBe(0);
    expect(jsonLines<{ value: string }>(answered.stdout)[0]?.value).toHaveLength(2_300_000);
  });
});
