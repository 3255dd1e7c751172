/**
 * What a command says when it cannot do what it was told: one sentence, an exit code, and nothing written.
 * Looks at every key there is.
 * @module-tag own-server
 */
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../packages/embedded/dist/free-port.js';
import { cli } from '../support/cli.js';

import { startOwnRedis } from '../support/redis.js';
import { startTlsServer, type TlsServer } from '../support/tls-server.js';

const PROGRAM = fileURLToPath(new URL('../../packages/cli/bin/piecework.js', import.meta.url));

const FILES: Readonly<Record<string, string>> = {
  'in.txt': '1\n2\n3\n',
  'bad.ndjson': '{bad\n',
  'ok.mjs': 'export default async (x) => x;\n',
  'syntax.mjs': 'export default async (x) => {\n  return x +\n};\n',
  'imports-syntax.mjs': "import './syntax.mjs';\nexport default async (x) => x;\n",
  'syntax.cjs': 'module.exports = async (x) => x +;\n',
  'types.tsx': 'const a: number = 1;\nexport default async (x: number) => x;\n',
  'program.py': 'print(1)\n',
  'no-file.mjs': "import './missing.mjs';\nexport default async (x) => x;\n",
  'no-package.mjs': "import 'no-such-package';\nexport default async (x) => x;\n",
  'no-export.mjs': "import { b } from './ok.mjs';\nexport default async (x) => x;\n",
  'throws.mjs': "\nthrow new TypeError('no config');\n",
  'nothing.mjs': 'export const a = 1;\n',
  'seven.mjs': 'export default 7;\n',
  'empty.mjs': 'export default {};\n',
  'no-function.mjs': 'export default { resize: 1 };\n',
  'array.mjs': "export default [{ task: 'resize' }];\n",
  'backoff.mjs': 'export default async (x) => x;\nexport const backoff = 1;\n',
  'tasks.mjs': 'export default { resize: async (x) => x, crop: async (x) => x };\n',
  'common.mjs': 'module.exports = async (x) => x;\n',
  'data.json': '{}',
  'commonjs/package.json': '{ "type": "commonjs" }',
  'commonjs/module.js': 'export default async (x) => x;\n',
  'kept.txt': 'as it was\n',
};

const RUN = ['run', '--input', 'in.txt'];
const WORK = ['--exec', 'cat'];
const run = (...args: string[]) => [...RUN, ...WORK, ...args];
const handled = (file: string, ...args: string[]) => ['worker', '--handler', file, ...args];

/** A command · its exit code · what it says, behind 'piecework: '. */
type Case = readonly [args: readonly string[], code: 1 | 2, says: RegExp];

const HANDLERS: readonly Case[] = [
  [handled('syntax.mjs'), 2, /^--handler syntax\.mjs: syntax\.mjs:3: SyntaxError: Unexpected/],
  [[...RUN, '--handler', 'syntax.mjs'], 2, /: syntax\.mjs:3: SyntaxError: /],
  [handled('syntax.mjs', '--processes', '3'), 2, /: syntax\.mjs:3: SyntaxError: /],
  [handled('imports-syntax.mjs'), 2, /^--handler imports-syntax\.mjs: syntax\.mjs:3: SyntaxError/],
  [handled('syntax.cjs'), 2, /: syntax\.cjs:1: SyntaxError: /],
  [handled('no-export.mjs'), 2, /: no-export\.mjs:1: SyntaxError: .* named 'b'$/],
  [
    handled('types.tsx'),
    2,
    /: Node does not run \.tsx files; compile it with tsc, or run it by tsx: /,
  ],
  [
    handled('common.mjs'),
    2,
    /: common\.mjs:1:1: module is not defined .*; write export default …, or name the file \.cjs$/,
  ],
  [handled('program.py'), 2, /does not run \.py files; run a program by --exec/],
  [handled('no-file.mjs'), 2, /imports cannot be found: .*missing\.mjs.*correct the path/],
  [handled('no-package.mjs'), 2, /imports cannot be found: .*npm install no-such-package/],
  [
    handled('throws.mjs'),
    1,
    /it threw while it was loaded, at throws\.mjs:2:7: TypeError: no config$/,
  ],
  [[...RUN, '--handler', 'throws.mjs'], 1, /at throws\.mjs:2:7: TypeError: no config$/],
  [['worker', '--handler', 'throws.mjs', '--processes', '3'], 1, /at throws\.mjs:2:7: TypeError/],
  [handled('nothing.mjs'), 2, /it has no default export; write export default/],
  [handled('seven.mjs'), 2, /its default export is not a function; write/],
  [handled('empty.mjs'), 2, /its default export is an empty object; write/],
  [handled('no-function.mjs'), 2, /in its default export, resize is not a function/],
  [handled('array.mjs'), 2, /defineTask\(…\)\.handler\(fn\)$/],
  [handled('backoff.mjs'), 2, /its export backoff is not a function$/],
  [
    [...RUN, '--handler', 'tasks.mjs', '--task', 'resiez'],
    2,
    /^--task: "resiez" is not allowed; allowed: a task that tasks\.mjs has: resize, crop$/,
  ],
  [
    [...RUN, '--handler', 'tasks.mjs'],
    2,
    /^--task is missing: a task that tasks\.mjs has: resize, crop$/,
  ],
  [handled('data.json'), 2, /it is not a JavaScript module$/],
  [handled('commonjs/module.js'), 2, /commonjs\/module\.js:1: .*name it \.mjs, or put/],
  [
    handled('nowhere.mjs'),
    2,
    /^--handler: "nowhere\.mjs" is not allowed; allowed: a file that exists$/,
  ],
  [RUN, 2, /^--handler is missing: a file that exists, or --exec instead$/],
  [['worker'], 2, /^--handler is missing: /],
  [handled('ok.mjs', ...WORK), 2, /^--exec: "cat" is not allowed; allowed: without --handler$/],
];

const FLAGS: readonly Case[] = [
  [['run', '--nonsense', '--other'], 2, /^run: unknown option '--nonsense'; piecework run --help/],
  [['run', '--inptu', 'x'], 2, /^run: unknown option '--inptu' \(did you mean --input\?\); /],
  [
    ['run', '--resume-failed'],
    2,
    /^run: unknown option '--resume-failed' \(see --retry-failed\); /,
  ],
  [['run', '-q'], 2, /^run: unknown option '-q' \(items need no quotes; see --log-level/],
  [
    ['run', 'echo', ':::', 'a'],
    2,
    /^run: the command is given by --exec, .* piecework run --input - --exec 'echo \{\}' --out -$/,
  ],
  [['run', '--halt', 'now'], 2, /^run: unknown option '--halt' \(see --on-exceeded cancel and /],
  [['list', '--nonsense'], 2, /^list: unknown option '--nonsense'; piecework list --help lists/],
  [['--nonsense'], 2, /^unknown option '--nonsense'; piecework --help lists what there is$/],
  [['runn'], 2, /^unknown command 'runn' \(did you mean run\?\); piecework --help lists/],
  [['status'], 2, /^status: missing required argument 'id'; piecework status --help/],
  [['status', 'a', 'b'], 2, /^status: too many arguments: 2 given, 1 expected; /],
  [['run', '--limit'], 2, /^run: option '--limit <n>' argument missing; /],
  [run('--limit', 'many'), 2, /^--limit: "many" is not allowed; .* or none for no limit$/],
  [['update', 'x', '--limit', '0'], 2, /^--limit: 0 is not allowed; .* or none for no limit$/],
  [['update', 'x'], 2, /^--limit, --priority, --tolerated-failures is missing: at least one/],
  [['pause'], 2, /^id is missing: the id of a request, or --queue-wide$/],
  [
    ['pause', 'x', '--queue-wide'],
    2,
    /^--queue-wide: true is not allowed; allowed: without the id/,
  ],
  [['results', 'a b'], 2, /^id: "a b" is not allowed; /],
  [
    ['failures', 'x', '--group', '--error', 'E'],
    2,
    /^--error: "E" is not allowed; allowed: without/,
  ],
  [['redrive', 'x', '--index', 'a'], 2, /^--index: "a" is not allowed; allowed: indexes like/],
  [run('--backoff', '{x'), 2, /^--backoff: "\{x" is not allowed; /],
  [run('--run-at', 'tomorrow'), 2, /^--run-at: "tomorrow" is not allowed; /],
  [
    ['doctor', '--users', 'worker=few,producer=p,worker=nobody'],
    2,
    /^--users: .*role=user with commas between them, each role once; roles: /,
  ],
  [['complete', 'nosh'], 2, /^shell: "nosh" is not allowed; allowed: bash, /],
  [['status', 'nobody'], 1, /^no request nobody is known: /],
];

const PLACES: readonly Case[] = [
  [run('--out', '.'), 2, /^--out: "\." is not allowed; .*it is a folder\)$/],
  [run('--out', 'no/such/out'), 2, /^--out: .*its folder does not exist\)$/],
  [run('--out', 'in.txt/out'), 2, /^--out: .*its folder is not a folder\)$/],
  [run('--out', 'new.out', '--out-dir', '.'), 2, /^--out-dir: "\." is not allowed; /],
  [
    run('--out', 'a.out', '--joblog', 'a.out'),
    2,
    /^--joblog: .*allowed: another file than that of --out$/,
  ],
  [['results', 'nobody', '--out', 'new.out'], 1, /^no request nobody is known: /],
  [['results', 'nobody', '--out', 'kept.txt'], 1, /^no request nobody is known: /],
  [['submit', '--input', 'in.txt', '--out', 'new.out'], 2, /^--out: .*together with --wait$/],
  [
    ['run', ...WORK],
    2,
    /^--input is missing: a file, a folder or -( for standard input: --input -)?$/,
  ],
  [['run', '--input', 'nowhere', ...WORK], 2, /^--input: "nowhere" is not allowed; /],
  [
    ['run', '--input', '.', '--split', 'lines', ...WORK],
    2,
    /^--split: .*as the input is a folder$/,
  ],
  [
    ['run', '--input', '-', '--split', 'files', ...WORK],
    2,
    /^--split: .*as standard input is not a file$/,
  ],
  [run('--out', 'in.txt'), 2, /^--out: .*another file than that of --input$/],
  [
    ['submit', '--input', 'bad.ndjson', '--split', 'ndjson'],
    1,
    /^bad\.ndjson: line 1 is not JSON: .*; correct it/,
  ],
  [['submit', '--input', '/proc/self/mem'], 1, /^\/proc\/self\/mem cannot be read: EIO/],
];

let redis: Awaited<ReturnType<typeof startOwnRedis>>;
let tls: TlsServer;
let probe: Redis;
let folder: string;
beforeAll(async () => {
  redis = await startOwnRedis();
  tls = await startTlsServer();
  probe = new Redis(redis.url);
  folder = await mkdtemp(join(tmpdir(), 'piecework-messages-'));
  await mkdir(join(folder, 'commonjs'));
  for (const [name, text] of Object.entries(FILES)) await writeFile(join(folder, name), text);
});
afterAll(async () => {
  probe?.disconnect();
  await redis?.close();
  await tls?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** The files of the folder with what is in them. */
async function onDisk(): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) found[path.slice(folder.length + 1)] = await readFile(path, 'utf8');
  }
  return found;
}

async function refused([args, code, says]: Case, url = redis.url): Promise<void> {
  const what = args.join(' ');
  const plain = await cli(args, { redis: url, cwd: folder });
  expect(plain.stdout, what).toBe('');
  // One line, which begins like this: no stack, no second copy.
  expect(plain.stderr, what).toMatch(/^piecework: [^\n]+\n$/);
  const said = plain.stderr.slice('piecework: '.length, -1);
  expect(said, what).toMatch(says);
  expect(said, what).not.toMatch(/ {4}at |node:internal|undefined/);
  expect(plain.code, what).toBe(code);
  expect(await onDisk(), what).toEqual(FILES);
}

const title = ([args]: Case): [string] => [args.join(' ')];

describe.each([
  ['a handler that cannot be used', HANDLERS],
  ['words that are wrong', FLAGS],
  ['places that cannot be read or written', PLACES],
])('%s', (_, cases) => {
  test.each(cases.map((one) => [...title(one), one] as const))('%s', async (_title, one) => {
    await refused(one);
    expect(await probe.keys('*')).toEqual([]);
  });
});

describe('a server that cannot be used', () => {
  const list = ['list'];

  test('is not there, or is not known', async () => {
    const port = await freePort();
    await refused(
      [list, 1, /ECONNREFUSED .*: nothing listens there; /],
      `redis://127.0.0.1:${port}`,
    );
    await refused([list, 1, /ENOENT .*: there is no such socket; /], '/no/such/socket');
    const wrong = /^REDIS_URL: .* allowed: a Redis URL such as redis:\/\/localhost:6379/;
    await refused([list, 2, wrong], 'http://127.0.0.1');
    await refused([run(), 2, wrong], 'localhost:6379');
    await refused([list, 2, /^--redis is missing: .* piecework dev starts a Redis to try$/], '');
  });

  test('speaks TLS and is asked without, or the reverse', async () => {
    const at = `127.0.0.1:${tls.port}`;
    const plain = new URL(tls.plainUrl).host;
    await refused([list, 1, /speaks TLS there: name it by rediss:\/\//], `redis://${at}`);
    await refused([list, 1, /speaks TLS there/], `redis://${at},redis://${at}`);
    await refused(
      [list, 1, /does not speak TLS there: name it by redis:\/\//],
      `rediss://${plain}`,
    );
    await refused([run(), 1, /speaks TLS there: name it by rediss:\/\//], `redis://${at}`);
    await refused([list, 1, /self-signed certificate \(name its authority/], `rediss://${at}`);
  });

  test('wants a password, or another one', async () => {
    await probe.config('SET', 'requirepass', 'sesame');
    try {
      await refused([list, 1, /NOAUTH .*redis:\/\/:PASSWORD@HOST/]);
      const wrong = redis.url.replace('//', '//:wrong@');
      await refused([list, 1, /WRONGPASS .*Correct user and password/], wrong);
    } finally {
      await probe.config('SET', 'requirepass', '');
    }
  });

  test('refuses a right: it is named', async () => {
    const lacking: readonly (readonly [rules: string[], args: string[], says: RegExp])[] = [
      [['+@all', '-info', '~*', '&*'], list, /may not run info: its ACL needs \+info /],
      [['+@all', '-time', '~*', '&*'], ['submit', '--input', 'in.txt'], /needs \+time /],
      [['+@all', '-evalsha', '~*', '&*'], ['submit', '--input', 'in.txt'], /needs \+evalsha /],
      [
        ['+@all', '~other', '&*'],
        ['submit', '--input', 'in.txt'],
        /may not use .*key.*needs ~KEY /,
      ],
    ];
    for (const [rules, args, says] of lacking) {
      await probe.call('ACL', 'SETUSER', 'lacking', 'reset', 'on', '>p', ...rules);
      await refused([args, 1, says], redis.url.replace('//', '//lacking:p@'));
    }
    await probe.call('ACL', 'DELUSER', 'lacking');
    expect(await probe.keys('*')).toEqual([]);
  });
});

test('a worker without the rights to work says so once, as one line of its log', async () => {
  await probe.call('ACL', 'SETUSER', 'few', 'reset', 'on', '>p', '+@connection', '+info', '~*');
  const few = redis.url.replace('//', '//few:p@');
  for (const processes of [[], ['--processes', '2']]) {
    const args = ['worker', ...WORK, ...processes, '--log-format', 'json'];
    const { code, stdout, stderr } = await cli(args, { redis: few, cwd: folder });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    const [line, ...more] = stderr.trim().split('\n');
    expect(more).toEqual([]);
    expect(JSON.parse(line ?? '')).toMatchObject({
      level: 60,
      msg: expect.stringMatching(/may not run .*its ACL needs \+/),
    });
  }
  await probe.call('ACL', 'DELUSER', 'few');
});

test('with --json it is one line of JSON, with the code', async () => {
  const codes: readonly (readonly [args: string[], exit: number, code: string])[] = [
    [['list', '--nonsense'], 2, 'INVALID_OPTION'],
    [handled('syntax.mjs'), 2, 'HANDLER'],
    [handled('throws.mjs'), 1, 'HANDLER_THREW'],
    [['status', 'nobody'], 1, 'NOT_FOUND'],
    [['submit', '--input', '/proc/self/mem'], 1, 'INPUT'],
  ];
  for (const [args, exit, code] of codes) {
    const ended = await cli([...args, '--json'], { redis: redis.url, cwd: folder });
    expect(ended.stdout).toBe('');
    const { error } = JSON.parse(ended.stderr) as { error: { code: string; message: string } };
    expect(error, args.join(' ')).toMatchObject({ code, message: expect.not.stringMatching(/\n/) });
    expect(ended.code, args.join(' ')).toBe(exit);
  }
});

test('an error that names a file is one line, whatever the name', async () => {
  const name = 'a\nb.ndjson';
  await writeFile(join(folder, name), '{bad\n');
  const split = ['--split', 'ndjson'];
  for (const args of [
    ['submit', '--input', name, ...split],
    ['submit', '--input', `no-${name}`],
    ['submit', '--input', join(folder, name, 'c')],
    ['run', '--input', name, ...split, '--exec', 'cat'],
    ['run', '--input', 'in.txt', '--exec', 'cat', '--out', join(folder, name, 'c')],
    ['run', '--input', 'in.txt', '--handler', `${name}.mjs`],
    ['dev', '--dir', join(folder, name)],
    ['dev', '--dir', join(folder, name, 'c')],
  ]) {
    const { code, stderr } = await cli(args, { redis: redis.url, cwd: folder });
    expect(code, args.join(' ')).toBeGreaterThan(0);
    expect(stderr, args.join(' ')).toMatch(/^piecework: [^\n]*a\\nb\.ndjson[^\n]*\n$/);
  }
});

test('a wrong line of the input is reported once, whatever the number of processes', async () => {
  const args = ['run', '--input', 'bad.ndjson', '--split', 'ndjson', ...WORK, '--processes', '3'];
  const { code, stderr } = await cli(args, { redis: redis.url, cwd: folder });
  expect(code).toBe(1);
  expect(stderr.split('\n')).toEqual([
    expect.stringMatching(/^piecework: bad\.ndjson: line 1 is not JSON: .*; correct it, or use/),
    '',
  ]);
  expect(stderr.match(/is not JSON/g)).toHaveLength(1);
});

test.each([
  [['run', '--exec', 'cat', '--out-dir', 'one', '--out-dir=two'], '--out-dir'],
  [['run', '--exec', 'cat', '-j', '1', '--jobs', '2'], '--jobs'],
  [['submit', '--limit', 'none', '--limit', '2'], '--limit'],
  [['status', 'x', '--redis', 'redis://:secret@h', '--redis', 'redis://:secret@i'], '--redis'],
])('%j: a flag that takes one value and is given twice is refused', async (args, flag) => {
  const refused = await cli(args);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toBe(`piecework: ${flag} is given twice: give it one value\n`);
});

test('the help has the defaults of its command', async () => {
  const shown = async (command: string) =>
    (await cli([command, '--help'])).stdout.replace(/\s+/g, ' ');
  const [ofRun, ofWorker] = [await shown('run'), await shown('worker')];
  expect(ofRun).toMatch(/--queue <name> name of the queue \(default: run-ID, or a new one\)/);
  expect(ofWorker).toMatch(/--queue <name> name of the queue \(default: req\)/);
  expect(ofRun).toMatch(
    /--results <how> keep the results in Redis, or discard them \(default: keep with --out, --out-dir or --joblog, else discard\)/,
  );
  expect(ofRun).toMatch(
    /--log-level <level> lowest level that is logged on standard error \(default: warn\)/,
  );
  expect(ofWorker).toMatch(
    /--log-level <level> lowest level that is logged on standard error \(default: info\)/,
  );
});

test('an error for piped items says how to read them', async () => {
  const line = `printf a | ${process.execPath} ${PROGRAM} run --exec cat`;
  const { stderr } = spawnSync('/bin/sh', ['-c', line], { encoding: 'utf8' });
  expect(stderr.replace(/\s+/g, ' ')).toContain('- for standard input: --input - ');
});
