import { spawnSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Piecework } from 'piecework';
import { describe, expect, onTestFinished } from 'vitest';
import { STARTS } from '../support/cli.js';
import { type CommandLine, saysIn, test } from '../support/command-line.js';
import { startOwnRedis } from '../support/redis.js';
import { hasTerminals, screenOf, startOnTerminal } from '../support/terminal.js';
import { until } from '../support/until.js';

/*
 * `piecework top` on a real terminal, which the program `script` creates, before a real fleet. What it draws and what keys
 * do is in top-view.test.ts.
 */

const handler = fileURLToPath(new URL('../support/programs/handler.mjs', import.meta.url));
const lines = (n: number) => 'wait:600000\n'.repeat(n);

type View = ReturnType<typeof startOnTerminal>;

/** Starts `top`, and waits for its first screen. */
async function startTop(
  { redis, queue }: Pick<CommandLine, 'redis' | 'queue'>,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
) {
  const on = { redis, columns: 80, rows: 24, env };
  const view = startOnTerminal(['top', '--queue', queue, ...args], on);
  onTestFinished(async () => {
    const pid = pidOf(view);
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
    await view.finished;
  });
  await shows(view, /workers {2}\d/);
  return view;
}

/** Waits until the screen matches. */
const shows = (view: View, what: RegExp) =>
  until(() => what.test(screenOf(view.said.stdout).join('\n')), {
    what: `the screen matches ${what}`,
    ...STARTS,
  });

/** The process of the command: the child of `script`. */
function pidOf({ child }: View): number | undefined {
  try {
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
    return Number(children.trim()) || undefined;
  } catch {
    return undefined;
  }
}

/** The terminal is as it was: its own screen, its cursor, long lines. */
function expectRestored(output: string): void {
  for (const [on, off] of [
    ['\u001b[?1049h', '\u001b[?1049l'],
    ['\u001b[?25l', '\u001b[?25h'],
    ['\u001b[?7l', '\u001b[?7h'],
  ] as const)
    expect(output.lastIndexOf(off), off.slice(1)).toBeGreaterThan(output.lastIndexOf(on));
}

describe.skipIf(!hasTerminals)('top on a terminal', () => {
  test('shows a fleet, and pauses, limits and resumes a request by keys', async ({
    commandLine,
  }) => {
    const { file, run, start, queue, connection } = commandLine;
    const id = `long-${queue}`;
    await run('submit', '--input', await file('long.txt', lines(30)), '--id', id, '--limit', '4');
    const worker = start('worker', '--handler', handler, '--concurrency', '6');
    await saysIn(worker, 'stderr', /worker started/);
    await using pw = new Piecework({ redis: connection.client, queue });
    const status = () => pw.request(id).status();

    const view = await startTop(commandLine);
    await shows(view, /long-\S+ +running +░{8} +0 % +50 +4 /);
    await shows(view, /workers {2}1 alive · 4 of 6 slots busy/);
    view.type('p');
    await until(async () => (await status()).waitingFor === 'resume', {
      what: 'it is paused',
      ...STARTS,
    });
    await shows(view, /long-\S+ +paused /);
    view.type('l7\r');
    await until(async () => (await status()).limit === 7, { what: 'its limit is 7', ...STARTS });
    view.type('p');
    await until(async () => (await status()).waitingFor !== 'resume', {
      what: 'it is resumed',
      ...STARTS,
    });

    view.type('\r');
    await shows(view, /▄ running \d+ \+ ░ ready \d+ = 30/);
    await shows(view, /runs +\d+ at one worker/);
    view.type('q');
    const { code, stdout } = await view.finished;
    expect(code).toBe(0);
    expectRestored(stdout);
    await pw.request(id).drop();
  });

  test('with --read-only its keys change nothing', async ({ commandLine }) => {
    const { file, run, queue, connection } = commandLine;
    const id = `safe-${queue}`;
    await run('submit', '--input', await file('one.txt', 'a\n'), '--id', id);
    const view = await startTop(commandLine, ['--read-only']);
    await shows(view, /▶ safe-/);
    view.type('p');
    await shows(view, /This view is read-only/);
    await using pw = new Piecework({ redis: connection.client, queue });
    expect((await pw.request(id).status()).waitingFor).not.toBe('resume');
    view.type('\x03');
    expect((await view.finished).code).toBe(130);
    expectRestored(view.said.stdout);
  });

  test('is drawn anew when the terminal is resized', async ({ commandLine }) => {
    const { file, run, queue } = commandLine;
    const input = await file('one.txt', 'a\n');
    for (let n = 0; n < 20; n++) await run('submit', '--input', input, '--id', `${n}-${queue}`);
    const view = await startTop(commandLine);
    await shows(view, /▶ /);
    const terminal = readlinkSync(`/proc/${pidOf(view)}/fd/0`);
    for (const [columns, rows, least, most] of [
      [60, 15, 1, 4],
      [120, 40, 16, 20],
    ] as const) {
      const before = view.said.stdout.length;
      spawnSync('stty', ['-F', terminal, 'cols', String(columns), 'rows', String(rows)]);
      const drawn = await until(
        () => {
          const screen = screenOf(view.said.stdout.slice(before), columns);
          // What was drawn before the resize may leave blank lines below.
          while (screen.at(-1) === '') screen.pop();
          // As many requests as fit.
          const listed = screen.filter((line) => line.includes('░░░░░░░░')).length;
          return screen.length === rows && listed >= least && listed <= most && screen;
        },
        { what: `a screen of ${rows} rows`, ...STARTS },
      );
      expect(Math.max(...drawn.map((line) => [...line].length))).toBeLessThanOrEqual(columns);
    }
    view.type('q');
    expect((await view.finished).code).toBe(0);
    expectRestored(view.said.stdout);
  });

  test.for([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('%s gives the terminal back', async ([signal, code], { commandLine }) => {
    const view = await startTop(commandLine);
    process.kill(pidOf(view) as number, signal);
    expect((await view.finished).code).toBe(code);
    expectRestored(view.said.stdout);
  });

  test('a crash gives the terminal back before it says why', async ({ commandLine }) => {
    const hook = `process.on('SIGUSR2', () => { throw new Error('this crashes it'); });`;
    const NODE_OPTIONS = `--import data:text/javascript,${encodeURIComponent(hook)}`;
    const view = await startTop(commandLine, [], { NODE_OPTIONS });
    process.kill(pidOf(view) as number, 'SIGUSR2');
    const { code, stdout } = await view.finished;
    expect(code).not.toBe(0);
    expectRestored(stdout);
    expect(stdout.indexOf('this crashes it')).toBeGreaterThan(stdout.lastIndexOf('\u001b[?1049l'));
  });

  test('a server that is gone is a line that says so, and the view goes on when it is back', {
    tags: ['own-server', 'processes'],
  }, async ({ commandLine: { queue } }) => {
    const server = await startOwnRedis();
    onTestFinished(() => server.close());
    const view = await startTop({ redis: server.url, queue });
    await server.kill('SIGSTOP');
    await shows(view, /Redis has not answered for|Reading failed/);
    await server.kill('SIGCONT');
    await until(() => !/not answered|Reading failed/.test(screenOf(view.said.stdout).join('\n')), {
      what: 'the line is gone',
      ...STARTS,
    });
    view.type('q');
    expect((await view.finished).code).toBe(0);
  });
});

test('without a terminal it names what programs use instead', async ({ commandLine: { run } }) => {
  for (const args of [['top'], ['top', '--json']]) {
    const { code, stdout, stderr } = await run(...args);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain('`piecework list --json`, `piecework status ID --json`');
  }
});
