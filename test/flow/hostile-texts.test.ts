import { Command } from 'commander';
import { beforeAll, describe, expect } from 'vitest';
import { addCommands } from '../../packages/cli/dist/commands.js';
import { STARTS } from '../support/cli.js';
import { type CommandLine, test } from '../support/command-line.js';
import { EVIL, HIDDEN } from '../support/hidden.js';
import { hasTerminals, startOnTerminal } from '../support/terminal.js';
import { until } from '../support/until.js';

/*
 * All commands, with hostile texts wherever texts come from outside: neither standard output nor standard error has
 * anything that commands the terminal, forges a line or hides something.
 */

const HANDLER = `
const evil = ${JSON.stringify(EVIL)};
// The lines that a handler prints are its own.
const line = evil.replace(/[\\r\\n\\u2028\\u2029]/g, '');
console.log(line);
export default async (payload, { log }) => {
  log.warn({ evil }, evil);
  console.log(line);
  if (payload === 'fine') return { [evil]: evil };
  const error = new Error(evil);
  error.name = evil;
  error.stack = evil + '\\n    at ' + evil;
  throw error;
};
`;

/** Lines begin with \`evil\`, at the earliest, where a text of the handler was shown. */
function expectClean(text: string, what: string): void {
  for (const line of text.split('\n')) {
    expect(line.replaceAll('\t', ''), what).not.toMatch(HIDDEN);
    expect(line, what).not.toMatch(/^\s*forged/);
  }
}

/** For each command its arguments, besides those that are wrong. `top` needs a terminal: top-view.test.ts. */
const ARGS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  run: [
    ['run', '--input', 'INPUT', '--handler', 'HANDLER', '--id', 'again'],
    ['run', '--input', 'INPUT', '--exec', `printf '%s' {} >&2; exit 1`, '--exec-stderr', 'index'],
    ['run', '--input', 'INPUT', '--exec', 'echo {}', '--dry-run'],
    ['run', '--input', 'INPUT', '--exec', 'wc -c', '--dry-run'],
    ['run', '--input', 'INPUT', '--exec', 'echo {}', '--dry-run', '--json'],
  ],
  submit: [['submit', '--input', 'INPUT', '--task', EVIL, '--dry-run']],
  worker: [],
  status: [
    ['status', 'one'],
    ['status', 'one', '--json'],
    ['status', 'one', '--running'],
  ],
  results: [],
  failures: [
    ['failures', 'one'],
    ['failures', 'one', '--json', '--payload'],
    ['failures', 'one', '--payload', '--stack'],
    ['failures', 'one', '--group'],
    ['failures', 'one', '--group', '--json'],
    ['failures', 'one', '--error', EVIL],
  ],
  errors: [['errors'], ['errors', '--json']],
  redrive: [['redrive', 'one', '--error', EVIL]],
  cancel: [['cancel', 'waiting']],
  pause: [['pause', 'waiting']],
  resume: [['resume', 'waiting']],
  update: [['update', 'waiting', '--limit', '3']],
  drop: [],
  list: [
    ['list', '--state', 'all'],
    ['list', '--state', 'all', '--json'],
  ],
  workers: [['workers'], ['workers', '--json']],
  watch: [
    ['watch', 'one'],
    ['watch', 'one', '--json'],
  ],
  top: [],
  doctor: [['doctor'], ['doctor', '--json']],
  dashboard: [],
  exporter: [],
  dev: [],
  complete: [['complete', 'bash']],
};

const commands: string[] = [];
beforeAll(async () => {
  const program = new Command();
  await addCommands(program);
  commands.push(...program.commands.map((command) => command.name()));
});

/** Requests and a worker with hostile texts: `one` has failed, `waiting` waits. */
async function prepare({ run, start, file }: CommandLine) {
  const input = await file(
    'input.ndjson',
    [EVIL, 'fine'].map((it) => JSON.stringify(it)).join('\n'),
  );
  const handler = await file('handler.mjs', HANDLER);
  const worker = start('worker', '--handler', handler, '--log-format', 'text');
  const args = ['--input', input, '--split', 'ndjson', '--attempts', '1'];
  const one = await run(
    'submit',
    ...args,
    '--id',
    'one',
    '--wait',
    '--metadata',
    JSON.stringify({ EVIL }),
  );
  const more = ['--id', 'waiting', '--task', 'none', '--metadata', JSON.stringify({ EVIL })];
  const waiting = await run('submit', ...args, ...more);
  expect(waiting.code, waiting.stderr).toBe(0);
  return { input, handler, worker, one };
}

describe('a hostile text', () => {
  test('commands no terminal and forges no line, whichever command shows it', async ({
    commandLine,
  }) => {
    const { run } = commandLine;
    expect(Object.keys(ARGS).sort(), 'a command is missing here').toEqual([...commands].sort());
    const { input, handler, worker, one } = await prepare(commandLine);
    expect(one.stderr).toMatch(/^one failed: 1 of 2 succeeded$/m);
    const ends: Record<string, string> = {};
    for (const name of commands) {
      const wrong = [
        [name, `--${EVIL}`],
        [name, EVIL, EVIL, EVIL],
        ...(name === 'run' || name === 'worker'
          ? [[name, '--handler', EVIL, '--input', EVIL]]
          : []),
        ...(name === 'drop' || name === 'status' ? [[name, EVIL]] : []),
      ];
      const given = (ARGS[name] ?? []).map((args) =>
        args.map((arg) => (arg === 'INPUT' ? input : arg === 'HANDLER' ? handler : arg)),
      );
      const files = (args: readonly string[]) =>
        args.includes(input) && !args.includes('--split') ? ['--split', 'ndjson'] : [];
      for (const args of [...given, ...wrong]) {
        const ended = await run(...args, ...files(args));
        const what = args.join(' ').replaceAll(EVIL, 'EVIL');
        expectClean(ended.stdout, what);
        expectClean(ended.stderr, what);
        ends[what] = ended.stdout + ended.stderr;
      }
    }
    // They were shown, not left out.
    for (const what of [
      'failures one',
      'failures one --group',
      'errors',
      'list --state all --json',
    ])
      expect(ends[what], what).toContain('evil\\u001b[2J\\u001b]0;title\\u0007');
    expect(ends['dev --EVIL']).toContain('evil\\u001b[2J');
    const payloads = JSON.parse(ends['failures one --json --payload']?.split('\n')[0] ?? '');
    expect(payloads).toMatchObject({ payload: EVIL, error: {} });
    await until(() => worker.said.stderr.includes('sub-request failed'), STARTS);
    worker.kill('SIGTERM');
    await worker.finished;
    expectClean(worker.said.stderr, 'the log of a worker');
    expect(worker.said.stderr).toContain('evil\\u001b[2J');
  });

  test.skipIf(!hasTerminals)('commands no terminal that shows results', async ({ commandLine }) => {
    const { worker } = await prepare(commandLine);
    const { redis, queue } = commandLine;
    const onTerminal = async (...args: string[]) => {
      const env = { NO_COLOR: '1' };
      const shown = startOnTerminal([...args, '--queue', queue], { redis, env });
      const { stdout } = await shown.finished;
      const text = stdout.replaceAll('\r\n', '\n');
      expectClean(text, args.join(' '));
      return text;
    };
    const [, json = ''] = (
      await onTerminal('results', 'one', '--failed', '--order', 'index')
    ).split('\n');
    expect(JSON.parse(json)).toMatchObject({ index: 1, value: { [EVIL]: EVIL } });
    expect(await onTerminal('results', 'one', '--format', 'text')).toContain('evil\\u001b[2J');
    const table = await onTerminal('results', 'one', '--failed', '--format', 'csv');
    expect(table.trimEnd().split('\n').slice(-3)).toEqual([
      'index,status,value,error',
      expect.stringMatching(/^\d,\w+,.*evil.*\\nforged/),
      expect.stringMatching(/^\d,\w+,.*evil.*\\nforged/),
    ]);
    for (const name of ['failures', 'status']) await onTerminal(name, 'one');
    for (const name of ['errors', 'list', 'workers']) await onTerminal(name);
    worker.kill('SIGTERM');
    await worker.finished;
  });
});
