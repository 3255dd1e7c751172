import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { link, mkdir, readFile, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import { openInput } from '../../packages/cli/dist/input/input.js';
import { cli } from '../support/cli.js';
import { type CommandLine, jsonLines, test } from '../support/command-line.js';
import { keysOf } from '../support/leaks.js';

const PROGRAM = fileURLToPath(new URL('../../packages/cli/bin/piecework.js', import.meta.url));

async function itemsOf(input: string[], more: object = {}): Promise<unknown[]> {
  using items = await openInput({ input, binary: false, ...more });
  const found: unknown[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe('a file that becomes shorter while it is read', () => {
  test('is refused, as the rest is missing', async ({ commandLine: { file } }) => {
    const input = await file('in', 'a line\n'.repeat(100_000));
    using items = await openInput({ input: [input], binary: false });
    const seen: unknown[] = [];
    const readAll = async () => {
      for await (const item of items) {
        if (seen.push(item) === 1) await truncate(input, 300_002);
      }
    };
    await expect(readAll()).rejects.toThrow(
      'the file became shorter while it was read, from 700000 to 300002 bytes',
    );
    expect(new Set(seen)).toEqual(new Set(['a line']));
  });
});

describe('a folder', () => {
  test('of links to files is its items, by the paths of the links; a count says what was skipped', async ({
    commandLine: { run, file, folder },
  }) => {
    const data = await file('data', '1\n');
    const links = join(folder, 'links');
    await mkdir(join(links, 'deep'), { recursive: true });
    await mkdir(join(links, '.git'));
    for (const name of ['a', 'b', 'deep/c']) await symlink(data, join(links, name));
    for (const name of ['x', 'y']) await symlink('nowhere', join(links, name));
    await symlink('..', join(links, 'up'));
    const ended = await run('submit', '--dry-run', '--input', links);
    expect(jsonLines(ended.stdout).map(({ payload }) => payload)).toEqual(
      ['a', 'b', 'deep/c'].map((name) => join(links, name)),
    );
    expect(ended.stderr).toContain(
      `skipped in ${links}: 1 hidden file or folder, 1 link to a folder, 2 broken links\n`,
    );
    const json = await run('submit', '--dry-run', '--json', '--input', links);
    expect(json.stderr).toBe('');
  });
});

describe('a pattern', () => {
  /** Payloads of `--split files`, without the folder, and what is said besides. */
  async function filesOf({ run, folder }: CommandLine, ...inputs: string[]) {
    const paths = inputs.map((input) => join(folder, input));
    const ended = await run('submit', '--dry-run', '--split', 'files', '--input', ...paths);
    expect(ended.code, ended.stderr).toBe(0);
    const files = jsonLines<{ payload: string }>(ended.stdout).map(({ payload }) => payload);
    const said = ended.stderr.split('\n').filter((line) => line.startsWith('skipped'));
    const short = (text: string) => text.replaceAll(`${folder}/`, '');
    return { files: files.map(short), said: said.map(short) };
  }

  test('is the files that match; a count says what else matches, but for folders with such files', async ({
    commandLine,
  }) => {
    const { file, folder } = commandLine;
    for (const name of ['a/sub', 'a/empty', 'b'])
      await mkdir(join(folder, name), { recursive: true });
    for (const name of ['a/x', 'a/sub/y', 'b/z']) await file(name, '1\n');
    await symlink('x', join(folder, 'a/link'));
    await symlink('nowhere', join(folder, 'a/broken'));
    await symlink('../b', join(folder, 'a/to-b'));
    spawnSync('mkfifo', [join(folder, 'a/pipe')]);
    expect(await filesOf(commandLine, 'a/*')).toEqual({
      files: ['a/link', 'a/x'],
      said: [
        'skipped in a/*: 2 folders, 1 link to a folder, 1 broken link, 1 pipe, socket or device',
      ],
    });
    expect(await filesOf(commandLine, 'a/**')).toEqual({
      files: ['a/link', 'a/sub/y', 'a/to-b/z', 'a/x'],
      said: ['skipped in a/**: 1 folder, 1 broken link, 1 pipe, socket or device'],
    });
    const json = ['submit', '--dry-run', '--json', '--input', join(folder, 'a/*')];
    expect((await commandLine.run(...json)).stderr).toBe('');
    const none = await commandLine.run('submit', '--input', join(folder, 'a/b*'));
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('a/b*: 1 broken link\n')]);
  });

  test('and other inputs have each path once, and a count says how many are named again', async ({
    commandLine,
  }) => {
    const { file, folder } = commandLine;
    await mkdir(join(folder, 'a/sub/deep'), { recursive: true });
    for (const name of ['a/x', 'a/y', 'a/sub/z', 'a/sub/deep/z']) await file(name, '1\n');
    expect(await filesOf(commandLine, 'a/*', './a/../a/x', 'a/[xy]')).toEqual({
      files: ['a/x', 'a/y'],
      said: [
        'skipped in a/*: 1 folder',
        'skipped in a/x: 1 file that another --input names',
        'skipped in a/[xy]: 2 files that another --input names',
      ],
    });
    expect(await filesOf(commandLine, 'a', 'a/x', 'a/sub', 'a/sub/deep')).toEqual({
      files: ['a/y', 'a/x', 'a/sub/z', 'a/sub/deep/z'],
      said: [
        'skipped in a: 3 files that another --input names',
        'skipped in a/sub: 1 file that another --input names',
      ],
    });
  });
});

/** A path below the folder, from bytes. */
const bytesPath = (folder: string, name: string) =>
  Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name, 'latin1')]);

describe('a name that is not UTF-8', () => {
  test('in a folder is refused, and named as bash reads it', async ({
    commandLine: { run, folder, connection, queue },
  }) => {
    await writeFile(bytesPath(folder, 'gr\xfc\xdfe.txt'), 'x\n');
    const ended = await run('submit', '--input', folder);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toBe(
      `piecework: ${folder}: a name in ${folder} is not UTF-8, so no payload can contain it: rename $'gr\\xfc\\xdfe.txt'\n`,
    );
    expect(await keysOf(connection.client, queue)).toEqual([]);
  });

  test('as an argument, by a pattern, or above the current folder is refused', async ({
    commandLine: { folder, queue, redis },
  }) => {
    const odd = bytesPath(folder, 'h\xfc');
    await mkdir(odd);
    await writeFile(Buffer.concat([odd, Buffer.from('/x')]), 'x\n');
    await writeFile(bytesPath(folder, 'g\xfc'), 'x\n');
    const submit = (script: string) =>
      spawnSync(
        'sh',
        ['-c', `cd "$1" && ${script}`, 'sh', folder, process.execPath, PROGRAM, queue],
        { encoding: 'utf8', env: { ...process.env, REDIS_URL: redis } },
      );
    const piecework = '"$2" "$3" submit --queue "$4" --dry-run --input';
    for (const script of [
      `${piecework} g*`,
      `${piecework} 'g*'`,
      `cd h* && ${piecework} .`,
      `cd h* && ${piecework} x --split files`,
    ]) {
      const ended = submit(script);
      expect(ended.status, `${script}: ${ended.stdout}`).toBe(2);
      expect(ended.stderr).toMatch(/^piecework: --input: .*allowed: paths in UTF-8: rename/);
    }
    expect(submit(`cd h* && ${piecework} x`).stdout).toBe('{"index":0,"payload":"x"}\n');
  });
});

describe('an input without items', () => {
  const EMPTY: readonly [string, string | Buffer, string, string][] = [
    ['an empty file', '', 'lines', ''],
    ['CSV that is only a header', 'a,b\r\n', 'csv', ' below its header'],
    ['empty lines of NDJSON', '\n\n', 'ndjson', ''],
    ['an empty array', '[]', 'json', ''],
    ['gzip of nothing', gzipSync(''), 'lines', ''],
  ];

  test.for(EMPTY)(
    '%s is said, and nothing is written, by run and submit',
    async ([, content, split, why], { commandLine: { run, file, folder, connection, queue } }) => {
      const input = await file('input', content);
      const out = `${folder}/out`;
      const args = ['--input', input, '--split', split];
      const submitted = await run('submit', ...args);
      expect(submitted.code).toBe(1);
      const message = `no items in ${input}${why}; --allow-empty accepts that`;
      expect(submitted.stderr).toBe(`piecework: ${message}\n`);
      const ended = await run('run', ...args, '--exec', 'cat', '--out', out, '--json');
      expect(ended.code).toBe(1);
      expect(ended.stdout).toBe('');
      expect(JSON.parse(ended.stderr)).toEqual({ error: { code: 'NO_ITEMS', message } });
      expect(existsSync(out)).toBe(false);
      expect(await keysOf(connection.client, queue)).toEqual([]);
    },
  );

  test('is also an empty folder, standard input, and a pattern; --allow-empty accepts each', async ({
    commandLine: { run, folder, redis, queue, connection },
  }) => {
    const empty = join(folder, 'empty');
    await mkdir(empty);
    await writeFile(join(empty, '.hidden'), 'x');
    const skipped = `skipped in ${empty}: 1 hidden file or folder\n`;
    const inFolder = await run('submit', '--input', empty);
    expect(inFolder.stderr).toBe(
      `${skipped}piecework: no items in ${empty}; --allow-empty accepts that\n`,
    );
    const stdin = ['submit', '--input', '-', '--queue', queue];
    const piped = await cli(stdin, { redis });
    expect([piped.code, piped.stderr]).toEqual([
      1,
      'piecework: no items in standard input; --allow-empty accepts that\n',
    ]);
    const pattern = await run('submit', '--input', `${empty}/*.csv`);
    expect(pattern.code).toBe(2);
    expect(pattern.stderr).toContain('--allow-empty');
    expect(await keysOf(connection.client, queue)).toEqual([]);
    for (const input of [empty, `${empty}/*.csv`]) {
      const args = ['--input', input, '--allow-empty', '--json'];
      const ended = await run('run', ...args, '--exec', 'cat');
      expect(ended.code, ended.stderr).toBe(0);
      expect(JSON.parse(ended.stdout)).toMatchObject({ status: 'succeeded', counts: { total: 0 } });
    }
    const allowed = await cli([...stdin, '--allow-empty', '--wait', '--json'], { redis });
    expect(JSON.parse(allowed.stdout)).toMatchObject({ status: 'succeeded' });
  });

  test('does not stand for one whose records were all left out', async ({
    commandLine: { run, file, folder },
  }) => {
    const input = await file('input', '{\n');
    const bad = ['--split', 'ndjson', '--bad-rows', `${folder}/bad`];
    const ended = await run('run', '--input', input, ...bad, '--exec', 'cat', '--json');
    expect(ended.code).toBe(1);
    expect(JSON.parse(ended.stdout)).toMatchObject({ counts: { total: 0 }, badRecords: 1 });
  });
});

describe('inputs and outputs', () => {
  const piped = (script: string, { folder, redis, queue }: CommandLine) =>
    spawnSync(
      'bash',
      ['-c', `cd "$1"; ${script}`, 'sh', folder, process.execPath, PROGRAM, queue],
      {
        encoding: 'utf8',
        env: { ...process.env, REDIS_URL: redis },
      },
    );
  const RUN = '"$2" "$3" run --queue "$4" --exec cat';

  test('may be the process substitution of a shell and a file that exists', async ({
    commandLine,
  }) => {
    const out = await commandLine.file('out', 'old\n');
    const ended = piped(`${RUN} --input <(echo 1; echo 2) --out out`, commandLine);
    expect(ended.status, ended.stderr).toBe(0);
    expect(jsonLines(await readFile(out, 'utf8')).map(({ value }) => value)).toEqual(['1', '2']);
  });

  test('may be one device', async ({ commandLine: { run, file } }) => {
    const input = await file('in', '1\n');
    const nowhere = ['--out', '/dev/null', '--joblog', '/dev/null'];
    const ended = await run('run', '--input', input, '--exec', 'cat', ...nowhere);
    expect(ended.code, ended.stderr).toBe(0);
  });

  test('are refused when two of them are one file, by whatever path or stream', async ({
    commandLine,
  }) => {
    const { file, folder } = commandLine;
    const input = await file('in', '1\n');
    await file('log', 'old\n');
    await link(input, join(folder, 'hard'));
    await mkdir(join(folder, 'deep', 'er'), { recursive: true });
    await symlink('deep/er', join(folder, 'deep-link'));
    await symlink('.', join(folder, 'here'));
    await symlink('new', join(folder, 'new-link'));
    await symlink('loop', join(folder, 'loop'));
    for (const [flags, why] of [
      [
        '--input in --out hard',
        '--out: "hard" is not allowed; allowed: another file than that of --input',
      ],
      ['--input in --joblog here/in', '--joblog: "here/in"'],
      ['--input - --out in < in', '--out: "in"'],
      ['--input in --out - 1<> in', '--out: "-"'],
      [
        '--input in --out - --joblog log 1<> log',
        '--joblog: "log" is not allowed; allowed: another file than that of --out',
      ],
      ['--input in --out new --joblog here/new', '--joblog: "here/new"'],
      ['--input in --out new --bad-rows new-link', '--bad-rows: "new-link"'],
      [
        '--input in --out loop',
        '--out: "loop" is not allowed; allowed: a file that can be written',
      ],
      ['--input . --out new', '--out: "new" is not allowed; allowed: one outside of'],
      ['--input here/deep --out deep-link/new', '--out: "deep-link/new"'],
      ['--input here/. --joblog deep/../deep/new', '--joblog: "deep/../deep/new"'],
    ] as const) {
      const ended = piped(`${RUN} ${flags}`, commandLine);
      expect(ended.status, `${flags}: ${ended.stderr}`).toBe(2);
      expect(ended.stderr).toContain(`piecework: ${why}`);
    }
    expect(await readFile(input, 'utf8')).toBe('1\n');
    expect(await readFile(join(folder, 'log'), 'utf8')).toBe('old\n');
    expect(existsSync(join(folder, 'new'))).toBe(false);
  });
});

const bytes = (text: string) => Buffer.from(text, 'latin1');
const tar = () =>
  Buffer.concat([bytes('in.txt'.padEnd(257, '\0')), bytes('ustar\x0000'), Buffer.alloc(248)]);

/** What a file begins with, and the command that makes text of it. */
const OTHERS: readonly [string, Buffer, string, string][] = [
  ['bzip2', bytes('BZh91AY&SY\x01'), 'this is bzip2', 'bzip2 -dc FILE'],
  ['bzip2 of nothing', bytes('BZh9\x17rE8P\x90\0\0\0\0'), 'this is bzip2', 'bzip2 -dc FILE'],
  ['xz', bytes('\xfd7zXZ\0\0\x04'), 'this is xz', 'xz -dc FILE'],
  ['lz4', bytes('\x04"M\x18d@'), 'this is lz4', 'lz4 -dc FILE'],
  ['lzip', bytes('LZIP\x01'), 'this is lzip', 'lzip -dc FILE'],
  ['compress', bytes('\x1f\x9d\x90a'), 'this is compressed by compress', 'gzip -dc FILE'],
  ['tar', tar(), 'this is a tar archive', 'tar -xOf FILE'],
  ['zip', bytes(`PK\x03\x04${'\0'.repeat(26)}a.txt`), 'this is a zip archive', 'unzip -p FILE'],
  ['zip of nothing', bytes('PK\x05\x06'), 'this is a zip archive', 'unzip -p FILE'],
  [
    'xlsx',
    bytes(`PK\x03\x04${'\0'.repeat(26)}[Content_Types].xml`),
    'this is an Office document, such as xlsx',
    'in2csv FILE | piecework submit --input - --split csv …',
  ],
  [
    'xls',
    bytes('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1'),
    'this is an old Office document, such as xls',
    'in2csv FILE | piecework submit --input - --split csv …',
  ],
  ['7z', bytes("7z\xbc\xaf'\x1c\0\x04"), 'this is a 7z archive', '7z x -so FILE'],
  ['rar', bytes('Rar!\x1a\x07\x01\0'), 'this is a rar archive', 'unrar p -inul FILE'],
  [
    'Parquet',
    bytes('PAR1\x15\x04'),
    'this is Parquet',
    `duckdb -c 'copy (from '\\''FILE'\\'') to '\\''/dev/stdout'\\'' (format json)' | piecework submit --input - --split ndjson …`,
  ],
  [
    'Avro',
    bytes('Obj\x01\x04'),
    'this is Avro',
    'avro-tools tojson FILE | piecework submit --input - --split ndjson …',
  ],
  ['ORC', bytes('ORC\n\x03\x01'), 'this is ORC', 'orc-contents FILE'],
  [
    'SQLite',
    bytes('SQLite format 3\0\x10'),
    'this is an SQLite database',
    "sqlite3 -json FILE 'select * from TABLE' | piecework submit --input - --split json …",
  ],
  ['PDF', bytes('%PDF-1.7\n'), 'this is a PDF', 'pdftotext FILE -'],
];

describe('a file that is no text', () => {
  test.for(OTHERS)(
    '%s is named, with the command that makes text of it, before anything is written',
    async ([, content, what, command], { commandLine: { run, file, connection, queue } }) => {
      const text = await file('good.txt', '1\n');
      const other = await file('other', content);
      // Also one whose turn would come later.
      for (const inputs of [[other], [text, other]]) {
        const ended = await run('submit', '--input', ...inputs);
        expect(ended.code).toBe(1);
        const pipe = command.replace('FILE', other);
        expect(ended.stderr).toContain(`piecework: ${other}: ${what}, not text: ${pipe}`);
        expect(ended.stderr).toMatch(/ \| piecework submit --input -( --split \w+)? …\n$/);
      }
      expect(await keysOf(connection.client, queue)).toEqual([]);
    },
  );

  test('is recognised on standard input and in gzip as well', async ({
    commandLine: { file, redis, queue, folder },
  }) => {
    const tgz = await file('a.tgz', gzipSync(tar()));
    await expect(itemsOf([tgz])).rejects.toThrow(
      `${tgz}: this is a tar archive, not text: gunzip -c ${tgz} | tar -xOf - | piecework run --input - …`,
    );
    await writeFile(join(folder, 'x.zip'), bytes('PK\x03\x04'.padEnd(40, '\0')));
    await writeFile(join(folder, 'x.xz'), bytes('\xfd7zXZ\0'));
    const said = (name: string) =>
      spawnSync(
        'sh',
        [
          '-c',
          `cat "$1" | "$2" "$3" submit --queue "$4" --input -`,
          'sh',
          join(folder, name),
          process.execPath,
          PROGRAM,
          queue,
        ],
        {
          encoding: 'utf8',
          env: { ...process.env, REDIS_URL: redis },
        },
      ).stderr;
    expect(said('x.xz')).toBe(
      'piecework: standard input: this is xz, not text: … | xz -dc - | piecework submit --input - …\n',
    );
    expect(said('x.zip')).toBe(
      'piecework: standard input: this is a zip archive, not text: write it into a FILE, then unzip -p FILE | piecework submit --input - …\n',
    );
  });

  test.for(['BZh91', 'PAR1,b', 'ORC\n1', 'Obj,1', 'PK\n', 'Rar!', '7z', 'SQLite', '%PDF', 'LZIP'])(
    'is not taken for text that begins with %j',
    async (text, { commandLine: { file } }) => {
      expect(await itemsOf([await file('text', text)])).toEqual(text.split('\n').filter(Boolean));
    },
  );

  test.runIf(spawnSync('bzip2', ['--version']).status === 0)(
    'is read by the command that the error names',
    async ({ commandLine: { redis, queue, folder, file } }) => {
      const packed = spawnSync('bzip2', ['-c'], { input: '1\n2\n' }).stdout;
      const input = await file("it's.bz2", packed);
      const said = await itemsOf([input]).then(String, (error: Error) => error.message);
      const command = /not text: (.*) …$/.exec(said)?.[1] ?? '';
      const piecework = `piecework() { "${process.execPath}" "${PROGRAM}" "$@"; }`;
      const flags = `--exec cat --out - --format text --queue ${queue}`;
      const ended = spawnSync('sh', ['-c', `${piecework}; ${command} ${flags}`], {
        ...{ encoding: 'utf8', cwd: folder, env: { ...process.env, REDIS_URL: redis } },
      });
      expect(ended.stdout, ended.stderr).toBe('1\n2\n');
    },
  );
});

describe('UTF-16 without a byte order mark', () => {
  const utf16 = (text: string, encoding: string) => {
    const bytes = Buffer.from(text, 'utf16le');
    return encoding === 'UTF-16LE' ? bytes : bytes.swap16();
  };

  test.for(['UTF-16LE', 'UTF-16BE'])(
    'is refused by its NULs, with the command that reads it, wherever it stands: %s',
    async (encoding, { commandLine: { file, redis, queue } }) => {
      const good = await file('good', '1\n');
      for (const text of ['a,b\r\n1,2\r\n', 'мир\nтруд\n', 'one line']) {
        const input = await file('in.txt', utf16(text, encoding));
        const iconv = `iconv -f ${encoding} -t UTF-8`;
        const said = 'this is UTF-16 without a byte order mark';
        for (const inputs of [[input], [good, input]])
          await expect(itemsOf(inputs)).rejects.toThrow(
            `${input}: ${said}: ${iconv} ${input} | piecework run --input - …`,
          );
        const packed = await file('in.gz', gzipSync(utf16(text, encoding)));
        await expect(itemsOf([packed])).rejects.toThrow(
          `gunzip -c ${packed} | ${iconv} | piecework`,
        );
        const script = `${iconv} "$1" | "$2" "$3" submit --dry-run --json --queue "$4" --input -`;
        const read = spawnSync(
          'sh',
          ['-c', script, 'sh', input, process.execPath, PROGRAM, queue],
          { encoding: 'utf8', env: { ...process.env, REDIS_URL: redis } },
        );
        expect(jsonLines(read.stdout).map(({ payload }) => payload)).toEqual(
          text.split(/\r?\n/).filter(Boolean),
        );
      }
    },
  );

  test('is not what has a NUL elsewhere, is split at NULs, or is read as bytes', async ({
    commandLine: { file },
  }) => {
    const odd = await file('odd', 'a\0b\nc\0\n');
    expect(await itemsOf([odd])).toEqual(['a\0b', 'c\0']);
    expect(await itemsOf([await file('long', `${'x'.repeat(31)}\0`)])).toHaveLength(1);
    const names = await file('names', 'a\0b\0');
    expect(await itemsOf([names], { split: 'delimiter:\\0' })).toEqual(['a', 'b']);
    expect(await itemsOf([names], { binary: true })).toHaveLength(1);
  });
});

describe('gzip that is broken in its middle', () => {
  const packed = gzipSync(Array.from({ length: 30_000 }, (_, i) => `${i}\n`).join(''));
  const cut = packed.subarray(0, packed.length / 2);

  test('is named; all that was read before it is run, also with --batch', async ({
    commandLine: { file, run },
  }) => {
    const [good, bad] = [await file('good', 'x\n'), await file('bad.gz', cut)];
    for (const batch of [[], ['--batch', '1000']]) {
      const args = ['run', '--input', good, bad, '--handler', await file('h.mjs', ECHO), ...batch];
      const { code, stdout, stderr } = await run(...args, '--out', '-');
      expect(code).toBe(1);
      const said =
        /bad\.gz: broken gzip data after line (\d+) \(.*\); what was read before that is run/;
      const [, lines] = said.exec(stderr) ?? [];
      const ran = jsonLines<{ value: unknown }>(stdout).flatMap(({ value }) => value);
      expect(ran).toHaveLength(1 + Number(lines));
      expect(stderr).toMatch(/\npiecework: .*bad\.gz: broken gzip data after line \d+ \(.*\)\n$/);
    }
  });

  test('in its last byte has all lines before', async ({ commandLine: { file, run } }) => {
    const lines = Array.from({ length: 1_000 }, (_, i) => `${i}\n`).join('');
    const input = await file('cut.gz', gzipSync(lines).subarray(0, -1));
    const args = ['run', '--input', input, '--handler', await file('h.mjs', ECHO), '--out', '-'];
    const { code, stdout, stderr } = await run(...args);
    expect(code).toBe(1);
    expect(stderr).toContain('broken gzip data after line 1000 (unexpected end of file)');
    expect(jsonLines(stdout)).toHaveLength(1_000);
  });

  test('is suspected where a line is wrong', async ({ commandLine: { file } }) => {
    const input = await file('a.gz', gzipSync(bytes('1\n\xff\n')));
    await expect(itemsOf([input])).rejects.toThrow(
      `; gzip -t ${input} says whether the compressed data is broken`,
    );
  });
});

const ECHO = 'export default (payload) => payload;';

test('gzip is whole or refused, and a text with the name of one is text', async ({
  commandLine: { file },
}) => {
  const packed = gzipSync('1\n2\n');
  const read = async (content: Buffer) => itemsOf([await file('a.gz', content)]);
  await expect(read(packed.subarray(0, -1))).rejects.toThrow('broken gzip data');
  await expect(read(Buffer.concat([packed, bytes('x')]))).rejects.toThrow('broken gzip data');
  expect(await read(Buffer.concat([packed, packed]))).toEqual(['1', '2', '1', '2']);
  expect(await read(bytes('plain\n'))).toEqual(['plain']);
});

const TIME_OF = fileURLToPath(
  new URL('../../packages/cli/dist/terminal/time-of.js', import.meta.url),
);

/** How a machine in this zone understands a time. */
function understood(typed: string, zone: string): string {
  const script = `import { timeOf, zoned } from ${JSON.stringify(TIME_OF)};
    const at = timeOf(process.argv[1]);
    console.log(typeof at === 'string' ? at : zoned(at));`;
  const ended = spawnSync(process.execPath, ['--input-type=module', '-e', script, typed], {
    encoding: 'utf8',
    env: { ...process.env, TZ: zone },
  });
  return ended.stdout.trim();
}

describe('--run-at', () => {
  const GAP = 'as the clock of your zone never shows this time';
  const FOLD = 'as the clock of your zone shows this time twice';

  test.for<[string, string, string]>([
    ['2026-02-30T10:00', 'UTC', 'a day and a time that exist'],
    ['2027-02-29', 'Europe/Berlin', 'a day and a time that exist'],
    ['2026-12-01T24:00', 'UTC', 'a day and a time that exist'],
    ['2026-12-01T10:60Z', 'UTC', 'a day and a time that exist'],
    [
      '2026-03-29T02:30',
      'Europe/Berlin',
      `2026-03-29T01:30:00+01:00 or 2026-03-29T03:30:00+02:00, ${GAP}`,
    ],
    [
      '2026-10-25T02:30',
      'Europe/Berlin',
      `2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00, ${FOLD}`,
    ],
    [
      '2026-11-01T01:00',
      'America/New_York',
      `2026-11-01T01:00:00-04:00 or 2026-11-01T01:00:00-05:00, ${FOLD}`,
    ],
    [
      '2011-12-30T12:00',
      'Pacific/Apia',
      `2011-12-29T12:00:00-10:00 or 2011-12-31T12:00:00+14:00, ${GAP}`,
    ],
    ['2026-12-01T10:00', 'Europe/Berlin', '2026-12-01T10:00:00+01:00'],
    ['2026-07-01T10:00:05.25', 'Europe/Berlin', '2026-07-01T10:00:05.250+02:00'],
    ['2026-07-01', 'America/St_Johns', '2026-07-01T00:00:00-02:30'],
    ['2026-07-01 10:00', 'UTC', '2026-07-01T10:00:00+00:00'],
    ['2026-07-01T10:00Z', 'Asia/Kathmandu', '2026-07-01T15:45:00+05:45'],
    ['2026-07-01T10:00-03:30', 'UTC', '2026-07-01T13:30:00+00:00'],
    ['2026-03-29T02:30Z', 'Europe/Berlin', '2026-03-29T04:30:00+02:00'],
    ['1782900000000', 'UTC', '2026-07-01T10:00:00+00:00'],
    ['2026-03-29T01:59:59', 'Europe/Berlin', '2026-03-29T01:59:59+01:00'],
    ['2026-03-29T03:00', 'Europe/Berlin', '2026-03-29T03:00:00+02:00'],
    ['2026-10-25T01:59:59', 'Europe/Berlin', '2026-10-25T01:59:59+02:00'],
    ['2026-10-25T03:00', 'Europe/Berlin', '2026-10-25T03:00:00+01:00'],
  ])('%s in %s is %s', ([typed, zone, said]) => {
    expect(understood(typed, zone)).toBe(said);
  });

  test('is refused where it is no time, and else said with its zone; one in the past starts at once', async ({
    commandLine: { run, file },
  }) => {
    const input = await file('in', '1\n');
    const dryRun = (time: string) => run('submit', '--dry-run', '--input', input, '--run-at', time);
    for (const [time, allowed] of [
      ['2026-02-30T10:00', 'a day and a time that exist'],
      [
        '1900000000',
        'ms since 1970: 1900000000 is in 1970 to 1973; if it is seconds, write 1900000000000',
      ],
      ['2026-12-01T10:00+24:00', 'a time such as 2030-01-31T12:00:00Z, '],
      ['2026-12-01 noon', 'a time such as 2030-01-31T12:00:00Z, '],
    ] as const) {
      const refused = await dryRun(time);
      expect(refused.code).toBe(2);
      expect(refused.stderr).toContain(
        `piecework: --run-at: "${time}" is not allowed; allowed: ${allowed}`,
      );
    }
    expect((await dryRun('2999-12-01T10:00')).stderr).toMatch(
      /^starts at 2999-12-01T10:00:00[+-]\d\d:\d\d \(in \d+y( \d+d)?\)\n/,
    );
    const past = ['run', '--input', input, '--exec', 'cat', '--run-at', '2001-01-31T12:00'];
    const quiet = await run(...past, '--json');
    expect([quiet.code, quiet.stderr]).toEqual([0, '']);
    expect((await run(...past)).stderr).toMatch(
      /^starts at once: --run-at 2001-01-31T12:00:00[+-]\d\d:\d\d has passed \(\d+y( \d+d)? ago\)\n/,
    );
  });
});
