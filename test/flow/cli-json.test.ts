import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect } from 'vitest';
import { openInput } from '../../packages/cli/dist/input/input.js';
import { test } from '../support/command-line.js';
import { expectRefused } from '../support/refused-input.js';

/** What JSON.parse and JSON.stringify would not give back. */
const LINES = [
  '{"id": 3889108265204450030, "price": 1.10}',
  '{"id":1,"id":2,"text":"\\u00e9 \\ud800"}',
  '[1.0,{"big": 12345678901234567890}]',
];
const NDJSON = `${LINES.join('\n')}\n`;

describe('a program', () => {
  test.for<[string, string[], string]>([
    ['on standard input', ['--exec', 'cat; echo'], NDJSON],
    ['as an argument', ['--exec', "printf '%s\n' {}"], NDJSON],
    ['of a batch, one on each line', ['--batch', '2', '--exec', 'cat'], NDJSON],
    ['of a batch, as arguments', ['--batch', '9', '--exec', "printf '%s\n' {}"], NDJSON],
    [
      'of a batch, as JSON',
      ['--batch', '9', '--exec', 'cat; echo', '--exec-input', 'json'],
      `[${LINES.join(',')}]\n`,
    ],
    [
      'when it keeps running',
      ['--persistent', '--exec', `sed -u 's/.*"payload":/{"value":/'`],
      NDJSON,
    ],
    ['and its output is JSON', ['--exec-output', 'json', '--exec', 'cat'], NDJSON],
  ])(
    'gets items byte for byte %s, and --out has them so',
    async ([, args, wanted], { commandLine }) => {
      const input = await commandLine.file('a.ndjson', NDJSON);
      const out = ['--split', 'ndjson', '--out', '-', '--format', 'text'];
      const ended = await commandLine.run('run', '--input', input, ...args, ...out);
      expect(ended.code, ended.stderr).toBe(0);
      expect(ended.stdout.replace(/\n+/g, '\n')).toBe(wanted);
    },
  );

  test('gets a field as the item has it, and the last one of a name that occurs twice', async ({
    commandLine: { run, file },
  }) => {
    const input = await file('a.json', `[${LINES[0]}, {"price":0,"id":1,"price":{"x": 2.50}}]`);
    const args = ['--input', input, '--split', 'json', '--exec-fields', 'id,price'];
    const ended = await run(
      ...['run', ...args, '--exec', 'echo {id} {price}', '--out', '-', '--format', 'text'],
    );
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stdout).toBe('3889108265204450030 1.10\n1 {"x": 2.50}\n');
  });

  test('that prints JSON of several lines has it as its result, on one line in --out', async ({
    commandLine: { run, file },
  }) => {
    const input = await file('a', 'x\n');
    const exec = `printf '{\\n  "n": 1.10,\\n  "n": 2\\n}\\n'`;
    const args = ['run', '--input', input, '--exec', exec, '--exec-output', 'json', '--out', '-'];
    const ended = await run(...args);
    expect(ended.stdout).toBe('{"index":0,"status":"succeeded","value":{"n": 1.10,"n": 2}}\n');
  });

  test('does not get a string that UTF-8 cannot hold', async ({ commandLine: { run, file } }) => {
    const input = await file('a.ndjson', '"\\ud800"\n');
    const args = ['--input', input, '--split', 'ndjson', '--exec', 'cat', '--out', '-'];
    const ended = await run('run', ...args);
    expect(ended.code).toBe(1);
    expect(ended.stdout).toContain('the item has half of a surrogate pair');
  });
});

test('failures have the items byte for byte, and their file is an input again', async ({
  commandLine: { run, file, folder },
}) => {
  const input = await file('a.ndjson', NDJSON);
  const args = ['--input', input, '--split', 'ndjson', '--exec', 'exit 3', '--id', 'json-failures'];
  const dir = `${folder}/dir`;
  expect((await run('run', ...args, '--out-dir', dir)).code).toBe(1);
  const kept = await readFile(`${dir}/errors.ndjson`, 'utf8');
  for (const line of LINES) expect(kept).toContain(`"payload":${line}}\n`);
  const failures = (...more: string[]) => run('failures', 'json-failures', '--payload', ...more);
  for (const line of LINES) {
    expect((await failures('--json')).stdout).toContain(`"payload":${line}}\n`);
    expect((await failures()).stdout).toContain(`  ${line}\n`);
  }
  expect((await failures('--group', '--json')).stdout).toContain(`"payload":${LINES[0]}}}\n`);
  expect(await readFile(`${dir}/failed.ndjson`, 'utf8')).toBe(NDJSON);
  await run('drop', 'json-failures');
});

test('a run of a handler says in which line it gets an item otherwise, and a dry run does', async ({
  commandLine: { run, file },
}) => {
  const input = await file('a.ndjson', `{"id":1}\n${NDJSON}`);
  const handler = await file('h.mjs', 'export default ({ id }) => id;');
  const args = ['run', '--input', input, '--split', 'ndjson'];
  const said = `${input}: line 2: a handler gets 3889108265204450000 instead of 3889108265204450030`;
  const ended = await run(...args, '--handler', handler, '--out', '-');
  expect(ended.stderr).toContain(said);
  expect(ended.stderr.split('a handler gets')).toHaveLength(2);
  expect(ended.stdout).toContain('"value":3889108265204450000}');
  const dry = await run(...args, '--handler', handler, '--dry-run');
  expect(dry.stderr).toContain(said);
  expect(dry.stdout).toContain(`{"index":1,"payload":${LINES[0]}}\n`);
  const exec = await run(...args, '--exec', 'cat', '--dry-run');
  expect(exec.stderr).not.toContain('a handler gets');
});

async function itemsOf(path: string, split: string, jsonPath?: string): Promise<string[]> {
  const values = {
    input: [path],
    split,
    binary: false,
    allowEmpty: true,
    ...(jsonPath ? { jsonPath } : {}),
  };
  using items = await openInput(values);
  const found: string[] = [];
  for await (const item of items) found.push((item as { text: string }).text);
  return found;
}

const DEEP = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
const READ: readonly [string, string, string, string[], string?][] = [
  ['an array over several lines', 'json', '\ufeff[\n {"a":1.0},\n 2\n]\n', ['{"a":1.0}', '2']],
  ['one item that is an array, behind an empty line', 'ndjson', '\n[{"a":1}]\n', ['[{"a":1}]']],
  ['an array in one line', 'json', '[{"a":"]"},"},"]', ['{"a":"]"}', '"},"']],
  [
    'values one after the other',
    'json',
    '{\n"a":1\n}\n{"b":2}"x"3',
    ['{\n"a":1\n}', '{"b":2}', '"x"', '3'],
  ],
  ['arrays one after the other', 'json', '[1,2]\n[3]', ['1', '2', '3']],
  ['an array in objects', 'json', '{"m":[1],"d":{"i":[{"i":1}]},"z":2}', ['{"i":1}'], 'd.i'],
  ['nothing', 'json', ' \n', []],
  ['an empty array', 'json', '[ ]', []],
  [
    'names of Object.prototype',
    'json',
    '{"__proto__":[{"__proto__":1}]}',
    ['{"__proto__":1}'],
    '__proto__',
  ],
  ['100,000 levels', 'json', `[${DEEP}]`, [DEEP]],
  ['100,000 levels', 'ndjson', `${DEEP}\n1`, [DEEP, '1']],
  ['lines that are arrays', 'ndjson', '[{"a":1}]\n[2]\n', ['[{"a":1}]', '[2]']],
];
const REFUSED: readonly [string, string, string, string, string?][] = [
  [
    'an array that is cut off',
    'json',
    '[1,\n{"a":2',
    'the input ends in element 2 (line 2), behind element 1',
  ],
  [
    'an array that is not closed',
    'json',
    '[1,\n2\n',
    'the input ends in the array that begins in line 1',
  ],
  [
    'a comma behind the last element',
    'json',
    '[1,\n2,\n]',
    'a comma at the end of the array that begins in line 1, behind element 2 (line 2)',
  ],
  ['a comma behind the last member', 'json', '[1,\n{"a":1,}]', 'element 2 (line 2) is not JSON: '],
  ['no comma', 'json', '[{"a":1}\n{"b":2}]', 'unexpected { in line 2, behind element 1 (line 1)'],
  [
    'a comment with quotes',
    'json',
    '[1, // it\'s "one\n2]',
    'element 2 (line 1) is not JSON: unexpected / in line 1',
  ],
  [
    'NaN',
    'json',
    '[\n{"a":1,\n"b":NaN}]',
    'element 1 (line 2) is not JSON: unexpected N in line 3',
  ],
  ['a bracket too many', 'json', '[1]]', 'value 2 (line 1) is not JSON: unexpected ] in line 1'],
  [
    'a byte order mark within',
    'json',
    '[1]\n\ufeff[2]',
    'value 2 (line 2) is not JSON: unexpected \ufeff',
  ],
  [
    'an element of 2 MiB',
    'json',
    `[1,"${'x'.repeat(2_097_152)}"]`,
    'element 2 (line 1) has more than 1048576 bytes: --max-payload-bytes',
  ],
  ['brackets without end', 'json', '['.repeat(100_000), 'the input ends in element 1 (line 1)'],
  [
    'no such path',
    'json',
    '{"data":{"x":[1]}}',
    'the object that begins in line 1 has no data.items: see --json-path',
    'data.items',
  ],
  [
    'a path through an array',
    'json',
    '{"data":[1]}',
    'line 1 has no object there: --json-path data.items',
    'data.items',
  ],
  [
    'a path that is there twice',
    'json',
    '{"d":[1],\n"d":[2]}',
    'has "d" twice, behind element 1 (line 1)',
    'd',
  ],
  [
    'an array in one line',
    'ndjson',
    '[{"a":1},{"a":2}]\n\n',
    'line 1 is an array, and there are no other lines: --split json makes each of its elements an item',
  ],
  [
    'an array over lines',
    'ndjson',
    '[\n1\n]',
    'or use --split json for an array or values of several lines',
  ],
  [
    'an object over lines',
    'ndjson',
    '{\n"a":1\n}',
    'or use --split json for an array or values of several lines',
  ],
  [
    'an array in one long line',
    'ndjson',
    `["${'x'.repeat(2_097_152)}"]`,
    'an array is read by --split json; --max-payload-bytes',
  ],
];

describe('an input of JSON', () => {
  test.for(READ)(
    'may be %s (--split %s)',
    async ([, split, content, wanted, path], { commandLine }) => {
      expect(await itemsOf(await commandLine.file('in', content), split, path)).toEqual(wanted);
    },
  );

  test.for(REFUSED)(
    'is refused with its place: %s (--split %s)',
    async ([, split, content, why, path], { commandLine }) => {
      const input = await commandLine.file('in', content);
      await expectRefused(itemsOf(input, split, path), input, why);
    },
  );

  test('that is an array in its first line has that item, even if the second line is wrong', async ({
    commandLine: { file },
  }) => {
    const input = await file('in', '[1]\n{"a":');
    const found: unknown[] = [];
    const reading = async () => {
      using items = await openInput({ input: [input], split: 'ndjson', binary: false });
      for await (const item of items) found.push(item);
    };
    await expect(reading()).rejects.toThrow('line 2 is not JSON: ');
    expect(found).toMatchObject([{ text: '[1]' }]);
  });

  test('of 20 MB in one line is read in little memory', async ({ commandLine: { file } }) => {
    const element = JSON.stringify({ id: 1, text: 'x'.repeat(1_000) });
    const input = await file('big.json', `{"a":[1],"data":[${Array(20_000).fill(element)}]}`);
    const module = new URL('../../packages/cli/dist/input/input.js', import.meta.url);
    const program = `
      const { openInput } = await import(${JSON.stringify(module)});
      const values = { input: [${JSON.stringify(input)}], split: 'json', jsonPath: 'data', binary: false };
      let count = 0;
      for await (const item of await openInput(values)) if (item.text.length === ${element.length}) count += 1;
      console.log(count);`;
    const args = ['--max-old-space-size=18', '--input-type=module', '--eval', program];
    const { stdout, stderr } = spawnSync(process.execPath, args, {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      encoding: 'utf8',
    });
    expect(stdout, stderr).toBe('20000\n');
  });

  test('is wrong usage with a path and another split', async ({ commandLine: { run, file } }) => {
    const input = await file('in', '1\n');
    const args = ['run', '--input', input, '--json-path', 'a', '--exec', 'cat'];
    const ended = await run(...args);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain('together with --split json');
  });
});
