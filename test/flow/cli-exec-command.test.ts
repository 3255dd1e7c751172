import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { describe, expect } from 'vitest';
import { startCli } from '../support/cli.js';
import { jsonLines, test } from '../support/command-line.js';

const ITEMS = [
  'two words',
  '  blanks  ',
  '',
  "it's",
  '"quoted"',
  '$(touch pwned)',
  '`touch pwned`',
  '; touch pwned; #',
  "'; touch pwned; '",
  '"; touch pwned; "',
  '*',
  '~',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is for the shell
  '$HOME ${HOME} \\n \\\\ \\',
  'two\nlines\n',
  '-n',
  '{} {index}',
  '}"$(touch pwned)"',
];

describe('{} in a command', () => {
  test('is the item as one word, whatever it contains, and the shell runs nothing of it', async ({
    commandLine: { run, file, folder },
  }) => {
    const input = await file('items.ndjson', ITEMS.map((item) => JSON.stringify(item)).join('\n'));
    const show = `node -e 'console.log(JSON.stringify(process.argv.slice(1)))' --`;
    const command = `cd '${folder}'; # it's {}
      in_function() { ${show} pre{}post "in {} quotes" "$(printf %s. {})" "$(printf %s. "{}")" '{ }' \\{\\} {index}; }
      in_function of its own`;
    const ended = await run(
      ...['run', '--input', input, '--split', 'ndjson', '--exec', command],
      ...['--exec-output', 'json', '--out', '-'],
    );
    expect(ended.code, ended.stderr).toBe(0);
    expect(jsonLines(ended.stdout).map(({ value }) => value)).toEqual(
      ITEMS.map((item, i) => [
        ...[`pre${item}post`, `in ${item} quotes`, `${item}.`, `${item}.`],
        ...['{ }', '{}', String(i)],
      ]),
    );
    expect(existsSync(`${folder}/pwned`)).toBe(false);
    expect(existsSync('pwned')).toBe(false);
  });

  test('leaves standard input empty; items that are not strings are JSON, and a batch is one word for each item', async ({
    commandLine: { run, file },
  }) => {
    const input = await file('items', 'a b\nc\nd\n');
    const args = ['--input', input, '--batch', '2', '--out', '-', '--format', 'text'];
    const words = await run('run', ...args, '--exec', 'printf "<%s>" {}; cat');
    expect(words.stdout, words.stderr).toBe('<a b><c>\n<d>\n');
    const json = await run('run', ...args, '--exec-input', 'json', '--exec', 'printf "<%s>" {}');
    expect(json.stdout, json.stderr).toBe('<["a b","c"]>\n<["d"]>\n');
  });

  test('fails when the item cannot be an argument, and says what to do instead', async ({
    commandLine: { run, file },
  }) => {
    const input = await file('items', `a\0b\n${'x'.repeat(200_000)}\n`);
    const ended = await run('run', '--input', input, '--exec', 'echo {}', '--out', '-');
    expect(ended.code).toBe(1);
    const [nul, long] = jsonLines<{ error: { message: string } }>(ended.stdout);
    expect(nul?.error.message).toMatch(/^a NUL cannot be in an argument: leave \{\} out/);
    expect(long?.error.message).toMatch(/^the item has 200000 bytes, too many for an argument/);
    const binary = await run(
      'run',
      '--input',
      input,
      '--binary',
      '--exec',
      'echo {}',
      '--out',
      '-',
    );
    expect(binary.stdout).toContain('bytes cannot be an argument');
  });
});

test('output that is not UTF-8 stays as it is', async ({ commandLine: { run, file } }) => {
  const input = await file('items', 'one\n');
  const command = `printf '\\377\\376\\n'`;
  const ended = await run('run', '--input', input, '--exec', command, '--out', '-');
  expect(jsonLines(ended.stdout)).toMatchObject([{ value: { $binary: '//4K' } }]);
});

test('standard error of programs is shown as it comes, each line behind its index', async ({
  commandLine: { run, file, redis, queue },
}) => {
  const input = await file('items', 'a\nb\n');
  const command = `printf 'on %s\\n10%%\\r20%%\\r\\n\\033[31mred\\033[0m' {} >&2`;
  const args = ['run', '--input', input, '--exec', command, '--queue', queue];
  const { finished, said } = startCli([...args, '--exec-stderr', 'index'], { redis });
  expect((await finished).code).toBe(0);
  const lines = said.stderr.split('\n');
  for (const line of ['[0] on a', '[1] on b', '[0] 20%', '[0] red']) expect(lines).toContain(line);
  const lived = await run(
    ...[
      'run',
      '--input',
      input,
      '--persistent',
      '--exec-stderr',
      'request',
      '--id',
      'stderr-shown',
    ],
    ...['--exec', `while read -r line; do echo "got it" >&2; echo '{"value":1}'; done`],
  );
  expect(lived.stderr).toMatch(/^\[stderr-shown [01]\] got it$/m);
  const kept = await run('run', '--input', input, '--exec', 'echo quiet >&2');
  expect(kept.stderr).not.toContain('quiet');
});

test('what a handler prints in a run is on standard error', async ({
  commandLine: { run, file },
}) => {
  const handler = await file('h.mjs', 'export default (item) => { console.log("saw", item); };');
  const input = await file('items', 'a\nb\n');
  const ended = await run('run', '--input', input, '--handler', handler, '--out', '-');
  expect(ended.code, ended.stderr).toBe(0);
  expect(ended.stdout).not.toContain('saw');
  expect(ended.stderr).toMatch(/^saw a$/m);
  expect(ended.stderr).toMatch(/^saw b$/m);
});

describe('{column} in a command', () => {
  const CSV = 'name,First Name,n\n"ann; touch pwned",A B,1\n"it\'s ""q""",$(touch pwned),2\n';

  test('is one field as one word; other braces stay', async ({
    commandLine: { run, file, folder },
  }) => {
    const input = await file('a.csv', CSV);
    const command = `cd '${folder}'; n=x; { printf "<%s>" {name} "x {First Name}" \${n} {n}{index} "$(printf %s {name})" {1}; cat; } | awk '{print}'`;
    const args = ['--split', 'csv', '--exec', command, '--out', '-', '--format', 'text'];
    const ended = await run('run', '--input', input, ...args);
    expect(ended.stdout, ended.stderr).toBe(
      '<ann; touch pwned><x A B><x><10><ann; touch pwned><{1}>\n' +
        `<it's "q"><x $(touch pwned)><x><21><it's "q"><{1}>\n`,
    );
    expect(existsSync(`${folder}/pwned`)).toBe(false);
    const batch = await run(
      ...['run', '--input', input, '--split', 'csv', '--batch', '2', '--out', '-'],
      ...['--exec', 'printf "<%s>" {n}', '--format', 'text'],
    );
    expect(batch.stdout, batch.stderr).toBe('<1><2>\n');
  });

  test('is a field of an object with --exec-fields, in a dry run too', async ({
    commandLine: { run, file },
  }) => {
    const input = await file('a.ndjson', '{"url":"a b","n":[1]}\n{"n":2}\n');
    const args = ['--input', input, '--split', 'ndjson', '--exec', 'printf "<%s>" {url} {n}'];
    const literal = await run('run', ...args, '--dry-run');
    expect(literal.stderr).toContain('{url}, {n} stays as it is: --exec-fields url,n makes it');
    const ended = await run('run', ...args, '--exec-fields', 'url,n', '--out', '-');
    const [first, second] = jsonLines<{ value?: string; error?: { message: string } }>(
      ended.stdout,
    );
    expect(first?.value).toBe('<a b><[1]>');
    expect(second?.error?.message).toBe('the item has no field for {url}');
  });

  test('of GNU parallel: the run says that it stays unchanged, unless it means something else', async ({
    commandLine: { run, file },
  }) => {
    const input = await file('a.txt', 'a/b.txt\n');
    const saidOf = async (exec: string) => {
      const ended = await run('run', '--input', input, '--exec', exec, '--dry-run');
      return ended.stderr.replace(/\s+/g, ' ');
    };
    expect(await saidOf('echo {/} "{.}" {#} {%} {1} {}')).toContain(
      '--exec: {/}, {.}, {#}, {%}, {1} stay as they are: here {} is the item',
    );
    expect(await saidOf("grep -E 'x{2}' {} | grep -E ab{3} | tr '{1}' x")).not.toContain('stay');
  });

  test('in single quotes is refused, with a way out', async ({ commandLine: { run, file } }) => {
    const input = await file('a.txt', 'a\n');
    const { code, stderr } = await run('run', '--input', input, '--exec', "jq -n '{}'");
    expect(code).toBe(2);
    expect(stderr.replace(/\s+/g, ' ')).toContain('no {} in single quotes: write "$1" there');
  });

  test.for<[string, string, string]>([
    ['of no such name', 'echo {nam}', 'no {nam}, as the columns are name, First Name, n'],
    ['in single quotes', "echo '{name}'", 'no {name} in single quotes'],
  ])(
    '%s is refused before anything runs',
    async ([, exec, why], { commandLine: { run, file } }) => {
      const input = await file('a.csv', CSV);
      const out = await file('out', 'kept');
      for (const dry of [[], ['--dry-run']]) {
        const args = ['--input', input, '--split', 'csv', '--exec', exec, '--out', out, ...dry];
        const ended = await run('run', ...args);
        expect(ended.code).toBe(2);
        expect(ended.stderr.replace(/\s+/g, ' ')).toContain(why);
      }
      expect(await readFile(out, 'utf8')).toBe('kept');
    },
  );

  test('that is missing in a later file ends the run with an error that names the file', async ({
    commandLine: { run, file },
  }) => {
    const inputs = [await file('a.csv', CSV), await file('b.csv', 'other,n\n1,2\n')];
    const args = ['--input', ...inputs, '--split', 'csv', '--exec', 'echo {name}'];
    const ended = await run('run', ...args);
    expect(ended.code).toBe(1);
    expect(ended.stderr.replace(/\s+/g, ' ')).toMatch(
      /b\.csv: the header has no "name", which --exec uses/,
    );
  });
});
