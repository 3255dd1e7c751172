import { spawnSync } from 'node:child_process';
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import { endAtOnce, STARTS, startCli } from '../support/cli.js';
import { type CommandLine, jsonLines, test } from '../support/command-line.js';
import { freshName } from '../support/given.js';
import { until } from '../support/until.js';

/*
 * Tables and texts as spreadsheets and databases write them, and records that cannot be items.
 */

// Ids of requests are used by nobody else, whatever server this is.
const unique = freshName('rows');

/** What a dry run reads: payloads, and what is said. */
async function read({ run, file }: CommandLine, content: string | Buffer, ...args: string[]) {
  const input = await file('input', content);
  const { code, stdout, stderr } = await run('submit', '--dry-run', '--input', input, ...args);
  const payloads = jsonLines<{ payload: unknown }>(stdout).map(({ payload }) => payload);
  return { code, payloads, said: stderr.replaceAll(`${input}: `, '') };
}

const CSV = ['--split', 'csv'];
const TSV = ['--split', 'tsv'];

describe('the delimiter of CSV', () => {
  const european = 'id;price\n1;1,99\n';
  const row = { id: '1', price: '1,99' };

  test('is the one that the flag names, or that Excel wrote into a first line', async ({
    commandLine,
  }) => {
    const flagged = await read(commandLine, european, ...CSV, '--csv-delimiter', ';');
    expect(flagged.payloads).toEqual([row]);
    expect(flagged.said).toContain('fields are separated by ";"; 2 columns: id, price\n');
    const said = await read(commandLine, `\ufeffSEP=;\r\n${european}2;"`, ...CSV);
    expect(said.payloads).toEqual([row]);
    // The line of Excel counts.
    expect(said.said).toContain('line 4 begins a row that is not valid CSV');
    const bars = await read(commandLine, 'a§b\n"1§"§2\n', ...CSV, '--csv-delimiter', '§');
    expect(bars.payloads).toEqual([{ a: '1§', b: '2' }]);
    const both = await read(commandLine, `sep=;\n${european}`, ...CSV, '--csv-delimiter', ',');
    expect(both.said).toBe('piecework: line 1 is sep=;, but --csv-delimiter is ,\n');
  });

  test.for<[string, string, string[], string]>([
    ['semicolons', 'id;name\n1;2\n', CSV, `"id;name": --split csv --csv-delimiter ';' splits it`],
    ['tabs', 'id\tname\n1\t2\n', CSV, `"id\\tname": --split csv --csv-delimiter '\\t' splits it`],
    ['bars', 'id|name\n1|2\n', CSV, `"id|name": --split csv --csv-delimiter '|' splits it`],
    ['commas in TSV', 'id,name\n1,2\n', TSV, '"id,name": --split csv splits it'],
    ['semicolons without a header', '1;2\n', [...CSV, '--csv-header', 'none'], '"1;2": --split'],
  ])(
    'that is another one is found in the first row: %s',
    async ([, text, args, why], { commandLine }) => {
      const { code, payloads, said } = await read(commandLine, text, ...args);
      expect([code, payloads]).toEqual([1, []]);
      expect(said).toContain(`piecework: line 1 is one column, ${why}`);
    },
  );

  test('may be confirmed for a single column', async ({ commandLine }) => {
    const { payloads } = await read(commandLine, 'a;b\nx\n', ...CSV, '--csv-delimiter', ',');
    expect(payloads).toEqual([{ 'a;b': 'x' }]);
  });

  test.for([
    ['--csv-delimiter', ';;', ...CSV],
    ['--csv-delimiter', '"', ...CSV],
    ['--csv-delimiter', ';'],
    ['--csv-header', 'a,a', ...CSV],
    ['--csv-header', 'a,,b', ...CSV],
    ['--csv-header', 'a'],
    ['--bad-rows', 'x', '--split', 'files'],
  ])('and a header are refused where they mean nothing: %j', async (args, { commandLine }) => {
    const { code, said } = await read(commandLine, 'a,b\n', ...args);
    expect(code).toBe(2);
    expect(said).toMatch(/^piecework: --(csv-delimiter|csv-header|bad-rows): /);
  });
});

describe('rows without a header', () => {
  test('get names from --csv-header, or are arrays', async ({ commandLine }) => {
    const names = ['--csv-header', 'id,name'];
    const named = [
      { id: '1', name: 'ann' },
      { id: '2', name: 'bob' },
    ];
    expect((await read(commandLine, '1,ann\n2,bob\n', ...CSV, ...names)).payloads).toEqual(named);
    expect((await read(commandLine, '1\tann\n2\tbob\n', ...TSV, ...names)).payloads).toEqual(named);
    const arrays = await read(commandLine, '1,ann\n2,bob\n', ...CSV, '--csv-header', 'none');
    expect(arrays.payloads).toEqual([
      ['1', 'ann'],
      ['2', 'bob'],
    ]);
    expect(arrays.said).toContain('2 fields, without names: each row is an array');
    const short = await read(commandLine, '1,ann\n2\n', ...CSV, '--csv-header', 'none');
    expect(short.said).toContain('line 2 has 1 field, the first row 2 fields');
  });

  test('have placeholders by these names, and none without names', async ({
    commandLine: { run, file },
  }) => {
    const input = await file('input', '1,ann\n');
    const args = ['run', '--dry-run', '--input', input, ...CSV, '--csv-header'];
    const named = await run(...args, 'id,name', '--exec', 'echo {name}');
    expect(named.stdout).toBe('echo ann\n');
    const none = await run(...args, 'none', '--exec', 'echo {name}');
    expect(none.code).toBe(2);
    expect(none.stderr).toContain('no {name} with --csv-header none: --csv-header id,name gives');
    const whole = await run(...args, 'none', '--exec', 'echo {}');
    expect(whole.stdout).toBe(`echo '["1","ann"]'\n`);
  });
});

describe('a first row that may be data', () => {
  const said = 'is taken for the header; if it is data, give --csv-header NAMES or none\n';

  test.for([
    ['1,2,3,4', '1, 2, 3, …'],
    ['-1.5e3,Anna', '-1.5e3, Anna'],
    ['2026-01-31T10:00Z,x', '2026-01-31T10:00Z, x'],
  ] as const)('is named, with the flag for it: %s', async ([row, shown], { commandLine }) => {
    const { file, run } = commandLine;
    const paths = [await file('in', `${row}\n${row}\n`), await file('more', `${row}\n${row}\n`)];
    const submit = ['submit', '--dry-run', ...CSV, '--input', ...paths];
    const { code, stderr } = await run(...submit);
    expect(code).toBe(0);
    expect(stderr.split('\n').filter((line) => line.includes('taken for'))).toEqual([
      `${paths[0]}: the first row (${shown}) ${said.trimEnd()}`,
    ]);
    for (const flags of [['--csv-header', 'none'], ['--json']])
      expect((await run(...submit, ...flags)).stderr).not.toContain('taken for');
  });

  test('is also named where it cannot be a header', async ({ commandLine: { file, run } }) => {
    const input = await file('in', '1,1\n2,2\n');
    const { code, stderr } = await run('submit', '--dry-run', ...CSV, '--input', input);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`has "1" twice; the first row`)]);
  });

  test('is not one that begins with a word', async ({ commandLine: { file, run } }) => {
    const input = await file('in', 'region,2024,2025\n1,2,3\n');
    const { stderr } = await run('submit', '--dry-run', ...CSV, '--input', input);
    expect(stderr).not.toContain('taken for');
  });
});

describe('columns without a name', () => {
  test('are left out while they are empty, also where a row ends before them', async ({
    commandLine,
  }) => {
    const { payloads, said } = await read(commandLine, 'a,,b,,\n1,,2,,\n3,,4\n', ...CSV);
    expect(payloads).toEqual([
      { a: '1', b: '2' },
      { a: '3', b: '4' },
    ]);
    expect(said).toContain('2 columns: a, b; 3 more without a name, left out while empty\n');
  });

  test('are named by line and number when a row has a value there', async ({ commandLine }) => {
    const { payloads, said } = await read(commandLine, 'a,b,,\n1,2,,\n3,4,,5\n', ...CSV);
    expect(payloads).toEqual([{ a: '1', b: '2' }]);
    expect(said).toContain(
      'line 3 has a value in column 4, which has no name in the header; --bad-rows FILE leaves',
    );
    const nameless = await read(commandLine, ',,\n1,2,3\n', ...CSV);
    expect(nameless.said).toBe('piecework: line 1: the header has no names\n');
  });
});

test('tab-separated text is data as databases write it: quotes and backslashes stay', async ({
  commandLine,
}) => {
  const text = 'id\tsize\n1\t5" pipe\n2\t"quoted" start\n3\tC:\\temp\\N\r\n';
  const { payloads } = await read(commandLine, text, ...TSV);
  expect(payloads).toEqual([
    { id: '1', size: '5" pipe' },
    { id: '2', size: '"quoted" start' },
    { id: '3', size: 'C:\\temp\\N' },
  ]);
  const quoted = await read(commandLine, 'a\tb\n1\t"x\ty"\n', ...TSV);
  expect(quoted.said).toContain(
    `line 2 has 3 fields, the header 2 fields; --split csv --csv-delimiter '\\t' reads fields in quotes; --bad-rows FILE leaves out such records\n`,
  );
  const mac = await read(commandLine, 'a\tb\r1\t2\r', ...TSV);
  expect(mac.said).toContain(`line 1 contains a CR: --split csv --csv-delimiter '\\t' reads rows`);
});

describe('an encoding', () => {
  const text = 'ä\n"€😀"\n';
  const items: [string, string, unknown[]][] = [
    ['csv', text, [{ ä: '€😀' }]],
    ['tsv', 'ä\tb\n€😀\t1\n', [{ ä: '€😀', b: '1' }]],
    ['ndjson', '"ä"\n"€😀"\n', ['ä', '€😀']],
    ['json', '["ä", "€😀"]', ['ä', '€😀']],
    ['lines', text, ['ä', '"€😀"']],
    ['delimiter:;', 'ä;€😀', ['ä', '€😀']],
  ];
  const bigEndian = (bytes: Buffer) => Buffer.from(bytes).swap16();

  test.for(items)(
    'with a byte order mark is read as %s',
    async ([how, content, expected], { commandLine }) => {
      const utf16 = Buffer.from(`\ufeff${content}`, 'utf16le');
      for (const bytes of [Buffer.from(`\ufeff${content}`), utf16, bigEndian(utf16)])
        for (const one of [bytes, gzipSync(bytes)])
          expect((await read(commandLine, one, '--split', how)).payloads).toEqual(expected);
    },
  );

  test('of Windows is refused with the command that reads it', async ({
    commandLine: { run, file, redis, queue },
  }) => {
    const input = await file("zoë's.csv", Buffer.from('id,name\n1,zoë\n', 'latin1'));
    const header = await file('header.csv', Buffer.from('ï,name\n1,zoë\n', 'latin1'));
    for (const one of [input, header]) {
      const args = ['--dry-run', '--json', ...CSV, '--input'];
      const refused = await run('submit', ...args, one);
      expect(refused.code).toBe(1);
      const { message } = JSON.parse(refused.stderr).error;
      const [, pipe = ''] = /reads it: (.*) \| piecework submit --input - …$/.exec(message) ?? [];
      const converted = spawnSync('sh', ['-c', pipe]).stdout;
      const options = { redis, input: converted.toString() };
      const { stdout } = await startCli(['submit', ...args, '-', '--queue', queue], options)
        .finished;
      expect(jsonLines(stdout)[0]).toMatchObject({ payload: { name: 'zoë' } });
    }
  });
});

interface Bad {
  readonly line: number;
  readonly reason: string;
  readonly record: unknown;
}

const badIn = async (path: string) => jsonLines<Bad>(await readFile(path, 'utf8'));

describe('--bad-rows', () => {
  const LIMIT = ['--max-payload-bytes', '60'];
  const long = 'x'.repeat(70);
  const csv = Buffer.concat([
    Buffer.from(`id,name\n1,ann\n2\n3,"bo"b\n4,5" x\n5,${long}\n6,`),
    Buffer.from([0xff]),
    Buffer.from(
      '\n7,"\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"\n8,"two\r\nlines"\n9,x\n10,"open\n11,y\n',
    ),
  ]);

  test('gets the records that are no items, and all others are run', async ({
    commandLine: { run, file, folder },
  }) => {
    const input = await file('a.csv', csv);
    const bad = join(folder, 'bad.ndjson');
    await writeFile(bad, 'of an earlier run\n');
    const args = ['--input', input, ...CSV, ...LIMIT, '--bad-rows', bad];
    const ended = await run('run', ...args, '--exec', 'printf %s {id}', '--out', '-');
    expect(ended.code, ended.stderr).toBe(1);
    expect(jsonLines(ended.stdout).map(({ value }) => value)).toEqual(['1', '8', '9']);
    expect(ended.stderr).toContain('succeeded: 3 succeeded, 0 failed of 3');
    expect(ended.stderr).toContain(
      `\nleft out: 7 bad records (8 lines) of the input; see ${bad}\n`,
    );
    const records = await badIn(bad);
    expect(records).toEqual([
      { file: input, line: 3, reason: 'has 1 field, the header 2 fields', record: '2' },
      {
        ...{ file: input, line: 4, record: '3,"bo"b' },
        reason: expect.stringContaining('a closing quote is not followed by a delimiter'),
      },
      {
        ...{ file: input, line: 5, record: '4,5" x' },
        reason: expect.stringContaining('there is a quote within a field without quotes'),
      },
      {
        ...{ file: input, line: 6, record: `5,${long}`.slice(0, 60), more: true },
        reason: 'begins a row of more than 60 bytes: --max-payload-bytes allows more',
      },
      { file: input, line: 7, reason: 'is not UTF-8 text', record: { $binary: 'Niz/' } },
      {
        ...{ file: input, line: 8, record: { id: '7', name: '\x01'.repeat(10) } },
        reason: 'has 80 bytes as JSON; allowed: 60 (--max-payload-bytes allows more)',
      },
      {
        ...{ file: input, line: 12, lines: 2, record: '10,"open\n11,y\n' },
        reason: 'begins a row that is not valid CSV: a quote is not closed',
      },
    ]);
  });

  test('gets lines that are not JSON, too long or not UTF-8, of each kind of input', async ({
    commandLine: { run, file, folder },
  }) => {
    const bytes = Buffer.from(`1\n{\n"${long}"\n"\xff"\n2\n`, 'latin1');
    const input = await file('a.txt', bytes);
    const bad = join(folder, 'bad.ndjson');
    const found = async (...args: string[]) => {
      const ended = await run('run', '--json', '--input', input, ...LIMIT, ...args);
      expect(ended.code, ended.stderr).toBe(1);
      const { status, counts, badRecords, badRowsFile } = JSON.parse(ended.stdout);
      expect([status, badRecords, badRowsFile]).toEqual([
        'succeeded',
        (await badIn(bad)).length,
        bad,
      ]);
      return { total: counts.total, lines: (await badIn(bad)).map(({ line }) => line) };
    };
    const args = ['--exec', 'cat', '--bad-rows', bad];
    expect(await found(...args, '--split', 'ndjson')).toEqual({ total: 2, lines: [2, 3, 4] });
    const kept = await file('b.txt', '12345678901234567890\n{\n');
    const digits = await run('run', '--input', kept, '--split', 'ndjson', ...args, '--out', '-');
    expect(jsonLines(digits.stdout)).toMatchObject([{ value: '12345678901234567890' }]);
    expect(await found(...args)).toEqual({ total: 3, lines: [3, 4] });
    expect(await found(...args, '--batch', '2')).toEqual({ total: 2, lines: [3, 4] });
    const names = ['--split', 'tsv', '--csv-header', 'a'];
    expect(await found(...args, ...names)).toEqual({ total: 3, lines: [3, 4] });
    const binary = await run('run', '--input', input, ...LIMIT, '--binary', ...args, '--json');
    expect(JSON.parse(binary.stdout)).toMatchObject({ badRecords: 1, counts: { total: 4 } });
  });

  test('of submit counts what was left out, and keeps its file when nothing was submitted', async ({
    commandLine: { run, file, folder },
  }) => {
    const input = await file('a.csv', 'id,name\n0\n1,ann\n2\n');
    const bad = join(folder, 'bad.ndjson');
    const id = `${unique}-submit`;
    const args = ['submit', '--input', input, ...CSV, '--bad-rows', bad, '--id', id];
    const submitted = await run(...args);
    expect(submitted.code).toBe(1);
    expect(submitted.stdout).toBe(`${id}\n`);
    expect(submitted.stderr).toBe(`left out: 2 bad records of the input; see ${bad}\n`);
    expect((await badIn(bad)).map(({ line }) => line)).toEqual([2, 4]);
    await writeFile(bad, 'kept\n');
    const again = await run(...args, '--json');
    expect(again.code).toBe(0);
    expect(JSON.parse(again.stdout)).toEqual({ id });
    expect((await run(...args, '--task', 'other')).code).toBe(1);
    expect(await readFile(bad, 'utf8')).toBe('kept\n');
    const json = await run(...args.slice(0, -1), `${id}-json`, '--json');
    expect(JSON.parse(json.stdout)).toEqual({ id: `${id}-json`, badRecords: 2, badRowsFile: bad });
  });

  test('is refused as an input, as another output, and cannot replace a header', async ({
    commandLine: { run, file, folder },
  }) => {
    const input = await file('a.csv', 'id,id\n1,2\n');
    const bad = join(folder, 'bad.ndjson');
    const args = ['run', '--input', input, ...CSV, '--exec', 'cat'];
    const same = await run(
      ...args.with(2, await file('b.csv', 'a,b\n')),
      '--bad-rows',
      `${folder}/b.csv`,
    );
    expect(same.code).toBe(2);
    expect(same.stderr).toContain('--bad-rows: ');
    const twice = await run(...args.with(2, `${folder}/b.csv`), '--bad-rows', bad, '--joblog', bad);
    expect(twice.code).toBe(2);
    const header = await run(...args, '--bad-rows', bad);
    expect(header.code).toBe(1);
    expect(header.stderr).toContain('line 1: the header has "id" twice');
  });

  test('whose disk is full does not stop the run', async ({ commandLine: { run, file } }) => {
    const input = await file('a.csv', 'id,name\n1\n2,bob\n');
    const args = ['run', '--input', input, ...CSV, '--bad-rows', '/dev/full', '--exec', 'cat'];
    const { code, stderr } = await run(...args);
    expect(code).toBe(1);
    expect(stderr).toContain('1 succeeded, 0 failed of 1');
    expect(stderr).toContain('left out: 1 bad record of the input; not all are in /dev/full: ');
  });

  test('of a run that is continued has each record once, and the items keep their indexes', {
    tags: 'processes',
  }, async ({ commandLine: { run, file, folder, redis, queue } }) => {
    const rows = Array.from({ length: 200 }, (_, i) => (i % 10 === 3 ? `${i}\n` : `${i},${i}\n`));
    const input = await file('a.csv', `id,name\n${rows.join('')}`);
    const [bad, out] = [join(folder, 'bad.ndjson'), join(folder, 'out.txt')];
    const id = `${unique}-again`;
    const exec = `echo x >> '${folder}/ran'; while [ ! -e '${folder}/go' ]; do sleep 0.05; done; echo {name}`;
    const begin = ['run', '--id', id, '--input', input, ...CSV, '--exec', exec, '--out', out];
    const args = [...begin, '--format', 'text', '-j', '4', '--window', '20', '--bad-rows', bad];
    const first = startCli([...args, '--queue', queue], { redis });
    const ran = async () => (await readFile(`${folder}/ran`, 'utf8').catch(() => '')).length;
    await until(async () => (await ran()) === 8, { what: 'four programs run', ...STARTS });
    await endAtOnce(
      () => first.child.kill('SIGINT'),
      () => first.said.stderr,
    );
    await first.finished;
    await writeFile(`${folder}/go`, '');
    const expected = rows.flatMap((row, i) => (row.includes(',') ? [] : [i + 2]));
    // The second time nothing is left to run, and the file is completed.
    for (const text of ['continues', 'has ended before']) {
      if (text !== 'continues') await appendFile(bad, 'of no run\n');
      const ended = await run(...args);
      expect(ended.code, ended.stderr).toBe(1);
      expect(ended.stderr).toContain(text);
      expect(ended.stderr).toContain('left out: 20 bad records of the input');
      expect((await badIn(bad)).map(({ line }) => line)).toEqual(expected);
      const values = rows.flatMap((row, i) => (row.includes(',') ? [`${i}\n`] : []));
      expect(await readFile(out, 'utf8')).toBe(values.join(''));
    }
    await run('drop', id);
    const anew = await run(...args.toSpliced(args.indexOf('--out'), 4));
    expect(anew.code).toBe(2);
    expect(anew.stderr).toContain('--bad-rows: ');
    expect(anew.stderr).toContain('a new or empty one');
  });
});
