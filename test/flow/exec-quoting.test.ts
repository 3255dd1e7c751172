/* biome-ignore-all lint/suspicious/noTemplateCurlyInString: they are for the shell. */
import { spawnSync } from 'node:child_process';
import { jsonText } from '@piecework/protocol/contract';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ExecCommand } from '../../packages/cli/dist/exec/command.js';

/*
 * Where `{}` stands in a command, against real shells. The rule: the command does with the item what it does with a
 * harmless word in the same place, or it is refused.
 */

const SHELLS = ['dash', 'bash --norc --posix', 'bash --norc'];

const json = (value: unknown) => jsonText(JSON.stringify(value));

/** No item contains it, no shell finds anything special in it. */
const WORD = '.QqWORDqQ';

function output(shell: string, command: string, env: Readonly<Record<string, string>> = {}) {
  const [program = '', ...flags] = shell.split(' ');
  const { PATH = '' } = process.env;
  const { status, stdout } = spawnSync(program, [...flags, '-c', command], {
    env: { PATH, LC_ALL: 'C.UTF-8', ...env },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: '/bin',
    timeout: 60_000,
  });
  return { status, stdout };
}

/** What the shell prints with the item; undefined: the command is refused. */
function printed(shell: string, command: string, item: string): string | undefined {
  let made: ExecCommand;
  try {
    made = new ExecCommand(command);
  } catch (error) {
    expect(error).toMatchObject({ code: 'INVALID_OPTION', field: '--exec' });
    return undefined;
  }
  const { command: line, env } = made.invocation(json(item), 7);
  return output(shell, line, env).stdout;
}

const ITEMS = [
  ...[
    '*',
    '?',
    '[a-z]*',
    '~',
    'a  b',
    ' a',
    '',
    "it's",
    '"',
    '\\',
    '\\n',
    '$HOME',
    '$(echo pwned)',
  ],
  ...[
    '`echo pwned`',
    '; echo pwned',
    '-n',
    '--',
    '{}',
    '{index}',
    'a\nb',
    '${x}',
    '#',
    'é 🙂',
    '!!',
  ],
  ...[
    'a[$(echo pwned)]',
    ')',
    'esac',
    'EOF',
    '\t',
    "'; echo pwned; '",
    '"; echo pwned; "',
    '%s',
    '&',
    ']',
    'w',
    '!a',
  ],
];

const item = fc.oneof(
  fc.constantFrom(...ITEMS),
  fc.array(fc.constantFrom(...ITEMS), { maxLength: 4 }).map((parts) => parts.join('')),
  fc.string({ unit: 'binary', maxLength: 8 }).map((text) => text.replaceAll('\0', '')),
);

/** Commands of nested words. Some are not valid; those count only if a shell runs them. */
const { command } = fc.letrec<{ word: string; text: string; command: string; list: string }>(
  (tie) => {
    const plain = fc.constantFrom(
      'a',
      'x',
      '-',
      '.',
      '\\ ',
      '\\"',
      '\\#',
      '#',
      '=',
      ',',
      '$1',
      '~',
      '[',
      ']',
      '[!',
    );
    const around = (before: string, inner: fc.Arbitrary<string>, after: string) =>
      inner.map((text) => `${before}${text}${after}`);
    const hole = fc.constant('{}');
    const nested = fc.oneof(
      around('$(', tie('command'), ')'),
      around('$( ', tie('command'), '\n)'),
      around('`', tie('command'), '`'),
    );
    const expansions = [
      ...[fc.constant('${y}'), fc.constant('${y#*/}'), fc.constant('$((1+2))')],
      around('${x:-', tie('word'), '}'),
      around('$((', fc.constantFrom('1', '{index}', '1<<2', '(1)'), ')+1))'.slice(1)),
    ];
    return {
      // Within double quotes.
      text: fc
        .array(
          fc.oneof(
            { depthSize: 'small', withCrossShrink: true },
            { weight: 4, arbitrary: hole },
            {
              weight: 3,
              arbitrary: fc.constantFrom('a', ' ', "'", '#', '(', ')', '\\"', '\\\\', '$ ', '\n'),
            },
            { weight: 3, arbitrary: nested },
            { weight: 1, arbitrary: fc.oneof(...expansions) },
          ),
          { maxLength: 4 },
        )
        .map((parts) => parts.join('')),
      word: fc
        .array(
          fc.oneof(
            { depthSize: 'small', withCrossShrink: true },
            { weight: 5, arbitrary: hole },
            { weight: 3, arbitrary: plain },
            { weight: 3, arbitrary: around('"', tie('text'), '"') },
            {
              weight: 1,
              arbitrary: fc.constantFrom("'a'", "' # '", "'\"'", "'('", "'{}'", "$'a\\'", '$"a"'),
            },
            { weight: 1, arbitrary: around('{a,', tie('word'), '}') },
            { weight: 1, arbitrary: fc.oneof(...expansions) },
          ),
          { minLength: 1, maxLength: 3 },
        )
        .map((parts) => parts.join('')),
      list: fc.array(tie('word'), { minLength: 1, maxLength: 3 }).map((words) => words.join(' ')),
      command: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        { weight: 6, arbitrary: around('printf "<%s>" ', tie('list'), '') },
        { weight: 1, arbitrary: around('v=', tie('word'), '; printf "<%s>" "$v"') },
        // The shell splits what `$(…)` printed, except in an assignment.
        { weight: 2, arbitrary: around('v=', nested, '#"; printf "<%s>" "$v"') },
        {
          weight: 1,
          arbitrary: around("printf a # it's {} (\"`\n printf '<%s>' ", tie('list'), ''),
        },
        { weight: 1, arbitrary: around('(', tie('command'), ')#)"\'') },
        { weight: 1, arbitrary: around('{ ', tie('command'), '; }') },
        { weight: 1, arbitrary: around('printf "<%s>" \\\n ', tie('list'), '') },
        {
          weight: 2,
          arbitrary: fc
            .tuple(tie('word'), tie('word'), tie('command'))
            .map(([of, pattern, then]) => `case ${of} in ${pattern}|*) ${then};; esac`),
        },
        {
          weight: 1,
          arbitrary: fc
            .tuple(fc.constantFrom('EOF', "'EOF'"), tie('text'), tie('command'))
            .map(([end, text, then]) => `cat <<${end}\nit's ${text}\nEOF\n${then}`),
        },
        {
          weight: 1,
          arbitrary: fc.tuple(tie('command'), tie('command')).map(([a, b]) => `${a}; ${b}`),
        },
      ),
    };
  },
);

/** Commands in which an item that is expanded a second time, or evaluated, sets QqX. No such file can be made. */
const again = fc
  .tuple(
    fc.oneof(
      fc
        .tuple(
          fc.constantFrom('>', '>>', '<', '>&', '>& ', '>&\t', '1>&', '&>', '>|'),
          fc.constantFrom('/dev/null/{}', '"/dev/null/{}.log"', '/dev/null/"a {}"'),
        )
        .map(([to, file]) => `printf x ${to}${file}`),
      fc
        .tuple(
          fc.constantFrom('a=(', 'a=(x ', 'a+=(\n', 'a=("$y" '),
          fc.constantFrom('[{}]=1', '"{}"', '[1 + {}]=1', '["{}"]=1', '{}'),
        )
        .map(([array, element]) => `${array}${element})`),
      fc
        .tuple(
          fc.constantFrom('a[', 'a[b[1] + ', 'a[ ', 'a[$y + ', 'a["$y"+'),
          fc.constantFrom(']=1', ' ]=1', ']+=1', ' + b[2]]=1', '+"1"]=1'),
        )
        .map(([name, value]) => `${name}{}${value}`),
    ),
    fc.constantFrom('{ %; } 2>/dev/null', '%', 'y=1; %', 'if :; then %; fi'),
    fc.constantFrom('${QqX:=5}', 'QqX=5', '1+(QqX=5)', 'a'),
  )
  .map(([command, around, given]) => ({
    text: `${around.replace('%', () => command)}; printf "<%s>" "$QqX"`,
    given,
  }));

const RUNS = 200;

describe('{} in a command of --exec', () => {
  test.for(SHELLS)('is in %s the item as it is, or is refused', (shell) => {
    let ran = 0;
    fc.assert(
      fc.property(command, item, (text, given) => {
        if (!text.includes('{}')) return;
        const found = printed(shell, text, given);
        if (found === undefined) return;
        const expected = output(shell, text.replaceAll('{}', WORD).replaceAll('{index}', '7'));
        if (expected.status !== 0) return;
        ran += 1;
        // The end of `$(…)` loses line ends.
        const same = (output: string) => output.replace(/\n+(?=[^<]*>)/g, '');
        expect(same(found)).toBe(same(expected.stdout.replaceAll(WORD, () => given)));
      }),
      { numRuns: RUNS },
    );
    expect(ran).toBeGreaterThan(RUNS / 20);
  });

  test.for(SHELLS)(
    'is in %s neither expanded a second time nor evaluated, or is refused',
    (shell) => {
      fc.assert(
        fc.property(again, ({ text, given }) => {
          expect(printed(shell, text, given) ?? '').not.toContain('<5>');
        }),
        { numRuns: RUNS },
      );
    },
  );

  test.for<[command: string, place: string]>([
    ['printf "%s\n" "`printf "%s," {}`"', 'backquotes'],
    ['echo "`date`" {}', 'backquotes'],
    ['echo "$(case {} in a) echo x;; esac)"', 'case within'],
    ["cat <<EOF\nit's\nEOF\necho {}", '<<'],
    ["sh -c 'echo {}'", 'single quotes'],
    ["echo '{index}'", 'single quotes'],
    ["echo $'a\\'{}", "$'…'"],
    ['echo ${x:-{}}', '${…}'],
    ['echo "${x:-"{}"}"', '${…}'],
    ['echo $(({} + 1))', '$((…))'],
    ['echo $[{} + 1]', '$[…]'],
    ['(( {} > 1 )) && echo more', '((…))'],
    ['[[ {} -gt 1 ]] && echo more', '[[ … ]]'],
    ['a[{}]=1', 'a subscript'],
    ['a[b[1] + {}]=1', 'a subscript'],
    ['a[ {} ]+=1', 'a subscript'],
    ['a=([{}]=1)', 'an array (…)'],
    ['a=(x [{}]=1)', 'an array (…)'],
    ['a+=([{}]=1)', 'an array (…)'],
    ['echo hello >& {}', '>& and a file'],
    ['echo hello >&{}', '>& and a file'],
    ['echo hello >&"{}.log"', '>& and a file'],
    ['echo hello >&2x{}', '>& and a file'],
    ['ca\\\nse {} in x) echo;; esac', 'continues on the next line'],
    ['ls [{}]', 'an unquoted ['],
    ['ls *.[ch{}]', 'an unquoted ['],
    ['ls ["{}"]', 'an unquoted ['],
    ['ls [!"$(basename "{}")"]', 'an unquoted ['],
    ['case x in [{}]) echo;; esac', 'an unquoted ['],
  ])('is refused in or behind %j, and the refusal names the place', ([command, place]) => {
    expect(() => new ExecCommand(command)).toThrow(
      `no ${command.includes('{}') ? '{}' : '{index}'} in`,
    );
    expect(() => new ExecCommand(command)).toThrow(place);
  });

  test.for([
    'echo {} "$(date)" `date`',
    'f={}; echo "${f%.*}.png" $((1 + 2)) {}',
    'item={}; cat <<EOF\n$item\nEOF',
    'case {} in *.gz) zcat {};; *) cat {};; esac',
    'for f in a b; do echo "$f" {} >>out; done # \'{}\'',
    "awk '{print $1}' {} | grep -E 'x{2}' >{}.txt",
    'ls [a-c]* "$1" $# ${x} {}',
    '[ {} = a ] || ls {}[a-c] "[{}]" \\[{}]',
    "jq '{ }' \\{\\} {}",
    'ls a[bc] {} >{}.log 2>&1 && echo {} >&2; exec 3>&-; echo {}',
    'convert {} \\\n  -resize 10',
  ])('is replaced in %j', (command) => {
    expect(new ExecCommand(command).takesItem).toBe(true);
  });

  test('of a batch is never a command: a part of a word is not several words', () => {
    const command = new ExecCommand('x={}; echo "$x"', 'lines');
    expect(() => command.invocation(json(['a', 'touch']), 0)).toThrow('{} of a batch is 2 words');
    expect(command.invocation(json(['a']), 0).command).toBe('x="${PIECEWORK_ITEM?}"; echo "$x"');
    const quoted = new ExecCommand('x="{}"; echo "$x"', 'lines').invocation(json(['a', '$x']), 0);
    expect(output('dash', quoted.command, quoted.env).stdout).toBe('a $x\n');
  });

  test.for(SHELLS)('fails in %s when the command has unset its variable', (shell) => {
    const { command, env } = new ExecCommand('unset PIECEWORK_ITEM; echo {}').invocation(
      json('a'),
      0,
    );
    expect(output(shell, command, env)).toEqual({ status: expect.not.toBeOneOf([0]), stdout: '' });
  });
});
