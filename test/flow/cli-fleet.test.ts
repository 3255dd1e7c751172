import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { QueueCommands } from '@piecework/protocol';
import { Admin } from 'piecework';
import { describe, expect } from 'vitest';
import { endAtOnce, STARTS, startCli } from '../support/cli.js';
import { type CommandLine, jsonLines, saysIn, test } from '../support/command-line.js';
import { freshName } from '../support/given.js';
import { runs } from '../support/processes.js';
import { until } from '../support/until.js';

// Ids of requests are used by nobody else, whatever server this is.
const unique = freshName('fleet');

interface Line {
  index: number;
  status: string;
  error?: { name: string; message: string; exitCode?: number; blockedMs?: number };
}

/** Twenty lines, the first one '0'. */
const lines = ({ file }: CommandLine) =>
  file('lines.txt', Array.from({ length: 20 }, (_, n) => `${n}\n`).join(''));

describe('run, when handlers end their process', () => {
  test.for<[string, string]>([
    ['process.exit', 'process.exit(3)'],
    [
      'an error that nobody catches',
      "await new Promise(() => setTimeout(() => { throw new Error('outside'); }, 10))",
    ],
  ])(
    'continues, and has all results but that of the guilty sub-request: %s',
    {
      timeout: 180_000,
    },
    async ([, crash], { commandLine }) => {
      const input = await lines(commandLine);
      const handler = await commandLine.file(
        'crash.mjs',
        `export default async (n) => { if (n === '7') ${crash}; return Number(n); };`,
      );
      const ended = await commandLine.run(
        ...['run', '--input', input, '--handler', handler, '--out', '-', '--concurrency', '4'],
        ...['--max-crashes', '2', '--tolerated-failures', '1'],
      );
      expect(ended.code, ended.stderr).toBe(0);
      const results = jsonLines<Line>(ended.stdout);
      expect(results.map(({ index }) => index)).toEqual(Array.from({ length: 20 }, (_, n) => n));
      const failed = results.filter(({ status }) => status === 'failed');
      expect(failed).toMatchObject([{ index: 7, error: { name: 'CrashError' } }]);
      expect(ended.stderr).toMatch(
        /worker process \d+ ended by itself \(exit code \d\); another one is started/,
      );
    },
  );

  test('gives up, cancels the rest and writes the results when every process ends', {
    timeout: 180_000,
  }, async ({ commandLine }) => {
    const input = await lines(commandLine);
    const handler = await commandLine.file(
      'all.mjs',
      "export default (n) => { if (n === '0') return 0; process.exit(3); };",
    );
    const ended = await commandLine.run(
      ...['run', '--input', input, '--handler', handler, '--out', '-', '--concurrency', '1'],
      ...['--limit', '1', '--max-restarts', '2', '--json'],
    );
    expect(ended.code).toBe(1);
    const out = jsonLines<Line & { counts?: object }>(ended.stdout);
    expect(out.filter(({ status }) => status === 'succeeded')).toMatchObject([{ index: 0 }]);
    expect(out.at(-1)).toMatchObject({
      status: 'cancelled',
      counts: { succeeded: 1, cancelled: 19, inFlight: 0 },
    });
    const { error } = JSON.parse(ended.stderr.trim().split('\n').at(-1) ?? '');
    expect(error.code).toBe('FLEET');
    expect(error.message).toMatch(
      /^worker processes ended 3 times and finished nothing; the last one: worker process \d+ ended/,
    );
  });
});

describe('a fleet of worker processes', () => {
  test('replaces a process that was killed; it is live meanwhile, and ready afterwards', {
    timeout: 120_000,
  }, async ({ commandLine: { file, start, run } }) => {
    const handler = await file('echo.mjs', 'export default (payload) => payload;');
    const flags = ['--processes', '2', '--health-port', '0'];
    const worker = start('worker', '--handler', handler, ...flags);
    const [, pids = ''] = await saysIn(worker, 'stderr', /"pids":\[([\d,]+)\]/);
    const [, port = ''] = await saysIn(worker, 'stderr', /"port":(\d+)/);
    const ask = async (path: string) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`);
      return { status: response.status, body: (await response.json()) as { why: string[] } };
    };
    await until(async () => (await ask('/ready')).status === 200, STARTS);
    const [killed = 0] = pids.split(',').map(Number);
    process.kill(killed, 'SIGKILL');
    const away = await until(async () => {
      const answer = await ask('/ready');
      return answer.body.why.join().includes('being replaced') && answer;
    });
    expect(away).toMatchObject({
      status: 503,
      body: {
        live: true,
        why: [`worker process ${killed} ended by itself (SIGKILL); it is being replaced`],
      },
    });
    expect((await ask('/live')).status).toBe(200);
    await until(async () => (await ask('/ready')).status === 200, STARTS);
    // Said once the end is noted in Redis, which the new process does not wait for.
    await saysIn(worker, 'stderr', /another one is started[^\n]*\n/);
    const restarts = jsonLines<{ level: number; endedPid: number; signal?: string; msg: string }>(
      worker.said.stderr,
    ).filter(({ msg }) => msg.includes('another one is started'));
    expect(restarts).toMatchObject([{ level: 40, endedPid: killed, signal: 'SIGKILL' }]);
    // It has struck the dead one out, and the new one is there.
    await until(
      async () => {
        const list = jsonLines<{ pid: number }>((await run('workers', '--json')).stdout);
        return list.length === 2 && list.every(({ pid }) => pid !== killed);
      },
      { what: 'the registry has the two that live', ...STARTS },
    );
    worker.kill('SIGTERM');
    expect((await worker.finished).code).toBe(0);
  });

  test('kills a process that a handler blocks for ever, and starts another', {
    timeout: 180_000,
  }, async ({ commandLine: { file, start, run } }) => {
    const handler = await file('stuck.mjs', "export default (n) => { while (n === '1') {} };");
    const input = await file('two.txt', '0\n1\n2\n');
    const short = ['--max-block-ms', '6000', '--concurrency', '1'];
    const worker = start('worker', '--handler', handler, '--processes', '1', ...short);
    await saysIn(worker, 'stderr', /worker processes started/);
    const submitted = await run(
      ...['submit', '--input', input, '--id', `${unique}-stuck`, '--wait', '--json'],
      ...['--max-crashes', '1', '--tolerated-failures', '1'],
    );
    expect(submitted.code, submitted.stderr).toBe(0);
    const [, seconds, ran] = await saysIn(
      worker,
      'stderr',
      /did not answer for (\d+) s and was killed: a handler blocks its event loop; another one is started; it ran (\S+)"/,
    );
    // Counted in looks, so that a busy machine makes no difference: not its lease of 30 s as well.
    expect(Number(seconds)).toBeLessThan(10);
    expect(ran).toBe(`${unique}-stuck:1`);
    const failures = await run('failures', `${unique}-stuck`, '--json');
    expect(failures.stdout).toContain('had blocked its event loop');
    worker.kill('SIGTERM');
    expect((await worker.finished).code).toBe(0);
  });

  test('replaces a process whose slots are all occupied by handlers that do not stop', {
    timeout: 180_000,
  }, async ({ commandLine: { file, start, run } }) => {
    const handler = await file(
      'deaf.mjs',
      "export default (n) => n !== '0' || new Promise(() => {});",
    );
    const input = await file('two.txt', '0\n1\n');
    const short = ['--max-block-ms', '1000', '--drain-ms', '100', '--slow-ms', '1'];
    const worker = start(
      'worker',
      '--handler',
      handler,
      '--processes',
      '1',
      '--concurrency',
      '1',
      ...short,
    );
    const submitted = await run(
      ...['submit', '--input', input, '--id', `${unique}-deaf`, '--wait', '--json'],
      ...['--attempt-timeout-ms', '100', '--tolerated-failures', '1', '--limit', '1'],
    );
    expect(JSON.parse(submitted.stdout)).toMatchObject({ counts: { succeeded: 1, failed: 1 } });
    await saysIn(
      worker,
      'stderr',
      /could not work for \d+ s and was closed: 1 of 1 slots are occupied by .*; another one is started/,
    );
    worker.kill('SIGTERM');
    expect((await worker.finished).code).toBe(0);
  });

  test('shows in `errors` each sub-request that crashed its process too often', {
    timeout: 180_000,
  }, async ({ commandLine: { file, start, run } }) => {
    const handler = await file('exit.mjs', 'export default () => process.exit(3);');
    const input = await file('four.txt', '0\n1\n2\n3\n');
    const worker = start('worker', '--handler', handler, '--processes', '1');
    await saysIn(worker, 'stderr', /worker processes started/);
    const crashing = ['--id', `${unique}-noted`, '--max-crashes', '1'];
    await run('submit', '--input', input, ...crashing, '--wait');
    // The last of them may be recorded after the end of the request.
    const errors = await until(async () => {
      const found = jsonLines<{ index: number }>((await run('errors', '--json')).stdout);
      return found.length >= 4 && found;
    }, STARTS);
    expect(errors.sort((a, b) => a.index - b.index)).toMatchObject(
      [0, 1, 2, 3].map((index) => ({
        ...{ requestId: `${unique}-noted`, index, attempt: 1, name: 'CrashError' },
        worker: expect.stringMatching(/-\d+-/),
        message: expect.stringContaining('ended with exit code 3'),
      })),
    );
    worker.kill('SIGTERM');
    expect((await worker.finished).code).toBe(0);
  });

  test('logs an uncaught error as one JSON line', { timeout: 120_000 }, async ({
    commandLine: { file, start, run },
  }) => {
    const handler = await file(
      'outside.mjs',
      "export default () => new Promise(() => { setTimeout(() => { throw new Error('outside'); }); });",
    );
    const worker = start('worker', '--handler', handler, '--processes', '1');
    await saysIn(worker, 'stderr', /worker processes started/);
    const input = await file('one.txt', '0\n');
    const id = `${unique}-outside`;
    await run('submit', '--input', input, '--id', id, '--max-crashes', '1', '--wait');
    worker.kill('SIGTERM');
    const { stderr } = await worker.finished;
    const fatal = jsonLines<{ level: number; err?: object }>(stderr).filter(
      ({ level }) => level === 60,
    );
    expect(fatal).toMatchObject([{ err: { message: 'outside' }, origin: 'uncaughtException' }]);
  });

  test('drains when its terminal is closed, and leaves no process behind', {
    timeout: 120_000,
  }, async ({ commandLine: { file, start } }) => {
    const handler = await file('quiet.mjs', 'export default () => 1;');
    const worker = start('worker', '--handler', handler, '--processes', '2');
    const [, pids = ''] = await saysIn(worker, 'stderr', /"pids":\[([\d,]+)\]/);
    worker.kill('SIGHUP');
    expect((await worker.finished).code).toBe(0);
    expect(pids.split(',').map(Number).some(runs)).toBe(false);
  });

  test('whose parent is killed ends too, and says why', { timeout: 120_000 }, async ({
    commandLine: { file, start },
  }) => {
    const handler = await file('quiet.mjs', 'export default () => 1;');
    const worker = start('worker', '--handler', handler, '--processes', '2');
    const [, pids = ''] = await saysIn(worker, 'stderr', /"pids":\[([\d,]+)\]/);
    const children = pids.split(',').map(Number);
    worker.kill('SIGKILL');
    await worker.finished;
    await until(() => !children.some(runs), { what: 'its processes have ended', ...STARTS });
    const said = jsonLines<{ pid: number; msg: string }>(worker.said.stderr);
    const orphans = said.filter(({ msg }) => msg.startsWith('the parent process has ended'));
    expect(orphans.map(({ pid }) => pid).sort()).toEqual(children.sort());
  });

  test('that cannot start says why at once, and only once', async ({
    commandLine: { file, run },
  }) => {
    const handler = await file('broken.mjs', "throw new Error('no such table');");
    const ended = await run('worker', '--handler', handler, '--processes', '3');
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(
      /^piecework: --handler .* at .*broken\.mjs:1:7: Error: no such table$/m,
    );
    expect(ended.stderr.match(/no such table/g)).toHaveLength(1);
  });
});

describe('programs of --exec', () => {
  /** The shells that wrote their process id, once there are `count` of them. */
  const shells = (pids: string, count: number) =>
    until(async () => {
      if (!existsSync(pids)) return false;
      const found = (await readFile(pids, 'utf8')).trim().split('\n').map(Number);
      return found.length === count && found;
    }, STARTS);

  test.for([[[]], [['--persistent']]])(
    'end by the second Ctrl-C of run, with what they started: %j',
    { timeout: 120_000 },
    async ([mode], { commandLine: { file, folder } }) => {
      const input = await file('two.txt', 'one\ntwo\n');
      const pids = join(folder, 'pids');
      const command = `echo $$ >> ${pids}; trap '' TERM; sh -c 'echo $$ >> ${pids}; sleep 1000' | cat`;
      // On a Redis of its own: workers that are killed cannot strike themselves out.
      const args = ['run', '--input', input, '--exec', command, ...(mode as string[])];
      const { child, said, finished } = startCli(args);
      const all = await shells(pids, 4);
      await endAtOnce(
        () => child.kill('SIGINT'),
        () => said.stderr,
      );
      expect((await finished).code).toBe(130);
      await until(() => !all.some(runs), { what: 'all programs have ended' });
    },
  );

  test('that are running may end after the first Ctrl-C, each in its time', {
    timeout: 120_000,
  }, async ({ commandLine: { file, folder } }) => {
    const input = await file('three.txt', 'a\nb\nc\n');
    const out = join(folder, 'three.ndjson');
    const command = `touch ${folder}/began-{}; until test -e ${folder}/go-{}; do sleep 0.05; done; echo {}`;
    const args = ['run', '--input', input, '--exec', command, '-j', '2', '--out', out];
    const { child, said, finished } = startCli(args);
    await until(() => ['a', 'b'].every((one) => existsSync(join(folder, `began-${one}`))), STARTS);
    child.kill('SIGINT');
    await until(() => said.stderr.includes('stopping: handlers get 30s, '));
    const written = async () => (await readFile(out, 'utf8')).trim().split('\n');
    await file('go-a', '');
    await until(async () => (await written())[0]?.includes('"value":"a"'));
    await file('go-b', '');
    expect((await finished).stderr).toMatch(/cancelled: 2 succeeded, 0 failed, 1 cancelled of 3/);
    expect((await written())[1]).toContain('"value":"b"');
  });

  test('run again at once when their worker was killed and the programs have ended', {
    timeout: 120_000,
  }, async ({ commandLine: { file, folder, run } }) => {
    const input = await file('one.txt', 'one\n');
    const began = join(folder, 'began');
    const command = `test -e ${began} || { touch ${began}; kill -9 $PPID; sleep 1000; }; echo {}`;
    const args = ['run', '--input', input, '--exec', command, '--lease-ms', '600000'];
    const { code, stdout, stderr } = await run(...args, '--out', '-', '--format', 'text');
    expect([code, stdout], stderr).toEqual([0, 'one\n']);
  });

  test('end when their worker is killed', { timeout: 120_000 }, async ({
    commandLine: { connection, file, folder, queue, start, run },
  }) => {
    const input = await file('one.txt', 'one\n');
    const pids = join(folder, 'pids');
    const command = `echo $$ >> ${pids}; sh -c 'echo $$ >> ${pids}; sleep 1000' | cat`;
    const worker = start('worker', '--exec', command);
    await run('submit', '--input', input, '--id', `${unique}-killed`);
    const all = await shells(pids, 2);
    worker.kill('SIGKILL');
    await worker.finished;
    await until(() => !all.some(runs), { what: 'both have ended' });
    await run('drop', `${unique}-killed`);
    // It cannot strike itself out.
    await using admin = new Admin({ redis: connection, queue });
    const [dead] = await admin.workers();
    await new QueueCommands(connection, queue).deregister(dead?.id ?? '');
  });
});

test('a handler may still log after its abort, within the drain', { timeout: 120_000 }, async ({
  commandLine: { file, start, run },
}) => {
  const handler = await file(
    'late.mjs',
    `export default async (n, { signal, log }) => {
       await new Promise((resolve) => signal.addEventListener('abort', resolve));
       await new Promise((resolve) => setTimeout(resolve, 100));
       log.warn('cleared up');
     };`,
  );
  const input = await file('one.txt', 'one\n');
  await run('submit', '--input', input, '--id', `${unique}-late`);
  const worker = start('worker', '--handler', handler, '--drain-ms', '4000');
  await until(async () => (await run('status', `${unique}-late`)).stdout.includes('inFlight  1'), {
    what: 'it runs',
    ...STARTS,
  });
  worker.kill('SIGTERM');
  const { code, stderr } = await worker.finished;
  expect(code).toBe(0);
  expect(stderr).toContain('cleared up');
});
