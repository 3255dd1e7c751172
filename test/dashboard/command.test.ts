import { expect } from 'vitest';
import { STARTS } from '../support/cli.js';
import { test } from '../support/command-line.js';
import { until } from '../support/until.js';

test('piecework dashboard serves its page until it is stopped, and names what it needs', async ({
  commandLine,
}) => {
  const { start, run, file } = commandLine;
  const refused = await run('dashboard', '--port', '0');
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--token-file FILE')]);
  const short = await run('dashboard', '--port', '0', '--token-file', await file('short', 'abc\n'));
  expect([short.code, short.stderr]).toEqual([2, expect.stringContaining('16 characters')]);
  const open = await run('dashboard', '--insecure', '--host', '0.0.0.0', '--port', '0');
  expect([open.code, open.stderr]).toEqual([
    2,
    'piecework: dashboard: insecure is only for this machine, and others may reach 0.0.0.0; listen at 127.0.0.1, or give a token or users\n',
  ]);

  const token = 'a-token-of-more-than-16';
  const flags = ['--port', '0', '--json', '--token-file', await file('token', `${token}\n`)];
  const served = start('dashboard', ...flags);
  const line = await until(() => served.said.stdout.includes('\n') && served.said.stdout, STARTS);
  const { url } = JSON.parse(line) as { url: string };
  expect((await fetch(url)).status).toBe(401);
  const page = await fetch(`${url}api/shell`, { headers: { authorization: `Bearer ${token}` } });
  expect(await page.json()).toMatchObject({ queues: [commandLine.queue], control: false });
  // Where nobody reads a terminal, each line of the log is JSON and has its time with its date.
  const line401 = served.said.stderr.split('\n').find((one) => one.includes('Sign in first.'));
  const { time, msg } = JSON.parse(line401 ?? '{}') as { time: number; msg: string };
  expect([msg, new Date(time).getFullYear()]).toEqual([
    'dashboard: refused',
    new Date().getFullYear(),
  ]);
  const proxy = await run('dashboard', '--insecure', '--trust-proxy', '1', '--port', '0');
  expect([proxy.code, proxy.stderr]).toEqual([
    2,
    expect.stringContaining('trustProxy: "1" is not allowed'),
  ]);
  const taken = await run('dashboard', '--insecure', '--port', new URL(url).port);
  expect([taken.code, taken.stderr]).toEqual([
    1,
    expect.stringMatching(/--port \d+: another process listens there; choose another port/),
  ]);
  served.kill('SIGTERM');
  expect((await served.finished).code).toBe(0);
  expect(served.said.stderr).not.toContain(token);
});
