import { fileURLToPath } from 'node:url';
import { QueueCommands } from '@piecework/protocol';
import { Admin } from 'piecework';
import { describe, expect } from 'vitest';
import { endAtOnce, STARTS } from '../support/cli.js';
import { type CommandLine, jsonLines, saysIn, test } from '../support/command-line.js';
import { hasTerminals, screenOf, startOnTerminal } from '../support/terminal.js';
import { until } from '../support/until.js';

/*
 * What a person sees on a terminal.
 */

const handler = fileURLToPath(new URL('../support/programs/handler.mjs', import.meta.url));
const lines = (n: number) => Array.from({ length: n }, (_, i) => `${i}\n`).join('');

/** Logs at its third item, and ends none before it is told to. */
const slow = ({ file }: CommandLine) =>
  file(
    'slow.mjs',
    `import { setTimeout as sleep } from 'node:timers/promises';
     export default async (payload, { index, log }) => {
       if (index === 2) log.warn({ colour: 'red' }, 'an odd item');
       if (index === 3) console.error('plain words');
       await sleep(200);
     };`,
  );

describe.skipIf(!hasTerminals)('on a terminal', () => {
  test('a run leaves only its summary, and shows log lines as text above the bar', async ({
    commandLine,
  }) => {
    const { file, redis, queue } = commandLine;
    const input = await file('many.txt', lines(30));
    const flags = ['--input', input, '--handler', await slow(commandLine), '--queue', queue];
    const { said, finished } = startOnTerminal(['run', ...flags], { redis });
    await finished;
    const screen = screenOf(said.stdout);
    expect(screen.filter((line) => !line.includes('·'))).toEqual([
      expect.stringMatching(/^run-\S+ begins; follow it: /),
      'plain words',
      expect.stringMatching(/^succeeded: 30 succeeded, 0 failed of 30 in [\d.]+m?s$/),
      '',
    ]);
    expect(screen.find((line) => line.includes('an odd item'))).toMatch(
      /^\d\d:\d\d:\d\d warn {2}an odd item · worker /,
    );
    // The cursor is there again.
    expect(said.stdout.lastIndexOf('\u001b[?25h')).toBeGreaterThan(
      said.stdout.lastIndexOf('\u001b[?25l'),
    );
    expect(said.stdout).not.toMatch(/ETA \d+ms/);
  });

  test('Ctrl-C overwrites no line, removes the bar, and the summary counts what was cancelled', async ({
    commandLine,
  }) => {
    const { file, redis, queue } = commandLine;
    const input = await file('many.txt', lines(2_000));
    const flags = ['--input', input, '--handler', await slow(commandLine), '--queue', queue];
    const run = startOnTerminal(['run', ...flags], { redis });
    await until(() => /\d+\/2,000/.test(run.said.stdout), { what: 'a bar is shown', ...STARTS });
    run.type('\x03');
    await run.finished;
    const screen = screenOf(run.said.stdout);
    expect(screen.slice(-6)).toEqual([
      'stopping: handlers get 30s, the rest is cancelled; Ctrl-C again ends at once',
      expect.stringMatching(/^cancelled: \d+ succeeded, 0 failed, [\d,]+ cancelled of 2,000 in/),
      'the rest is not kept; the same command starts over',
      '  a run that continues: piecework run --id NAME …',
      '  a run that leaves the rest as input: piecework run --out-dir DIR …',
      '',
    ]);
    expect(screen.join()).not.toMatch(/[█░]/);
    // The share of the bar is that of what was done.
    expect(run.said.stdout).not.toMatch(/(9\d|100) % ·/);
  });

  test('a second Ctrl-C shows the cursor again and says what stays in Redis', async ({
    commandLine,
  }) => {
    const { file, redis, queue, connection } = commandLine;
    const input = await file('long.txt', 'wait:600000\n'.repeat(20));
    const flags = ['--input', input, '--handler', handler, '--queue', queue];
    const run = startOnTerminal(['run', ...flags], { redis });
    await until(() => run.said.stdout.includes('0/20'), { what: 'a bar is shown', ...STARTS });
    await endAtOnce(
      () => run.type('\x03'),
      () => run.said.stdout,
    );
    const { code, stdout } = await run.finished;
    expect(code).toBe(130);
    const screen = screenOf(stdout);
    expect(screen.slice(-5)).toEqual([
      'ended at once',
      expect.stringMatching(/^request run-\S+ stays in Redis:$/),
      expect.stringMatching(/^ {2}piecework status run-\S+$/),
      expect.stringMatching(/^ {2}piecework drop run-\S+$/),
      '',
    ]);
    expect(stdout.lastIndexOf('\u001b[?25h')).toBeGreaterThan(stdout.lastIndexOf('\u001b[?25l'));
    // It could not say good-bye, and the registry would believe in it for a minute.
    await using admin = new Admin({ redis: connection, queue });
    const [left] = await admin.workers();
    await new QueueCommands(connection, queue).deregister(left?.id ?? '');
  });

  test.for([
    ['watch', (id: string) => ['watch', id]],
    ['submit --wait', (_: string, input: string) => ['submit', '--input', input, '--wait']],
    ['redrive --wait', (id: string) => ['redrive', id, '--wait']],
  ] as const)(
    'Ctrl-C during %s shows the cursor again',
    async ([command, args], { commandLine }) => {
      const { file, redis, queue, run } = commandLine;
      const input = await file('one.txt', 'a\n');
      const fails = await file('fails.mjs', "export default () => { throw new Error('no'); };");
      const id = `cursor-${queue}`;
      if (command === 'watch') await run('submit', '--id', id, '--input', input);
      if (command === 'redrive --wait') {
        const worker = commandLine.start('worker', '--handler', fails);
        await run('submit', '--id', id, '--input', input, '--attempts', '1', '--wait');
        worker.kill('SIGTERM');
        await worker.finished;
      }
      const { said, finished, type } = startOnTerminal([...args(id, input), '--queue', queue], {
        redis,
      });
      await until(() => /its queue has no worker/.test(said.stdout), {
        what: 'it says why nothing moves',
        ...STARTS,
      });
      type('\x03');
      await finished;
      expect(said.stdout.lastIndexOf('\u001b[?25h')).toBeGreaterThan(
        said.stdout.lastIndexOf('\u001b[?25l'),
      );
      expect(said.stdout).toContain('\u001b[?25l');
    },
  );

  test('tables fit 80 columns, texts are shortened in their middle, and grow with the terminal', async ({
    commandLine,
  }) => {
    const { file, redis, queue, run } = commandLine;
    const id = `nightly-thumbnails-of-the-whole-archive-${queue}`;
    const input = await file('three.txt', lines(3));
    const broken = `process.stderr.write('the picture is \\u001b[31mbroken\\u001b[0m ${'beyond repair '.repeat(8)}'); process.exit(1)`;
    await file('fails.cjs', broken);
    const work = ['--exec', `node ${commandLine.folder}/fails.cjs`];
    await run('run', '--input', input, ...work, '--id', id);
    const commands = [
      ['list', '--state', 'all'],
      ['errors'],
      ['failures', id],
      ['failures', id, '--group'],
      ['status', id],
      ['doctor'],
    ];
    for (const args of commands) {
      const shown = async (columns: number) => {
        const all = [...args, '--queue', queue];
        const { stdout } = await startOnTerminal(all, { redis, columns }).finished;
        return screenOf(stdout, 1_000);
      };
      const [narrow, wide] = [await shown(80), await shown(300)];
      for (const line of narrow) expect(line.length, `${args}: ${line}`).toBeLessThanOrEqual(80);
      const longest = (screen: string[]) => Math.max(...screen.map((line) => line.length));
      expect(longest(wide), args[0]).toBeGreaterThanOrEqual(longest(narrow));
      if (args[0] === 'list') {
        expect(narrow[1]).toMatch(/^nightly\S*…\S+ +failed /);
        expect(wide[1]).toContain(id);
      }
      const cut = /^\(ids are shortened; --json has them whole\)$/;
      if (args[0] === 'list' || args[0] === 'errors') {
        expect(narrow.filter((line) => cut.test(line))).toHaveLength(1);
        expect(wide.filter((line) => cut.test(line))).toEqual([]);
      }
      if (args[0] === 'errors') {
        // The message is what an operator looks for.
        const [head = ''] = narrow;
        expect(80 - head.indexOf('message')).toBeGreaterThanOrEqual(40);
        expect(head).not.toContain('worker');
      }
    }
    // Red is what failed, unless somebody wants no colours.
    const coloured = async (...more: string[]) => {
      const listed = ['list', '--state', 'all', '--queue', queue, ...more];
      return (await startOnTerminal(listed, { redis }).finished).stdout.includes(
        '\u001b[31mfailed',
      );
    };
    expect([await coloured(), await coloured('--no-color')]).toEqual([true, false]);
    // For other programs it is whole.
    expect((await run('list', '--state', 'all')).stdout).toContain(`${id}  failed`);
  });

  test('no line is longer than the terminal is wide', async ({ commandLine }) => {
    const { file, redis, queue } = commandLine;
    const long = `'${'x'.repeat(300)}'`;
    const input = await file('many.txt', lines(3));
    const flags = ['--input', input, '--exec', `echo ${long} >&2; exit 1`, '--queue', queue];
    const { finished } = startOnTerminal(['run', ...flags], { redis, columns: 60 });
    const screen = screenOf((await finished).stdout, 1_000);
    const line = screen.find((text) => text.includes('3 × exit code 1: xxx'));
    expect(line?.length).toBeLessThan(60);
    expect(line).toMatch(/x… \(index 0, 1, 2\)$/);
  });
});

test('the log is text on a terminal and else JSON, or the format that was asked for', async ({
  commandLine: { start },
}) => {
  const piped = start('worker', '--handler', handler);
  await saysIn(piped, 'stderr', /worker started/);
  expect(jsonLines<{ msg: string }>(piped.said.stderr)[0]?.msg).toBe('worker started');
  const asked = start('worker', '--handler', handler, '--processes', '2', '--log-format', 'text');
  await saysIn(asked, 'stderr', /worker processes started/);
  expect(asked.said.stderr).not.toContain('{"level"');
  expect(asked.said.stderr).toMatch(/^\d\d:\d\d:\d\d info {2}worker started · worker /m);
});
