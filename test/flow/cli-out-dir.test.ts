import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import { OutDir } from '../../packages/cli/dist/folder/out-dir.js';
import { cli, STARTS, startCli } from '../support/cli.js';
import { type CommandLine, test } from '../support/command-line.js';
import { freshName } from '../support/given.js';
import { until } from '../support/until.js';

/*
 * `--out-dir`: what succeeded, failed and is pending. What failed or is pending is input again.
 */

// Ids of requests are used by nobody else, whatever server this is.
const unique = freshName('out-dir');

interface Manifest {
  readonly id: string;
  readonly status: string;
  readonly inputRead?: boolean;
  readonly inputError?: string;
  readonly counts: Record<string, number>;
  readonly files: Record<string, { name: string; count: number; split: string }[]>;
}

const readManifest = async (dir: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(dir, 'manifest.json'), 'utf8'));

/** The paths of the files of a kind. */
const filesOf = async (dir: string, kind: string) =>
  ((await readManifest(dir)).files[kind] ?? []).map(({ name }) => join(dir, name));

const linesOf = async (paths: readonly string[]) =>
  (await Promise.all(paths.map((path) => readFile(path, 'utf8'))))
    .join('')
    .split('\n')
    .filter((line) => line !== '');

const succeededIn = async (dir: string) =>
  (await linesOf(await filesOf(dir, 'succeeded'))).map(
    (line) => JSON.parse(line) as { index: number; status: string; value: unknown },
  );

const errorsIn = async (dir: string) =>
  (await linesOf(await filesOf(dir, 'errors'))).map(
    (line) => JSON.parse(line) as { index: number; error: object; payload: unknown },
  );

/** Fails odd indexes, or none if its environment says so. */
const odd = ({ file }: CommandLine) =>
  file(
    'odd.mjs',
    `export default (payload, { index }) => {
       if (index % 2) throw new TypeError('odd ' + index);
       return payload;
     };`,
  );
const echo = ({ file }: CommandLine) => file('echo.mjs', 'export default (payload) => payload;');

const CSV = 'id,name\n0,zero\n1,"one, ""1"""\n2,two\n3,"line\nend"\n4,four\n5,=5\n';

describe('what failed is input of the same command again', () => {
  test.for<[string, Record<string, string | Buffer>, string[]]>([
    ['lines', { 'a.txt': 'zero\n  one \ntwo\n%PDF-1.4\nfour\nfive\r\r\n' }, []],
    ['compressed lines', { 'a.gz': gzipSync('0\n1\n2\n3\n') }, []],
    [
      'JSON by line, as it is',
      { 'a.ndjson': '{}\n[1.10,12345678901234567890]\n2\n{"a":1,"a":2}\n' },
      ['--split', 'ndjson'],
    ],
    ['a JSON value that is an array, alone', { 'a.ndjson': '0\n[1]\n' }, ['--split', 'ndjson']],
    [
      'JSON below a path',
      { 'a.json': '{"data":{"items":[0,{\n"one":1.0},[2],[\n3]]}}' },
      ['--split', 'json', '--json-path', 'data.items'],
    ],
    ['rows', { 'a.csv': CSV }, ['--split', 'csv']],
    ['rows of Excel', { 'a.csv': 'sep=;\nid;price\n0;0\n1;1,99\n' }, ['--split', 'csv']],
    [
      'rows with a delimiter and no header',
      { 'a.csv': '0|a\n1|b"\n'.replace('b"', '"b"""') },
      ['--split', 'csv', '--csv-delimiter', '|', '--csv-header', 'id,name'],
    ],
    [
      'arrays of rows',
      { 'a.csv': '0;a\n1;b\n' },
      [...['--split', 'csv', '--csv-delimiter', ';', '--csv-header', 'none']],
    ],
    [
      'rows of two headers',
      { 'a.csv': 'id,name\n0,a\n1,b\n', 'b.csv': 'name,more\nx,\ny,2\nz,3\nlast,4\n' },
      ['--split', 'csv'],
    ],
    ['rows of a database', { 'a.tsv': 'id\tname\n0\tq"\n1\t"\\N\n' }, ['--split', 'tsv']],
    ['texts between NUL', { 'a.bin': 'a\nb\0c\nd\0e\0f' }, ['--split', 'delimiter:\\0']],
    ['bytes', { 'a.bin': Buffer.from('a\n\xff\xfe\r\nb\n\xef\xbb\xbf\n', 'latin1') }, ['--binary']],
    ['batches', { 'a.txt': '0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n' }, ['--batch', '3']],
    ['chunks', { 'a.txt': '0\n1\n2\n3\n4\n' }, ['--split', 'chunk:2']],
  ])('%s', async ([, inputs, flags], { commandLine }) => {
    const { file, folder, run } = commandLine;
    const paths = await Promise.all(
      Object.entries(inputs).map(([name, content]) => file(name, content)),
    );
    const dir = join(folder, 'dir');
    const work = ['--handler', await odd(commandLine), ...flags];
    const first = await run('run', '--input', ...paths, ...work, '--out-dir', dir);
    expect(first.code, first.stderr).toBe(1);
    const errors = await linesOf([join(dir, 'errors.ndjson')]);
    const again = await filesOf(dir, 'failed');
    expect(errors.length).toBeGreaterThan(0);
    for (const path of again) expect(first.stderr).toContain(path);
    const second = ['run', '--input', ...again, ...flags, '--handler', await echo(commandLine)];
    const { code, stdout, stderr } = await run(...second, '--out', '-');
    expect(code, stderr).toBe(0);
    const resultOf = (line: string) => /"value":(.*)}$/.exec(line)?.[1];
    const payloadOf = (line: string) => /"payload":(.*)}$/.exec(line)?.[1];
    const ran = stdout.trim().split('\n').map(resultOf);
    // A handler gives JSON.parse of its item.
    const asked = errors.map(payloadOf).map((text) => JSON.stringify(JSON.parse(text ?? '')));
    expect(ran).toEqual(asked);
    const all = [...(await succeededIn(dir)), ...(await errorsIn(dir))].map(({ index }) => index);
    expect(all.sort((a, b) => a - b)).toEqual(all.map((_, i) => i));
  });

  test('JSON byte for byte, by a program', async ({ commandLine: { run, file, folder } }) => {
    const lines = '{ "n": 1.10, "n": 12345678901234567890 }\n"\\u00e9"\n';
    const input = await file('a.ndjson', lines);
    const dir = join(folder, 'dir');
    const args = ['--split', 'ndjson', '--exec', 'exit 3', '--out-dir', dir];
    expect((await run('run', '--input', input, ...args)).code).toBe(1);
    expect(await readFile(join(dir, 'failed.ndjson'), 'utf8')).toBe(lines);
  });

  test('names of files, as lines; one with a line end by itself', async ({ commandLine }) => {
    const { file, folder, run } = commandLine;
    const many = join(folder, 'many');
    await mkdir(many);
    for (const name of ['0', '1', '2', '3\nx']) await file(join('many', name), name);
    const dir = join(folder, 'dir');
    const work = ['--handler', await odd(commandLine)];
    // The run may change the folder.
    const { stderr } = await run('run', '--input', many, ...work, '--out-dir', dir);
    expect(await readFile(join(dir, 'failed.txt'), 'utf8')).toBe(`${many}/1\n`);
    expect(await readFile(join(dir, 'failed-2.txt'), 'utf8')).toBe(`${many}/3\nx\0`);
    expect(stderr).toContain(`  what failed: --input ${dir}/failed.txt --split lines\n`);
    expect(stderr).toContain(
      `  what failed: --input ${dir}/failed-2.txt --split 'delimiter:\\0'\n`,
    );
  });

  test('also of standard input, which nobody can read again', async ({ commandLine }) => {
    const { folder, redis, queue } = commandLine;
    const dir = join(folder, 'dir');
    const work = ['run', '--input', '-', '--handler', await odd(commandLine), '--queue', queue];
    const { code, stderr } = await cli([...work, '--out-dir', dir], { redis, input: 'a\nb\nc\n' });
    expect(code, stderr).toBe(1);
    expect(await readFile(join(dir, 'failed.txt'), 'utf8')).toBe('b\n');
    expect((await readdir(dir)).sort()).toEqual([
      ...['errors.ndjson', 'failed.txt', 'manifest.json', 'succeeded.ndjson'],
    ]);
  });
});

test('the command that runs the rest again is told which files it would replace', async ({
  commandLine,
}) => {
  const { file, folder, run } = commandLine;
  const input = await file('in.csv', 'id\n0\n1\n2\n');
  const files = ['--joblog', join(folder, 'log'), '--bad-rows', join(folder, 'bad')];
  const work = ['--split', 'csv', '--handler', await odd(commandLine)];
  const dir = ['--out-dir', join(folder, 'dir')];
  const { stderr } = await run('run', '--input', input, ...work, ...dir, ...files);
  expect(stderr).toContain('with another --out-dir, --bad-rows, --joblog and no --id, and with\n');
});

test('the manifest says what is where, and JSON says it, too', async ({ commandLine }) => {
  const { file, folder, run } = commandLine;
  const input = await file('a.csv', `${CSV}6\n`);
  const dir = join(folder, 'dir');
  const work = ['--split', 'csv', '--handler', await odd(commandLine), '--out-dir', dir];
  const bad = ['--bad-rows', join(folder, 'bad')];
  const { stdout } = await run('run', '--input', input, ...work, ...bad, '--json', '--limit', '2');
  const end = JSON.parse(stdout);
  expect(end).toMatchObject({
    outDir: dir,
    outDirCounts: { succeeded: 3, failed: 3, pending: 0 },
    failures: [{ name: 'TypeError', count: 3 }],
  });
  expect(await readManifest(dir)).toEqual({
    ...{ id: end.id, status: 'failed', generation: end.generation, counts: end.counts },
    ...{ badRecords: 1, inputRead: true, queue: commandLine.queue, input: [input], split: 'csv' },
    files: {
      succeeded: [{ name: 'succeeded.ndjson', count: 3 }],
      failed: [{ name: 'failed.csv', count: 3, split: 'csv' }],
      errors: [{ name: 'errors.ndjson', count: 3 }],
      pending: [],
    },
    startedAt: expect.stringMatching(/^\d{4}-.*Z$/),
    endedAt: expect.stringMatching(/^\d{4}-.*Z$/),
    options: expect.objectContaining({ limit: 2, attempts: 1, handler: expect.any(String) }),
  });
  expect((await errorsIn(dir))[1]).toEqual({
    ...{ index: 3, attempts: 1, crashes: 0, payload: { id: '3', name: 'line\nend' } },
    error: { name: 'TypeError', message: 'odd 3', stack: expect.any(String) },
  });
  expect((await succeededIn(dir))[1]).toEqual({
    ...{ index: 2, status: 'succeeded', value: { id: '2', name: 'two' } },
  });
});

test('an input that is wrong in its middle leaves what was read before', async ({
  commandLine,
}) => {
  const { file, folder, run } = commandLine;
  const input = await file('a.csv', 'id,name\n0,a\n1,b\n2\n3,d\n');
  const dir = join(folder, 'dir');
  const args = ['--split', 'csv', '--handler', await odd(commandLine), '--out-dir', dir];
  const { code } = await run('run', '--input', input, ...args);
  expect(code).toBe(1);
  const { inputRead, inputError, files } = await readManifest(dir);
  expect([inputRead, inputError]).toEqual([false, expect.stringContaining('line 4 has 1 field')]);
  expect(files).toMatchObject({ succeeded: [{ count: 1 }], failed: [{ count: 1 }], pending: [] });
});

const TOTAL = 200;
const all = Array.from({ length: TOTAL }, (_, i) => String(i));

/** A run of a handler that notes what it begins; odd ones fail, and it stands still from `stops` on until it may go on. */
async function stopping(commandLine: CommandLine, stops: number, ...more: string[]) {
  const { file, folder, queue, redis } = commandLine;
  const [ran, go, dir] = ['ran', 'go', 'dir'].map((name) => join(folder, name)) as [
    ...[string, string, string],
  ];
  await writeFile(ran, '');
  const handler = await file(
    'stopping.mjs',
    `import { appendFileSync, existsSync } from 'node:fs';
     import { setTimeout as sleep } from 'node:timers/promises';
     export default async (payload, { index, signal }) => {
       appendFileSync(${JSON.stringify(ran)}, index + '\\n');
       if (index === 5) while (!existsSync(${JSON.stringify(go)})) await sleep(20, undefined, { signal });
       while (index >= ${stops} && !existsSync(${JSON.stringify(go)})) await sleep(20, undefined, { signal });
       if (index % 2) throw new TypeError('odd');
       return payload;
     };`,
  );
  const input = await file('many.txt', all.map((line) => `${line}\n`).join(''));
  const args = ['run', '--input', input, '--handler', handler, '--out-dir', dir];
  const slots = ['-j', '4', '--processes', '1', '--drain-ms', '500'];
  const work = [...args, '--queue', queue, ...slots, ...more];
  return {
    ...{ dir, ran: () => linesOf([ran]), goOn: () => writeFile(go, '') },
    start: () => startCli(work, { redis }),
    run: () => cli(work, { redis }),
    standsStill: () =>
      until(async () => (await linesOf([ran])).length === stops + 3, {
        what: 'it has done what it may, and all slots stand still',
        ...STARTS,
      }),
  };
}

/** Runs files of a folder by a handler that accepts all. @returns the values */
async function runAgain(commandLine: CommandLine, paths: readonly string[]): Promise<string[]> {
  const work = ['--handler', await echo(commandLine), '--out', '-', '--format', 'text'];
  const { code, stdout, stderr } = await commandLine.run('run', '--input', ...paths, ...work);
  expect(code, stderr).toBe(0);
  return stdout.trim().split('\n');
}

const byNumber = (texts: readonly unknown[]) => texts.map(Number).sort((a, b) => a - b);

describe('a run that is stopped', () => {
  test.for([
    ['--window', '0'],
    ['--window', '20'],
  ])(
    'by Ctrl-C: what succeeded, failed and is pending is the input, each once: %s %s',
    {
      tags: 'processes',
    },
    async (window, { commandLine }) => {
      const { dir, start, standsStill } = await stopping(commandLine, 30, ...window);
      const { child, finished } = start();
      await standsStill();
      child.kill('SIGINT');
      expect((await finished).code).toBe(130);
      const { status, files, inputRead } = await readManifest(dir);
      expect([status, inputRead]).toEqual(['cancelled', true]);
      const succeeded = (await succeededIn(dir)).map(({ value }) => value);
      // Index 5 stood still, too.
      expect(succeeded).toHaveLength(15);
      expect(files).toMatchObject({ failed: [{ count: 14 }], pending: [{ count: TOTAL - 29 }] });
      const again = [...(await filesOf(dir, 'failed')), ...(await filesOf(dir, 'pending'))];
      expect(byNumber([...succeeded, ...(await runAgain(commandLine, again))])).toEqual(
        byNumber(all),
      );
    },
  );

  test('by too many failures leaves the rest as pending', { tags: 'processes' }, async ({
    commandLine,
  }) => {
    const policy = ['--tolerated-failures', '3', '--on-exceeded', 'cancel'];
    const { dir, run } = await stopping(commandLine, 50, ...policy);
    expect((await run()).code).toBe(1);
    const { counts } = await readManifest(dir);
    const pending = await linesOf(await filesOf(dir, 'pending'));
    const failed = await linesOf(await filesOf(dir, 'failed'));
    const succeeded = (await succeededIn(dir)).map(({ value }) => value);
    expect(pending.length).toBeGreaterThan(TOTAL / 2);
    expect([succeeded.length, failed.length]).toEqual([counts['succeeded'], counts['failed']]);
    expect(byNumber([...succeeded, ...failed, ...pending])).toEqual(byNumber(all));
  });

  test('with an id: each stop shows how far it is, and its end replaces that', {
    tags: 'processes',
  }, async ({ commandLine }) => {
    const id = `${unique}-stopped`;
    const { dir, goOn, ran, run, start, standsStill } = await stopping(
      ...[commandLine, 30, '--id', id],
    );
    const { child, finished } = start();
    await standsStill();
    expect(await readManifest(dir)).toMatchObject({ id, status: 'running' });
    child.kill('SIGINT');
    expect((await finished).code).toBe(130);
    expect(await readManifest(dir)).toMatchObject({
      ...{ id, status: 'stopped', inputRead: true },
      files: { succeeded: [{ count: 15 }], failed: [{ count: 14 }], pending: [{ count: 171 }] },
    });
    expect((await succeededIn(dir)).at(-1)).toMatchObject({ index: 28, value: '28' });
    expect(await linesOf(await filesOf(dir, 'pending'))).toEqual(['5', ...all.slice(30)]);
    await goOn();
    const { code, stderr } = await run();
    expect(code, stderr).toBe(1);
    expect(await readManifest(dir)).toMatchObject({
      ...{ id, status: 'failed' },
      files: { succeeded: [{ count: 100 }], failed: [{ count: 100 }], pending: [] },
    });
    expect(existsSync(join(dir, 'pending.txt'))).toBe(false);
    expect([...new Set(await ran())]).toHaveLength(TOTAL);
  });

  test('by kill -9 is continued into the same folder', { tags: 'processes' }, async ({
    commandLine,
  }) => {
    const id = `${unique}-killed`;
    const given = await stopping(commandLine, 30, '--id', id, '--window', '60');
    const { dir, goOn, run, start, standsStill } = given;
    const { child } = start();
    await standsStill();
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    expect(await readManifest(dir)).toMatchObject({ id, status: 'running' });
    // As a kill in the middle of a write leaves them.
    const items = join(dir, 'items.part');
    await truncate(items, 7);
    await writeFile(join(dir, 'pending.txt'), '1\n');
    await writeFile(join(dir, 'failed.txt.part'), '1\n');
    await goOn();
    const { code, stderr } = await run();
    expect(code, stderr).toBe(1);
    expect(stderr).toMatch(/continues: \d+ of/);
    const succeeded = (await succeededIn(dir)).map(({ value }) => value);
    const failed = await linesOf(await filesOf(dir, 'failed'));
    expect(byNumber([...succeeded, ...failed])).toEqual(byNumber(all));
    expect((await readdir(dir)).sort()).toEqual([
      ...['errors.ndjson', 'failed.txt', 'manifest.json', 'succeeded.ndjson'],
    ]);
    // Given again, it runs nothing and writes the same.
    const before = await readFile(join(dir, 'failed.txt'), 'utf8');
    expect((await run()).code).toBe(1);
    expect(await readFile(join(dir, 'failed.txt'), 'utf8')).toBe(before);
  });
});

test('a folder that cannot be used is refused before anything runs', async ({ commandLine }) => {
  const { file, folder, run } = commandLine;
  const at = (name: string) => join(folder, name);
  const input = await file('in.txt', 'a\n');
  const work = ['run', '--input', input, '--exec', `touch ${at('ran')}; false`];
  expect((await run(...work, '--out-dir', at('used'))).code).toBe(1);
  const { id } = await readManifest(at('used'));
  const has = `(this one has the files of ${id}; take another, or move it away)`;
  await mkdir(at('others'));
  await file('others/precious', 'x');
  for (const [dir, why, ...more] of [
    ['used', has],
    ['used', has, '--id', `${unique}-other`],
    ['others', '(this one has precious in it; take another, or move it away)'],
    ['ran', 'a folder that can be written (it is a file)'],
    ['no/such', 'a folder that can be written (its folder does not exist)'],
    ['new', '--results: "discard" is not allowed; allowed: keep', '--results', 'discard'],
  ] as const) {
    await writeFile(at('ran'), 'kept');
    const { code, stderr } = await run(...work, '--out-dir', at(dir), ...more);
    expect([code, stderr]).toEqual([2, expect.stringContaining(why)]);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(await readFile(at('ran'), 'utf8')).toBe('kept');
  }
  const within = await run('run', '--input', folder, '--exec', 'cat', '--out-dir', at('new'));
  expect([within.code, within.stderr]).toEqual([
    2,
    expect.stringContaining('one outside of the folders of --input'),
  ]);
  expect((await readdir(folder)).sort()).toEqual(['in.txt', 'others', 'ran', 'used']);
});

test('a folder in which two runs begin at once is that of the first', async ({
  commandLine: { folder },
}) => {
  const dir = join(folder, 'dir');
  const [one, other] = [await OutDir.open(dir, undefined), await OutDir.open(dir, undefined)];
  const about = { queue: 'req', input: [], split: 'lines', options: {} };
  await one.begin({ ...about, id: 'one' });
  await expect(other.begin({ ...about, id: 'other' })).rejects.toThrow('has the files of one');
  await Promise.all([one.close(), other.close()]);
  expect(await readManifest(dir)).toMatchObject({ id: 'one', status: 'running' });
});

test('a folder of a run that is no longer there is not overwritten', async ({ commandLine }) => {
  const { file, folder, run } = commandLine;
  const input = await file('in.txt', 'a\n');
  const dir = join(folder, 'dir');
  const id = `${unique}-dropped`;
  const work = ['run', '--input', input, '--exec', 'cat', '--id', id, '--out-dir', dir];
  expect((await run(...work)).code).toBe(0);
  expect((await run(...work)).code).toBe(0);
  await run('drop', id);
  const { code, stderr } = await run(...work);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('allowed: a new or empty one, as this run begins from the start'),
  ]);
});

const FULL = /: no space left on the disk$/;

test.for<[string, string[]]>([
  ['cancelled', []],
  ['stopped', ['--id', `${unique}-full-stopped`]],
])(
  'a disk that is full when a run is stopped leaves a manifest that says how it ended: %s',
  { tags: 'processes' },
  async ([status, flags], { commandLine }) => {
    const { dir, start, standsStill } = await stopping(commandLine, 30, ...flags);
    const { child, finished } = start();
    await standsStill();
    await symlink('/dev/full', join(dir, 'pending.txt.part'));
    child.kill('SIGINT');
    const { code, stderr } = await finished;
    expect(code, stderr).toBe(130);
    expect(await readManifest(dir)).toMatchObject({
      ...{ status, error: expect.stringMatching(FULL), endedAt: expect.any(String) },
    });
    expect(await readdir(dir)).toEqual(['manifest.json']);
    expect(stderr).toContain(`--out-dir ${dir} is not complete: `);
    const again = flags.length > 0 ? 'to continue, give' : 'the rest is not kept; the same command';
    expect(stderr).toContain(again);
  },
);

test('a disk that is full leaves the request in Redis, and no half of a file', async ({
  commandLine,
}) => {
  const { file, folder, run } = commandLine;
  const input = await file('in.txt', all.map((line) => `${line}\n`).join(''));
  const dir = join(folder, 'dir');
  const handler = await file(
    'full.mjs',
    `import { symlinkSync } from 'node:fs';
     export default (payload, { index }) => {
       if (index === 0) symlinkSync('/dev/full', ${JSON.stringify(join(dir, 'failed.txt.part'))});
       if (index % 2) throw new TypeError('odd');
       return payload;
     };`,
  );
  const work = ['run', '--input', input, '--handler', handler, '--out-dir', dir];
  const { code, stderr } = await run(...work, '--id', `${unique}-full`);
  expect(code, stderr).toBe(1);
  expect(stderr).toContain(`--out-dir ${dir} is not complete: `);
  expect(stderr).toContain('no space left on the disk\n');
  expect(stderr).toContain(`piecework results ${unique}-full`);
  expect(await readManifest(dir)).toMatchObject({
    status: 'failed',
    error: expect.stringMatching(FULL),
  });
  expect(await readdir(dir)).toEqual(['manifest.json']);
  // With room, the same command completes it.
  expect((await run(...work, '--id', `${unique}-full`)).code).toBe(1);
  expect(await readManifest(dir)).toMatchObject({
    files: { succeeded: [{ count: 100 }], failed: [{ count: 100 }] },
  });
});
