/**
 * Stops servers.
 * @module-tag own-server
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createSilentServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { startRedis } from '@piecework/embedded';
import { QueueCommands } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { Admin } from 'piecework';
import { describe, expect } from 'vitest';
import { cli, STARTS, startCli } from '../support/cli.js';
import {
  type CommandLine,
  jsonLines,
  runCli,
  type Started,
  saysIn,
  test,
} from '../support/command-line.js';
import { nodesOf, numbers } from '../support/flow.js';
import { freshName } from '../support/given.js';
import { underAcl } from '../support/mode.js';
import { runs } from '../support/processes.js';
import { until } from '../support/until.js';

// Ids of requests are used by nobody else, whatever server this is.
const unique = freshName('request');

/*
 * `piecework worker` as a service: its health endpoint, its signals, its logs.
 */

const handler = fileURLToPath(new URL('../support/programs/handler.mjs', import.meta.url));

interface Verdict {
  status: number;
  live: boolean;
  ready: boolean;
  why: string[];
  running?: number;
  workers?: { state: string }[];
}

async function ask(port: number, path: '/live' | '/ready'): Promise<Verdict> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  return { ...((await response.json()) as Omit<Verdict, 'status'>), status: response.status };
}

const both = async (port: number): Promise<[number, number]> => [
  (await ask(port, '/live')).status,
  (await ask(port, '/ready')).status,
];

async function healthPort(worker: Started): Promise<number> {
  const [, port] = await saysIn(worker, 'stderr', /"port":(\d+),"msg":"health endpoint listens"/);
  return Number(port);
}

/** A handler that waits until `letGo`, so that anybody may look on, however slow he is. */
async function waitingHandler({ file, folder }: CommandLine) {
  const go = `${folder}/go`;
  const module = await file(
    'waits.mjs',
    `import { existsSync } from 'node:fs';
     import { setTimeout as sleep } from 'node:timers/promises';
     export default async (payload) => {
       while (!existsSync(${JSON.stringify(go)})) await sleep(10);
       return payload;
     };`,
  );
  return { module, letGo: () => file('go', '') };
}

async function busyWorker(commandLine: CommandLine, ...flags: string[]) {
  const { file, run, start } = commandLine;
  const { module, letGo } = await waitingHandler(commandLine);
  const input = await file('waits.txt', 'a\n'.repeat(20));
  const worker = start('worker', '--handler', module, '--health-port', '0', ...flags);
  const port = await healthPort(worker);
  await until(async () => (await ask(port, '/ready')).status === 200, {
    what: 'it is ready',
    ...STARTS,
  });
  expect(
    (await run('submit', '--input', input, '--id', `${unique}-waits`, '--limit', '2')).code,
  ).toBe(0);
  await until(async () => {
    const { running, workers } = await ask(port, '/ready');
    return running === 2 || workers !== undefined;
  }, STARTS);
  return { worker, port, letGo };
}

test('a worker that got SIGTERM is live but not ready, lets what runs end, and exits 0', async ({
  commandLine,
}) => {
  const { worker, port, letGo } = await busyWorker(commandLine);
  worker.kill('SIGTERM');
  const draining = await until(async () => {
    const verdict = await ask(port, '/ready');
    return verdict.status === 503 && verdict;
  });
  expect(draining).toMatchObject({ live: true, ready: false });
  expect(draining.why.join()).toContain('closing');
  expect((await ask(port, '/live')).status).toBe(200);
  await letGo();
  const { code } = await worker.finished;
  expect(code).toBe(0);
  // What ran has ended and counts; the rest waits for the next worker.
  const status = JSON.parse((await commandLine.run('status', `${unique}-waits`, '--json')).stdout);
  expect(status.counts).toMatchObject({ succeeded: 2, ready: 18, inFlight: 0, failed: 0 });
  await expect(fetch(`http://127.0.0.1:${port}/live`)).rejects.toThrow();
});

test('a drain that takes too long returns what runs, and a second signal ends it at once', async ({
  commandLine,
}) => {
  const { file, run, start, connection, queue } = commandLine;
  const input = await file('long.txt', 'wait:600000\n'.repeat(4));
  await run('submit', '--input', input, '--id', `${unique}-long`);
  const inFlight = async () =>
    JSON.parse((await run('status', `${unique}-long`, '--json')).stdout).counts.inFlight as number;

  const impatient = start('worker', '--handler', handler, '--drain-ms', '100');
  await until(async () => (await inFlight()) === 4, { what: 'all four run', ...STARTS });
  impatient.kill('SIGTERM');
  const cutOff = await impatient.finished;
  expect(cutOff.code).toBe(0);
  expect(cutOff.stderr).toContain(
    `"running":4,"requests":["${unique}-long"],"msg":"handlers did not end in time; their work goes to others"`,
  );
  const back = JSON.parse((await run('status', `${unique}-long`, '--json')).stdout);
  expect(back.counts).toMatchObject({ ready: 4, inFlight: 0, failed: 0 });

  const stubborn = start('worker', '--handler', handler, '--health-port', '0');
  const port = await healthPort(stubborn);
  // What it holds and has not begun it would give back, and be gone.
  await until(async () => (await ask(port, '/ready')).running === 4, {
    what: 'all four run again',
    ...STARTS,
  });
  stubborn.kill('SIGTERM');
  await saysIn(stubborn, 'stderr', /worker closing/);
  // A second one of the same kind would be the same, so soon.
  stubborn.kill('SIGINT');
  const ended = await stubborn.finished;
  expect(ended.code).toBe(130);
  expect(ended.stderr).toContain(
    'ended at once by a second signal; other workers take over its work',
  );
  // It could not say good-bye, and the registry would believe in it for a minute.
  await using admin = new Admin({ redis: connection, queue });
  const [left] = await admin.workers();
  await new QueueCommands(connection, queue).deregister(left?.id ?? '');
});

test('a fleet is live as long as one process is, and ready when all are', async ({
  commandLine,
}) => {
  const { worker, port, letGo } = await busyWorker(commandLine, '--processes', '2');
  expect(await both(port)).toEqual([200, 200]);
  const [, pids = ''] = await saysIn(worker, 'stderr', /"pids":\[([\d,]+)\]/);
  const [frozen = 0, other = 0] = pids.split(',').map(Number);
  process.kill(frozen, 'SIGSTOP');
  const verdict = await ask(port, '/live');
  expect(verdict).toMatchObject({ status: 200, live: true, ready: false });
  expect(verdict.why.join()).toContain(`process ${frozen} has not answered`);
  expect((await ask(port, '/ready')).status).toBe(503);
  process.kill(other, 'SIGSTOP');
  expect(await ask(port, '/live')).toMatchObject({ status: 503, live: false, ready: false });
  process.kill(frozen, 'SIGCONT');
  process.kill(other, 'SIGCONT');
  await until(async () => (await both(port)).join() === '200,200', {
    what: 'it is well again',
    ...STARTS,
  });
  await letGo();
  worker.kill('SIGTERM');
  expect((await worker.finished).code).toBe(0);
});

test('a fleet that is closing reports that a process has ended, not that one starts', async ({
  commandLine,
}) => {
  const { worker, port, letGo } = await busyWorker(commandLine, '--processes', '2');
  const [, pids = ''] = await saysIn(worker, 'stderr', /"pids":\[([\d,]+)\]/);
  const [stays = 0, ends = 0] = pids.split(',').map(Number);
  process.kill(stays, 'SIGSTOP');
  worker.kill('SIGTERM');
  await until(async () => (await ask(port, '/ready')).why.length > 0, STARTS);
  // It may have had nothing to wait for.
  if (runs(ends)) process.kill(ends, 'SIGKILL');
  const { why } = await until(async () => {
    const verdict = await ask(port, '/ready');
    return verdict.why.join().includes('a process has ended') && verdict;
  }, STARTS);
  expect(why.join()).not.toMatch(/undefined|starts|replaced/);
  process.kill(stays, 'SIGCONT');
  await letGo();
  expect((await worker.finished).code).toBe(0);
  // Killed in the midst of the end, it was struck out by nobody.
  const { connection, queue } = commandLine;
  await using admin = new Admin({ redis: connection, queue });
  for (const { id } of await admin.workers())
    await new QueueCommands(connection, queue).deregister(id);
});

test('a worker without Redis is live but not ready, says why, and is ready when Redis is back', {
  tags: 'processes',
}, async () => {
  const redis = await startRedis();
  const { child, said, finished } = startCli(
    ['worker', '--handler', handler, '--health-port', '0', '--lease-ms', '1000'],
    { redis: redis.url },
  );
  const found = await until(() => /"port":(\d+),"msg":"health/.exec(said.stderr), STARTS);
  const port = Number(found[1]);
  await until(async () => (await ask(port, '/ready')).status === 200, {
    what: 'it is ready',
    ...STARTS,
  });
  await redis.kill('SIGKILL');
  await redis.ended;
  const without = await until(async () => {
    const verdict = await ask(port, '/ready');
    return verdict.status === 503 && verdict;
  });
  expect(without).toMatchObject({ live: true, ready: false });
  expect(without.why.join()).toContain('no blocking connection to Redis');
  const again = await startRedis({ port: redis.port, password: redis.password });
  await until(async () => (await ask(port, '/ready')).status === 200, {
    what: 'it is ready again',
    ...STARTS,
  });
  child.kill('SIGTERM');
  expect((await finished).code).toBe(0);
  await again.close();
});

test('a health port that is taken is refused before the worker starts', async ({
  commandLine: { run },
}) => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const ended = await run('worker', '--handler', handler, '--health-port', `${port}`, '--json');
  taken.close();
  expect(ended.code).toBe(1);
  expect(JSON.parse(ended.stderr).error).toEqual({
    code: 'EADDRINUSE',
    message: `--health-port ${port}: another process listens there; choose another port, or 0 for a free one`,
  });
  expect((await run('workers')).stdout).toBe('no workers\n');
});

test('logs are JSON lines with the ids of worker and request, and never contain a payload', async ({
  commandLine: { file, run, start },
}) => {
  const secret = 'SECRET-0123456789';
  const module = await file(
    'logs.mjs',
    `export default (payload, { log }) => {
       log.info('at work');
       if (payload.n === 1) throw new Error('it failed');
       return payload;
     };`,
  );
  const input = await file(
    'secrets.ndjson',
    [0, 1, 2].map((n) => `{"n":${n},"s":"${secret}"}\n`).join(''),
  );
  const worker = start('worker', '--handler', module, '--log-level', 'trace');
  await run('submit', '--input', input, '--split', 'ndjson', '--id', `${unique}-logged`, '--wait');
  worker.kill('SIGTERM');
  const { code, stderr } = await worker.finished;
  expect(code).toBe(0);
  const lines = stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const what = lines.map(({ msg }) => msg);
  expect(what[0]).toBe('worker started');
  expect(what.at(-1)).toBe('worker closed');
  const [{ worker: id }] = lines;
  expect(id).toMatch(/-\d+-/);
  expect(lines.every((line) => line.worker === id)).toBe(true);
  const atWork = jsonLines<{ msg: string; requestId: string; index: number }>(stderr).filter(
    ({ msg }) => msg === 'at work',
  );
  expect(atWork.map(({ requestId, index }) => [requestId, index]).sort()).toEqual([
    [`${unique}-logged`, 0],
    [`${unique}-logged`, 1],
    [`${unique}-logged`, 2],
  ]);
  expect(stderr).not.toContain(secret);
});

test('a Redis that cannot be reached ends every command, which names its address', async ({
  commandLine: { file },
}) => {
  const input = await file('one.txt', 'a\n');
  const work = ['--exec', 'cat'];
  const commands = [
    ['run', '--input', input, ...work],
    ['submit', '--input', input],
    ['worker', ...work],
    ['worker', ...work, '--processes', '2'],
    ...['status', 'results', 'drop', 'watch'].map((command) => [command, 'some-id']),
    ...[['list'], ['workers'], ['watch']],
  ];
  // Nobody listens on port 1, the first that only root may have.
  for (const args of commands) {
    const ended = await runCli(args, { redis: 'redis://127.0.0.1:1' });
    expect(ended.code, args.join(' ')).toBe(1);
    expect(ended.stderr, args.join(' ')).toContain('ECONNREFUSED 127.0.0.1:1');
  }
});

describe('a worker that is stopped while it starts', () => {
  test.for([1, 2])(
    'ends in good order and leaves no worker registered: %i processes',
    async (processes, { commandLine }) => {
      const { file, folder, start, run } = commandLine;
      const loading = `${folder}/loading`;
      const module = await file(
        'slow.mjs',
        `import { writeFileSync } from 'node:fs';
       writeFileSync(${JSON.stringify(loading)}, '');
       await new Promise((resolve) => setTimeout(resolve, 1_000));
       export default (payload) => payload;`,
      );
      const worker = start('worker', '--handler', module, '--processes', `${processes}`);
      await until(() => existsSync(loading), {
        what: 'the handler is being loaded',
        ...STARTS,
      });
      worker.kill('SIGTERM');
      const { code, stderr } = await worker.finished;
      expect(code, stderr).toBe(0);
      expect(stderr).not.toContain('ERR_IPC');
      expect((await run('workers')).stdout).toBe('no workers\n');
    },
  );

  test('does not wait for a server that accepts connections and never answers', async () => {
    const silent = createSilentServer();
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const { child, finished } = startCli(['worker', '--handler', handler, '--health-port', '0'], {
      redis: `redis://127.0.0.1:${port}`,
    });
    await once(silent, 'connection');
    child.kill('SIGTERM');
    expect((await finished).code).toBe(0);
    // Whoever is not stopped is told after a while.
    const ended = await runCli(['list'], { redis: `redis://127.0.0.1:${port}` });
    expect(ended.code).toBe(1);
    const where = `no answer within 10 s from 127.0.0.1:${port}: `;
    expect(ended.stderr).toContain(where);
    expect(ended.stderr).toContain('then try again');
    silent.close();
  });
});

test('a worker ends although its handler keeps a timer running', async ({
  commandLine: { file, start },
}) => {
  const module = await file(
    'timer.mjs',
    'setInterval(() => {}, 1_000); export default (payload) => payload;',
  );
  const worker = start('worker', '--handler', module);
  await saysIn(worker, 'stderr', /worker started/);
  worker.kill('SIGTERM');
  expect((await worker.finished).code).toBe(0);
});

test('a fleet ends although a handler left a program behind that keeps its output open', async ({
  commandLine: { file, folder, run, start },
}) => {
  const pidFile = `${folder}/pid`;
  const module = await file(
    'leaves.mjs',
    `import { spawn } from 'node:child_process';
     import { writeFileSync } from 'node:fs';
     export default () => {
       const child = spawn('sleep', ['1000'], { stdio: 'inherit', detached: true });
       writeFileSync(${JSON.stringify(pidFile)}, String(child.pid));
       console.log('said by a handler');
     };`,
  );
  const input = await file('one.txt', 'a\n');
  const worker = start('worker', '--handler', module, '--processes', '2');
  await saysIn(worker, 'stderr', /worker processes started/);
  await run('submit', '--input', input, '--wait');
  await saysIn(worker, 'stdout', /said by a handler/);
  const left = Number(readFileSync(pidFile, 'utf8'));
  worker.kill('SIGTERM');
  // Not its output's end: that is in other hands.
  await until(() => !existsSync(`/proc/${worker.pid}`), { what: 'the fleet has ended' });
  process.kill(left, 'SIGKILL');
  expect((await worker.finished).code).toBe(0);
});

test('many probes at the same time ask each process once', async ({ commandLine }) => {
  const { worker, port, letGo } = await busyWorker(commandLine, '--processes', '2');
  const verdicts = await Promise.all(numbers(60).map(() => ask(port, '/ready')));
  expect(verdicts.every(({ status }) => status === 200)).toBe(true);
  const post = await fetch(`http://127.0.0.1:${port}/ready`, { method: 'POST' });
  expect(post.status).toBe(405);
  await letGo();
  worker.kill('SIGTERM');
  const { stderr } = await worker.finished;
  expect(stderr).not.toContain('Warning');
});

// As the ACL users nobody may be denied anything, which is what this is about.
test.skipIf(underAcl)(
  'a call that Redis refuses is logged with its request, and without its arguments',
  async ({ commandLine }) => {
    const { file, run, start, connection, redis } = commandLine;
    const secret = 'SECRET-9876543210';
    const { module, letGo } = await waitingHandler(commandLine);
    const input = await file('secret.txt', `${secret}\n`);
    const id = `${unique}-refused`;
    await run('submit', '--input', input, '--id', id);
    // Each node of a cluster has users of its own.
    const user = (...command: string[]) =>
      Promise.all(nodesOf(connection).map((node) => node.call('ACL', ...command)));
    await user('SETUSER', 'weak', 'on', '>weak', '~*', '&*', '+@all');
    const weak = redis.replace('//', '//weak:weak@');
    const flags = ['--lease-ms', '1000', '--log-level', 'trace', '--redis', weak];
    const worker = start('worker', '--handler', module, ...flags);
    await until(async () => (await run('status', id)).stdout.includes('inFlight  1'), STARTS);
    // The result comes when no script is allowed any more.
    await user('SETUSER', 'weak', '-@scripting');
    await letGo();
    const [line] = await saysIn(worker, 'stderr', new RegExp(`.*"requestId":"${id}".*`));
    expect(JSON.parse(line)).toMatchObject({ requestId: id, worker: expect.any(String) });
    await user('SETUSER', 'weak', '+@all');
    expect((await run('watch', id)).code).toBe(0);
    expect(worker.said.stderr).not.toContain(secret);
    worker.kill('SIGTERM');
    await worker.finished;
    await user('DELUSER', 'weak');
  },
);

test('a reader that closes the pipe ends a command quietly', async ({ commandLine }) => {
  const { file, redis, queue, run } = commandLine;
  const input = await file('many.txt', 'a\n');
  for (const n of numbers(3)) await run('submit', '--input', input, '--id', `${unique}-quiet-${n}`);
  const program = fileURLToPath(new URL('../../packages/cli/bin/piecework.js', import.meta.url));
  for (const command of ['watch --json --every-ms 100', 'list --json', 'watch']) {
    const piped = `${process.execPath} ${program} ${command} --queue ${queue} | head -1`;
    const shell = spawn('/bin/sh', ['-c', piped], {
      env: { ...process.env, REDIS_URL: redis },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stderr = '';
    shell.stderr.on('data', (text) => {
      stderr += text;
    });
    shell.stdout.resume();
    await once(shell, 'close');
    expect(stderr, command).toBe('');
  }
});

test('dev ends with an error when its Redis ends', async () => {
  const dev = startCli(['dev']);
  const [, url = ''] = await until(
    () => /^export REDIS_URL=(redis:\S+)\n/.exec(dev.said.stdout),
    STARTS,
  );
  const client = new Redis(url, { retryStrategy: () => null });
  client.on('error', () => {});
  client.shutdown('NOSAVE').catch(() => {});
  const { code, stderr } = await dev.finished;
  client.disconnect();
  expect(code).toBe(1);
  expect(stderr).toContain('ended by itself');
});

test('a wrong URL is refused without printing its password', async () => {
  const wrong = [
    'nonsense://user:topsecret@host',
    'redis://user:topsecret@127.0.0.1:99999',
    'redis://a:topsecret@b:c:d,redis://x',
    ':topsecret@host',
    'redis://me:topsecret',
    'redis:me:topsecret@host',
    '/:topsecret@host',
  ];
  const asFlag = await runCli(['list', '--rediss=redis://:topsecret@host']);
  const asCommand = await runCli(['redis://:topsecret@host']);
  for (const { code, stderr } of [asFlag, asCommand]) {
    expect([code, stderr]).toEqual([2, expect.stringMatching(/unknown (option|command) /)]);
    expect(stderr).not.toContain('topsecret');
  }
  for (const url of wrong) {
    for (const how of [{ redis: url }, {}]) {
      const flags = 'redis' in how ? [] : ['--redis', url];
      const ended = await runCli(['list', '--json', ...flags], how);
      expect(ended.code, url).toBe(2);
      expect(JSON.parse(ended.stderr).error.code, url).toBe('INVALID_OPTION');
      expect(ended.stderr, url).not.toContain('topsecret');
    }
  }
});

test.for<[string, string[]]>([
  ['the queue', []],
  ['a request', ['watched']],
])(
  'watch says that Redis cannot be reached, and continues when it is back: %s',
  { tags: 'processes', timeout: 120_000 },
  async ([, ids]) => {
    const redis = await startRedis();
    const on = { redis: redis.url };
    await cli(['submit', '--input', '-', '--id', 'watched'], { ...on, input: 'a\n' });
    const watch = startCli(['watch', ...ids, '--json', '--every-ms', '100'], on);
    const looks = () => watch.said.stdout.split('\n').length;
    await until(() => looks() > 3, STARTS);
    await redis.kill('SIGSTOP');
    await until(
      () => /^redis has not been reachable for \d+s, asking again$/m.test(watch.said.stderr),
      {
        what: 'it says so',
        ...STARTS,
      },
    );
    const before = looks();
    await redis.kill('SIGCONT');
    await until(() => /^redis answers again, after \d+s$/m.test(watch.said.stderr), STARTS);
    await until(() => looks() > before + 2, STARTS);
    watch.child.kill('SIGKILL');
    await watch.finished;
    await redis.close();
  },
);
