import { once } from 'node:events';
import { readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { queueKeys } from '@piecework/protocol';
import { describe, expect } from 'vitest';
import { endAtOnce, STARTS, startCli } from '../support/cli.js';
import { type CommandLine, jsonLines, runCli, saysIn, test } from '../support/command-line.js';
import { freshName } from '../support/given.js';
import type { Heard } from '../support/listen.js';
import { until } from '../support/until.js';

/*
 * A run with an --id on a Redis that outlives it: given again, its command continues where it was cut.
 */

// Ids of requests are used by nobody else, whatever server this is.
const unique = freshName('resume');
const TOTAL = 300;
const lines = (n: number) => Array.from({ length: n }, (_, i) => `${i}\n`).join('');
const all = Array.from({ length: TOTAL }, (_, i) => i);

/** A run of a handler that notes each index that it begins, and stands still from `stops` on until it may go on. */
async function given({ folder, file, redis, queue }: CommandLine, id: string, stops: number) {
  const paths = { ran: 'ran', go: 'go', out: 'out.ndjson', log: 'job.log' };
  const [ran, go, out, log] = Object.values(paths).map((name) => join(folder, name)) as [
    ...[string, string, string, string],
  ];
  await writeFile(ran, '');
  const handler = await file(
    'noting.mjs',
    `import { appendFileSync, existsSync } from 'node:fs';
     import { setTimeout as sleep } from 'node:timers/promises';
     export default async (payload, { index }) => {
       appendFileSync(${JSON.stringify(ran)}, index + '\\n');
       while (index >= ${stops} && !existsSync(${JSON.stringify(go)})) await sleep(20);
       return 'of ' + payload;
     };`,
  );
  const input = await file('many.txt', lines(TOTAL));
  const args = ['run', '--id', id, '--input', input, '--handler', handler, '--queue', queue];
  const flags = { '--id': id, '--handler': handler, '--queue': queue, '-j': '4' };
  const outputs = { '--processes': '1', '--out': out, '--joblog': log };
  /** The flags above, but those that are given. */
  const work = (more: readonly string[]) => {
    const rest = Object.entries({ ...flags, ...outputs }).filter(([flag]) => !more.includes(flag));
    return ['run', '--input', input, ...rest.flat(), ...more];
  };
  const numbers = async (path: string) =>
    (await readFile(path, 'utf8')).split('\n').slice(0, -1).map(Number);
  return {
    ...{ id, out, log, input, args },
    goOn: () => writeFile(go, ''),
    ran: () => numbers(ran),
    start: (...more: string[]) => startCli(work(more), { redis }),
    run: (...more: string[]) => runCli(work(more), { redis }),
    written: async () => jsonLines<{ index: number; value: string }>(await readFile(out, 'utf8')),
  };
}

/** Its workers go on for a while, and have its standard error open. */
async function killed({ child }: Heard): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

type Given = Awaited<ReturnType<typeof given>>;

const standsStill = (run: Given, stops: number) =>
  until(async () => (await run.ran()).length === stops + 4, {
    what: 'it has done what it may, and runs the next four',
    ...STARTS,
  });

async function expectWhole(run: Given): Promise<void> {
  const written = await run.written();
  expect(written.map(({ index }) => index)).toEqual(all);
  expect(written.every(({ index, value }) => value === `of ${index}`)).toBe(true);
  const [head, ...logged] = (await readFile(run.log, 'utf8')).trimEnd().split('\n');
  expect(head).toBe('Index\tWorker\tStarttime\tJobRuntime\tAttempts\tExitval\tSignal');
  expect(logged.map((line) => Number.parseInt(line, 10)).sort((a, b) => a - b)).toEqual(all);
}

describe('a run that is killed', () => {
  for (const [when, more] of [
    ['when all of its input is in', []],
    ['while its input is being read', ['--window', '40']],
  ] as const) {
    test(`${when} continues: nothing is run again, and its output is completed`, {
      tags: 'processes',
    }, async ({ commandLine }) => {
      const stops = 50;
      const id = `${unique}-killed-${more.length}`;
      const run = await given(commandLine, id, stops);
      const first = run.start(...more);
      await standsStill(run, stops);
      await killed(first);
      // As a kill in the middle of a write leaves it.
      const size = (await readFile(run.out)).length;
      await truncate(run.out, Math.max(0, size - 5));
      const second = run.start(...more);
      await until(() => /continues: \d+ of \d+/.test(second.said.stderr), {
        what: 'it says that it continues',
        ...STARTS,
      });
      await killed(second);
      await writeFile(run.log, 'Index\tWor');
      await run.goOn();
      const { code, stderr } = await run.run(...more);
      expect(code, stderr).toBe(0);
      // Its workers let run what they had begun.
      expect((await run.ran()).sort((a, b) => a - b)).toEqual(all);
      await expectWhole(run);
    });
  }

  test('with its workers, as by the end of the machine, runs again what they ran and no more', {
    tags: 'processes',
  }, async ({ commandLine }) => {
    const stops = 30;
    const run = await given(commandLine, `${unique}-machine`, stops);
    const first = run.start('--lease-ms', '2000', '--json');
    await standsStill(run, stops);
    const { stdout } = await commandLine.run('workers', '--json');
    for (const { pid } of jsonLines<{ pid: number }>(stdout)) process.kill(pid, 'SIGKILL');
    await killed(first);
    await run.goOn();
    const { code, stderr } = await run.run('--lease-ms', '2000');
    expect(code, stderr).toBe(0);
    const ran = await run.ran();
    expect([...new Set(ran)].sort((a, b) => a - b)).toEqual(all);
    expect(ran.length - TOTAL).toBeLessThanOrEqual(4);
    for (const index of all.slice(0, stops))
      expect(ran.filter((one) => one === index)).toHaveLength(1);
    await expectWhole(run);
    // Nobody has struck the dead one out; it would go by itself, later.
    const { workers, workerInfo } = queueKeys(commandLine.queue);
    await commandLine.connection.client.del(workers, workerInfo);
  });
});

test('Ctrl-C leaves a run with an id: what runs ends, and the same command continues', {
  tags: 'processes',
}, async ({ commandLine }) => {
  const stops = 50;
  const run = await given(commandLine, `${unique}-stopped`, stops);
  const first = run.start();
  await standsStill(run, stops);
  first.child.kill('SIGINT');
  await saysIn({ ...first, pid: 0, kill: () => {} }, 'stderr', /stopping: .* the rest stays/);
  await run.goOn();
  const { code, stderr } = await first.finished;
  expect(code, stderr).toBe(130);
  expect(stderr).toMatch(/\nstopped: \d+ succeeded, 0 failed of 300 in /);
  expect(stderr).toContain(`give the same command again: piecework run --id ${run.id} …\n`);
  const done = (await run.ran()).length;
  expect(done).toBeLessThan(TOTAL);
  expect(await run.written()).toHaveLength(done);
  const again = await run.run('-j', '9');
  expect(again.code, again.stderr).toBe(0);
  expect(again.stderr).toContain(`${run.id} continues: ${done} of 300 were done`);
  expect((await run.ran()).sort((a, b) => a - b)).toEqual(all);
  await expectWhole(run);
});

describe('a run that was ended by a second Ctrl-C', () => {
  const LEASE = ['--lease-ms', '600000'];

  async function endedTwice(first: ReturnType<Given['start']>): Promise<void> {
    await endAtOnce(
      () => first.child.kill('SIGINT'),
      () => first.said.stderr,
    );
    await first.finished;
  }

  test('continues at once, without waiting for the leases of its workers', {
    tags: 'processes',
  }, async ({ commandLine }) => {
    const stops = 30;
    const run = await given(commandLine, `${unique}-twice`, stops);
    const first = run.start(...LEASE);
    await standsStill(run, stops);
    await endedTwice(first);
    await run.goOn();
    const { code, stderr } = await run.run(...LEASE);
    expect(code, stderr).toBe(0);
    await expectWhole(run);
  });

  test('continues at once with programs as well, when they have ended', {
    tags: 'processes',
  }, async ({ commandLine: { folder, file, redis, queue } }) => {
    const input = await file('few.txt', lines(4));
    const id = `${unique}-programs`;
    const exec = `echo $$ >> '${folder}/ran'; while [ ! -e '${folder}/go' ]; do sleep 0.05; done`;
    const args = ['run', '--id', id, '--queue', queue, '--input', input, '--exec', exec, '-j', '4'];
    const first = startCli([...args, ...LEASE], { redis });
    const ran = async () =>
      (await readFile(join(folder, 'ran'), 'utf8').catch(() => '')).split('\n');
    await until(async () => (await ran()).length === 5, { what: 'four programs run', ...STARTS });
    await endedTwice(first);
    await writeFile(join(folder, 'go'), '');
    const { code, stderr } = await runCli([...args, ...LEASE], { redis });
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('4 succeeded, 0 failed of 4');
  });

  test('says for how long it waits when its workers may still run', {
    tags: 'processes',
  }, async ({ commandLine }) => {
    const stops = 30;
    const run = await given(commandLine, `${unique}-unknown`, stops);
    const first = run.start(...LEASE);
    await standsStill(run, stops);
    await endedTwice(first);
    // As on another machine.
    await commandLine.connection.client.del(queueKeys(commandLine.queue).runner(run.id));
    const second = run.start(...LEASE);
    await saysIn(
      { ...second, pid: 0, kill: () => {} },
      'stderr',
      /\d+ sub-requests are with workers of the last run; .* lease ends: at \d\d:\d\d:\d\d, in \d+ s\n/,
    );
    await killed(second);
    await run.goOn();
    // That one was of this machine.
    const { code, stderr } = await run.run(...LEASE);
    expect(code, stderr).toBe(0);
  });
});

test('worker processes that end again and again leave a run that continues with a corrected handler', {
  tags: 'processes',
}, async ({ commandLine: { file, folder, run } }) => {
  const mended = join(folder, 'mended');
  const handler = await file(
    'dying.mjs',
    `import { existsSync } from 'node:fs';
     export default (payload) => {
       if (!existsSync(${JSON.stringify(mended)})) process.exit(3);
       return payload;
     };`,
  );
  const input = await file('ten.txt', lines(10));
  const out = join(folder, 'out.ndjson');
  const id = `${unique}-dying`;
  const work = ['run', '--id', id, '--input', input, '--handler', handler, '--out', out];
  const args = [...work, '--lease-ms', '2000', '--max-restarts', '1'];
  const first = await run(...args);
  expect(first.code).toBe(1);
  expect(first.stderr).toContain('stopped: 0 succeeded, 0 failed of 10 in ');
  expect(first.stderr).toContain('ended 2 times and finished nothing');
  await writeFile(mended, '');
  const again = await run(...args);
  expect(again.code, again.stderr).toBe(0);
  const written = jsonLines<{ index: number }>(await readFile(out, 'utf8'));
  expect(written.map(({ index }) => index)).toEqual(Array.from({ length: 10 }, (_, i) => i));
});

describe('a run that has ended', () => {
  test('runs nothing when its command is given again, and completes its files', async ({
    commandLine,
  }) => {
    const run = await given(commandLine, `${unique}-ended`, TOTAL);
    const first = await run.run();
    expect(first.code, first.stderr).toBe(0);
    expect(first.stderr).toContain('stays in Redis for 1 day');
    const whole = [await readFile(run.out, 'utf8'), await readFile(run.log, 'utf8')];
    await truncate(run.out, 1_000);
    await writeFile(run.log, `${whole[1]}and more\n`);
    const again = await run.run();
    expect(again.code, again.stderr).toBe(0);
    expect(again.stderr).toContain('has ended before: nothing is run again');
    expect([await readFile(run.out, 'utf8'), await readFile(run.log, 'utf8')]).toEqual(whole);
    expect(await run.ran()).toHaveLength(TOTAL);
  });

  test('is not continued with another input, command or option', async ({ commandLine }) => {
    const run = await given(commandLine, `${unique}-other`, TOTAL);
    expect((await run.run()).code).toBe(0);
    const whole = await readFile(run.out, 'utf8');
    const input = await commandLine.file('more.txt', lines(TOTAL + 1));
    const others = [
      [['--input', input], 'input or command'],
      [
        ['--handler', await commandLine.file('other.mjs', 'export default () => 1;')],
        'input or command',
      ],
      [['--attempts', '2'], 'attempts'],
    ] as const;
    for (const [flags, what] of others) {
      const { code, stderr } = await run.run(...flags);
      expect(code).toBe(1);
      expect(stderr).toContain(`(it differs in: ${what}); take another --id`);
    }
    expect(await readFile(run.out, 'utf8')).toBe(whole);
    expect(await run.ran()).toHaveLength(TOTAL);
  });

  test('runs only its failures again with --retry-failed', async ({
    commandLine: { file, folder, run },
  }) => {
    const ran = await file('ran', '');
    const mended = join(folder, 'mended');
    const input = await file('ten.txt', lines(10));
    const exec = `x=$(cat); echo $x >> ${ran}; [ $((x % 3)) != 0 ] || [ -e ${mended} ] || exit 7; echo $x`;
    const [out, log] = [join(folder, 'out.ndjson'), join(folder, 'job.log')];
    const id = `${unique}-failed`;
    const work = ['run', '--id', id, '--input', input, '--exec', exec];
    const args = [...work, '--out', out, '--joblog', log];
    const first = await run(...args);
    expect(first.code).toBe(1);
    expect(first.stderr).toContain(
      '\nthe same command with --retry-failed runs the failures again\n',
    );
    const columns = async () =>
      (await readFile(log, 'utf8'))
        .split('\n')
        .slice(1, -1)
        .map((line) => line.split('\t'));
    expect((await columns()).filter(([, , , , , code]) => code === '7')).toHaveLength(4);
    expect((await run(...args)).code).toBe(1);
    await writeFile(mended, '');
    const retried = await run(...args, '--retry-failed');
    expect(retried.code, retried.stderr).toBe(0);
    const count = (await readFile(ran, 'utf8')).split('\n').length - 1;
    expect(count).toBe(10 + 4);
    const written = jsonLines<{ index: number; status: string }>(await readFile(out, 'utf8'));
    expect(written.map(({ index, status }) => [index, status])).toEqual(
      Array.from({ length: 10 }, (_, i) => [i, 'succeeded']),
    );
    expect((await columns()).every(([, , , , , code]) => code === '0')).toBe(true);
    expect(await columns()).toHaveLength(10);
  });
});

test('--resume begins no new run, and a file that is not empty is not overwritten', async ({
  commandLine: { file, run, redis },
}) => {
  const input = await file('one.txt', 'a\n');
  const out = await file('out.ndjson', 'of an earlier run\n');
  const id = `${unique}-absent`;
  const work = ['run', '--id', id, '--input', input, '--exec', 'cat'];
  const resumed = await run(...work, '--resume');
  expect(resumed.code).toBe(1);
  expect(resumed.stderr).toContain(`nothing to continue: no request ${id} is known`);
  expect(resumed.stderr).toContain('; without --resume the run begins from the start');
  const retried = await run(...work, '--retry-failed');
  expect([retried.code, retried.stderr]).toEqual([
    1,
    expect.stringContaining('; without --retry-failed the run begins from the start'),
  ]);
  for (const flag of ['--out', '--joblog']) {
    const begun = await run(...work, flag, out);
    expect(begun.code).toBe(2);
    expect(begun.stderr).toContain('a new or empty one, as this run begins from the start');
  }
  const ownRedis = await runCli([...work, '--out', out]);
  expect([ownRedis.code, ownRedis.stderr]).toEqual([
    2,
    expect.stringContaining('a Redis of its own ends with it'),
  ]);
  expect(await readFile(out, 'utf8')).toBe('of an earlier run\n');
  const nameless = await run('run', '--input', input, '--exec', 'cat', '--resume');
  expect([nameless.code, nameless.stderr]).toEqual([
    2,
    expect.stringContaining('together with --id'),
  ]);
  const without = await runCli([...work, '--resume']);
  expect([without.code, without.stderr]).toEqual([
    2,
    expect.stringContaining('--redis or REDIS_URL'),
  ]);
  expect((await runCli([...work, '--queue', 'none'], { redis })).code).toBe(0);
  expect((await runCli(['drop', id], { redis })).code).toBe(0);
});

describe('a run that is under way', () => {
  test('is not run a second time, and is not disturbed', { tags: 'processes' }, async ({
    commandLine,
  }) => {
    const run = await given(commandLine, `${unique}-twice`, 20);
    const first = run.start();
    await standsStill(run, 20);
    const second = await run.run('--json');
    expect(second.code).toBe(1);
    expect(JSON.parse(second.stderr).error).toMatchObject({
      code: 'UNDER_WAY',
      message: expect.stringContaining(`by process ${first.child.pid} on `),
    });
    await run.goOn();
    expect((await first.finished).code).toBe(0);
    await expectWhole(run);
  });

  test('ends when another run has taken over', { tags: 'processes' }, async ({ commandLine }) => {
    const run = await given(commandLine, `${unique}-frozen`, 20);
    const first = run.start('--drain-ms', '100');
    await standsStill(run, 20);
    const { connection, queue } = commandLine;
    const other = { token: 'other', host: 'elsewhere', pid: 1, machine: 'another' };
    const key = queueKeys(queue).runner(run.id);
    await connection.client.set(key, JSON.stringify(other), 'PX', 60_000);
    const { code, stderr } = await first.finished;
    expect(code).toBe(1);
    expect(stderr).toContain('is being run already, by process 1 on elsewhere');
    expect(JSON.parse((await connection.client.get(key)) ?? '{}')).toEqual(other);
    await connection.client.del(key);
  });
});
