import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect } from 'vitest';
import { cli, STARTS, startCli } from '../support/cli.js';
import { type CommandLine, jsonLines, saysIn, test } from '../support/command-line.js';
import { freshName } from '../support/given.js';
import { until } from '../support/until.js';

// Ids of requests are used by nobody else, whatever server this is.
const unique = freshName('request');
const PROGRAM = fileURLToPath(new URL('../../packages/cli/bin/piecework.js', import.meta.url));
const handler = fileURLToPath(new URL('../support/programs/handler.mjs', import.meta.url));

/*
 * What `run` leaves when something goes wrong: results, failures, words.
 */

const lines = (n: number) => Array.from({ length: n }, (_, i) => `${i}\n`).join('');
const last = (text: string) => JSON.parse(text.trim().split('\n').at(-1) ?? '');

/** Fails every third one with its number in the message, and of the others 10 by another error. */
const twoKinds = ({ file }: CommandLine) =>
  file(
    'two-kinds.mjs',
    `export default (payload, { index }) => {
       if (index % 3 === 0) throw new RangeError('item ' + index + ' is too \\u001b[31mlarge');
       if (index === 10) throw new TypeError('odd');
       return payload;
     };`,
  );

test('an output that cannot be written ends a command before it has begun, in one sentence', async ({
  commandLine: { file, folder, run },
}) => {
  const input = await file('one.txt', 'a\n');
  const ran = join(folder, 'ran');
  const work = ['--input', input, '--exec', `touch ${ran}`];
  const missing = join(folder, 'no', 'such', 'folder');
  const commands = [
    ['run', ...work, '--out', folder],
    ['run', ...work, '--out-dir', missing],
    ['submit', '--input', input, '--wait', '--out', missing],
    ['results', 'some-id', '--out', missing],
  ];
  for (const command of commands) {
    const { code, stderr } = await run(...command);
    expect(code, stderr).toBe(2);
    expect(stderr).toMatch(
      command.includes(folder) ? /\(it is a folder\)\n$/ : /\(its folder does not exist\)\n$/,
    );
    expect(stderr.trim().split('\n')).toHaveLength(1);
  }
  expect(existsSync(ran)).toBe(false);
  expect((await run('list', '--state', 'all')).stdout).toMatch(/^no requests in the queue /);
});

test('a folder that is not writable is not reported as missing', async ({
  commandLine: { file, run },
}) => {
  const input = await file('one.txt', 'a\n');
  const { code, stderr } = await run('run', '--input', input, '--exec', 'cat', '--out', '/proc/x');
  expect([code, stderr]).toEqual([2, expect.stringContaining('(its folder takes no new files)')]);
});

test('a file keeps its content when a run could not begin', async ({ commandLine: { file } }) => {
  const input = await file('one.txt', 'a\n');
  const out = await file('out.ndjson', 'of an earlier run\n');
  const args = ['run', '--input', input, '--exec', 'cat', '--out', out];
  // Nobody listens on port 1, the first that only root may have.
  expect((await cli(args, { redis: 'redis://127.0.0.1:1' })).code).toBe(1);
  expect(await readFile(out, 'utf8')).toBe('of an earlier run\n');
});

describe('a run in which something failed', () => {
  test('groups its failures by kind, and stays in Redis', async ({ commandLine }) => {
    const { file, run } = commandLine;
    const input = await file('many.txt', lines(20));
    const id = `${unique}-kinds`;
    const work = ['--handler', await twoKinds(commandLine)];
    const { code, stderr } = await run('run', '--input', input, '--id', id, ...work);
    expect(code).toBe(1);
    expect(stderr).toContain('failed: 12 succeeded, 8 failed of 20');
    expect(stderr).toContain('\n  7 × RangeError: item 0 is too large (index 0, 3, 6, …)\n');
    expect(stderr).toContain('\n  1 × TypeError: odd (index 10)\n');
    expect(stderr).toContain(`\nrequest ${id} stays in Redis for 1 day:\n`);
    const commands = [...stderr.matchAll(/^ {2}piecework (.+)$/gm)].map(([, words = '']) => words);
    expect(commands).toEqual([`failures ${id}`, `status ${id}`]);
    for (const command of commands) {
      const looked = await run(...command.split(' '));
      expect(looked.code, looked.stderr).toBe(0);
      expect(looked.stdout).toMatch(/RangeError|complete \(failed\)/);
    }
    const again = await run('run', '--input', input, '--id', id, ...work);
    expect(again.code).toBe(1);
    expect(again.stderr).toContain(`${id} has ended before: nothing is run again`);
  });

  test('groups programs by exit code, and shows the message of one', async ({
    commandLine: { file, run },
  }) => {
    const input = await file('many.txt', lines(12));
    const ended = await run(
      'run',
      '--input',
      input,
      '--exec',
      'echo "no $(cat)" >&2; exit 3',
      '--json',
    );
    expect(JSON.parse(ended.stdout)).toMatchObject({
      kept: true,
      failures: [
        { name: 'ExitError', message: 'exit code 3: no 0', count: 12, indexes: [0, 1, 2] },
      ],
    });
  });

  test('without failures leaves nothing behind', async ({ commandLine: { file, run } }) => {
    const input = await file('many.txt', lines(5));
    const { stdout } = await run('run', '--input', input, '--handler', handler, '--json');
    expect(JSON.parse(stdout)).toMatchObject({ kept: false });
    expect((await run('list', '--state', 'all')).stdout).toMatch(/^no requests in the queue /);
  });

  test('writes its failures into a new file when its Redis ends with it', {
    tags: 'processes',
  }, async ({ commandLine }) => {
    const { file } = commandLine;
    const input = await file('many.txt', lines(20));
    const work = ['--handler', await twoKinds(commandLine)];
    const { stderr } = await cli(['run', '--input', input, ...work]);
    const [, path = ''] = /^all failures: (.+)$/m.exec(stderr) ?? [];
    expect(path.startsWith(tmpdir())).toBe(true);
    const written = jsonLines<{ payload: string }>(await readFile(path, 'utf8'));
    await rm(path);
    expect(written.map(({ payload }) => payload)).toEqual([
      '0',
      '3',
      '6',
      '9',
      '10',
      '12',
      '15',
      '18',
    ]);
    expect(stderr).not.toContain('stays in Redis');
  });
});

test('a run without a name says how another terminal can follow it', async ({
  commandLine: { file, run, start, queue },
}) => {
  const input = await file('long.txt', 'wait:600000\n');
  const long = start('run', '--input', input, '--handler', handler);
  const says = /^(run-\S+) begins; follow it: piecework top --queue (\S+)$/m;
  const [, id = '', said = ''] = await saysIn(long, 'stderr', says);
  expect(said).toBe(queue);
  expect((await run('status', id)).code).toBe(0);
  await run('cancel', id);
  await long.finished;
});

describe('on a full disk', () => {
  test('a run continues, and its results stay in Redis', async ({ commandLine: { file, run } }) => {
    const input = await file('many.txt', lines(50));
    const id = `${unique}-full`;
    const args = ['run', '--input', input, '--handler', handler, '--id', id];
    const { code, stderr } = await run(...args, '--out', '/dev/full');
    expect(code).toBe(1);
    expect(stderr).toContain('succeeded: 50 succeeded, 0 failed of 50');
    expect(stderr).toContain('/dev/full: no space left on the disk; it has 0 of 50 results\n');
    const [, words = ''] = /^ {2}piecework (results .+) --out FILE$/m.exec(stderr) ?? [];
    const results = jsonLines<{ index: number }>((await run(...words.split(' '))).stdout);
    expect(results.map(({ index }) => index)).toEqual(Array.from({ length: 50 }, (_, i) => i));
  });

  test('a run whose Redis ends with it writes the results into another folder', {
    tags: 'processes',
  }, async ({ commandLine: { file } }) => {
    const input = await file('many.txt', lines(50));
    const args = ['run', '--input', input, '--handler', handler, '--out', '/dev/full'];
    const { code, stderr } = await cli(args);
    expect(code).toBe(1);
    const [, path = ''] = /^all results: (.+)$/m.exec(stderr) ?? [];
    expect(jsonLines(await readFile(path, 'utf8'))).toHaveLength(50);
    await rm(path);
  });

  test('a joblog is named as such, with the lines that it has', async ({
    commandLine: { file, run },
  }) => {
    const input = await file('many.txt', lines(5));
    const args = ['run', '--input', input, '--handler', handler, '--joblog', '/dev/full'];
    const { code, stderr } = await run(...args);
    expect(code).toBe(1);
    expect(stderr).toContain('no space left on the disk; the run continues without a joblog\n');
    expect(stderr).toContain(
      '\n--joblog /dev/full: no space left on the disk; it has 0 of 5 lines\n',
    );
    expect(last((await run(...args, '--json')).stdout)).toMatchObject({
      joblogError: '/dev/full: no space left on the disk',
    });
  });

  test('standard output has whole results up to there, and the run says how many', async ({
    commandLine: { file, folder, queue, redis },
  }) => {
    const input = await file('many.txt', lines(200));
    const out = join(folder, 'out');
    // 8 KiB; less than the results have.
    const limited = `ulimit -f 8; exec "$@" > '${out}'`;
    const args = ['run', '--input', input, '--handler', handler, '--queue', queue, '--out', '-'];
    const ended = spawnSync('bash', ['-c', limited, 'bash', process.execPath, PROGRAM, ...args], {
      ...{ encoding: 'utf8', env: { ...process.env, REDIS_URL: redis } },
    });
    expect(ended.status, ended.stderr).toBe(1);
    const text = await readFile(out, 'utf8');
    expect(text).toHaveLength(8_192);
    const count = text.split('\n').length - 1;
    expect(ended.stderr).toContain(
      `standard output: the file would be too large; it has ${count} of 200 results\n`,
    );
    expect(ended.stderr).toContain('piecework results ');
  });

  test('submit and run --json say that their output was lost', async ({
    commandLine: { file, queue, redis },
  }) => {
    const input = await file('few.txt', lines(2));
    const full = openSync('/dev/full', 'w');
    const said = async (...args: string[]) => {
      const { child, finished } = startCli([...args, '--queue', queue], { redis, stdout: full });
      const { stderr } = await finished;
      return { code: child.exitCode, stderr };
    };
    const lost = {
      code: 1,
      stderr: expect.stringContaining(
        'piecework: standard output cannot be written: no space left',
      ),
    };
    expect(await said('submit', '--input', input, '--id', `${unique}-lost`)).toEqual(lost);
    const work = ['--exec', 'cat', '--id', `${unique}-json`, '--json'];
    expect(await said('run', '--input', input, ...work)).toEqual(lost);
    closeSync(full);
  });

  test('submit --wait says how its results can be fetched', async ({
    commandLine: { file, run, start },
  }) => {
    const input = await file('many.txt', lines(5));
    start('worker', '--handler', handler);
    const args = ['submit', '--input', input, '--id', `${unique}-submitted`, '--wait'];
    const { code, stderr } = await run(...args, '--out', '/dev/full');
    expect(code).toBe(1);
    expect(stderr).toContain(`piecework results ${unique}-submitted`);
  });
});

test('items of a slow input are run as they come, and their results are written', async ({
  commandLine: { queue, redis },
}) => {
  const args = ['run', '--input', '-', '--handler', handler, '--out', '-', '--queue', queue];
  const run = startCli(args, { redis, input: null });
  run.child.stdin?.write('one\n');
  await until(() => run.said.stdout.includes('"one"'), { what: 'the first is done', ...STARTS });
  run.child.stdin?.end('two\n');
  const { code, stdout } = await run.finished;
  expect([code, jsonLines(stdout).length]).toEqual([0, 2]);
});

test('everything before a wrong line is run, and is in the output', async ({
  commandLine: { file, folder, run },
}) => {
  const out = join(folder, 'out.ndjson');
  // Long enough for the first lines to be submitted before the wrong one is read.
  const input = await file('wrong.ndjson', `${'"x"\n'.repeat(20_000)}{oops\n`);
  const id = `${unique}-wrong`;
  const args = ['run', '--input', input, '--split', 'ndjson', '--handler', handler, '--id', id];
  const { code, stdout, stderr } = await run(...args, '--out', out, '--json');
  expect(code).toBe(1);
  expect(stderr).toContain('line 20001');
  const { status, counts, kept } = last(stdout);
  expect([status, kept]).toEqual(['cancelled', true]);
  expect([counts.succeeded, counts.cancelled]).toEqual([20_000, 0]);
  expect(jsonLines(await readFile(out, 'utf8'))).toHaveLength(counts.succeeded);
});

test('so are items that were not sent yet when the wrong line was read', async ({
  commandLine: { file, run },
}) => {
  const input = await file('wrong.csv', 'a,b\n1,2\n3,4\n5\n');
  const args = ['run', '--input', input, '--split', 'csv', '--exec', 'echo {a}', '--out', '-'];
  const { code, stdout, stderr } = await run(...args, '--format', 'text');
  expect([code, stdout]).toEqual([1, '1\n3\n']);
  expect(stderr).toMatch(
    /wrong\.csv: line 4 has 1 field, the header 2 fields; --bad-rows FILE leaves out such records; what was read before that is run/,
  );
});

test('a request that ends before its items have been read says why', async ({
  commandLine: { file, run },
}) => {
  const input = await file('bad.txt', `bad\n${'x\n'.repeat(50_000)}`);
  const args = ['run', '--input', input, '--handler', handler, '--window', '100'];
  const { code, stderr } = await run(...args, '--on-exceeded', 'cancel');
  expect(code).toBe(1);
  expect(stderr).toContain('1 × TypeError: this one is bad (index 0)');
  expect(stderr).not.toContain('takes no more items');
});

describe('how many run at once', () => {
  /** Gives how many ran in its process; the first ones wait for so many others, for two seconds at most. */
  const counting = ({ file }: CommandLine, wanted: number) =>
    file(
      'counting.mjs',
      `import { setTimeout as sleep } from 'node:timers/promises';
       let running = 0;
       let waits = 100;
       export default async () => {
         running += 1;
         while (running < ${wanted} && waits > 0) {
           await sleep(20);
           waits -= 1 / ${wanted};
         }
         waits = 0;
         await sleep(20);
         const seen = running;
         running -= 1;
         return { pid: process.pid, seen };
       };`,
    );

  /** The most that ran at once, in each process. */
  async function atOnce(commandLine: CommandLine, wanted: number, ...flags: string[]) {
    const { file, folder, run } = commandLine;
    const input = await file('many.txt', lines(60));
    const out = join(folder, 'out.ndjson');
    const work = ['--handler', await counting(commandLine, wanted), '--out', out];
    const { stderr, code } = await run('run', '--input', input, ...work, ...flags);
    expect(code, stderr).toBe(0);
    const most = new Map<number, number>();
    for (const { value } of jsonLines<{ value: { pid: number; seen: number } }>(
      await readFile(out, 'utf8'),
    )) {
      most.set(value.pid, Math.max(most.get(value.pid) ?? 0, value.seen));
    }
    return { most: [...most.values()], stderr };
  }

  test('is -j, spread over processes', async ({ commandLine }) => {
    const { most, stderr } = await atOnce(commandLine, 3, '-j', '5', '--processes', '2');
    expect(most).toHaveLength(2);
    expect(Math.max(...most)).toBe(3);
    expect(stderr).not.toContain('--limit');
  });

  test('is as many as a limit allows, without a remark on slots', async ({ commandLine }) => {
    const { most, stderr } = await atOnce(commandLine, 30, '--limit', '30');
    expect(most).toEqual([30]);
    expect(stderr).not.toContain('--limit');
  });

  test('has no cap that was not asked for', async ({ commandLine }) => {
    const { most } = await atOnce(commandLine, 40, '--concurrency', '40');
    expect(most).toEqual([40]);
  });

  test('is remarked on when a limit leaves slots idle, or is never reached', async ({
    commandLine,
  }) => {
    const idle = await atOnce(commandLine, 20, '--limit', '20', '--concurrency', '50');
    expect(idle.stderr).toContain('\n--limit 20 left 30 of 50 slots idle\n');
    const few = await atOnce(commandLine, 20, '--limit', '50', '--concurrency', '20');
    expect(few.stderr).toContain('\n--limit 50 was never reached: there were 20 slots');
  });

  test('may be set by at most two flags', async ({ commandLine: { file, run } }) => {
    const input = await file('one.txt', 'a\n');
    const flags = ['-j', '5', '--processes', '2', '--concurrency', '2'];
    const { code, stderr } = await run('run', '--input', input, '--exec', 'cat', ...flags);
    expect(code).toBe(2);
    expect(stderr).toContain('at most one of --processes and --concurrency');
  });
});

describe('without --out', () => {
  const LOST = 'no --out: what the programs printed was discarded (--out - shows it)\n';

  test('the output of programs is discarded, whatever its size, and the run says so', {
    tags: 'processes',
  }, async ({ commandLine: { file } }) => {
    const input = await file('many.txt', lines(5));
    const args = ['run', '--input', input, '--exec'];
    const { code, stderr } = await cli([...args, 'head -c 3000000 /dev/zero']);
    expect(code, stderr).toBe(0);
    expect(stderr.endsWith(LOST)).toBe(true);
    expect((await cli([...args, 'test {}'])).stderr).not.toContain(LOST);
  });

  test('a handler may return a value of any size', { tags: 'processes' }, async ({
    commandLine: { file },
  }) => {
    const input = await file('many.txt', lines(2));
    const large = await file('large.mjs', "export default () => 'x'.repeat(3_000_000);");
    const { code, stderr } = await cli(['run', '--input', input, '--handler', large]);
    expect(code, stderr).toBe(0);
  });
});
