/**
 * Users and passwords that change while processes are connected.
 * @module-tag own-server
 * @module-tag processes
 */
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { STARTS, startCli } from '../support/cli.js';
import { type Flow, gate, numbers, RENEWAL_THREAD, test } from '../support/flow.js';
import { startProgram } from '../support/processes.js';
import { startOwnRedis } from '../support/redis.js';
import { until } from '../support/until.js';

const RIGHTS = ['~*', '&*', '+@all'];

/** A server with a user `app`, whose first password is `p0`; nobody else may sign in, except by the socket of the test. */
async function started(flow: Flow) {
  const { url, close } = await startOwnRedis();
  flow.after(close);
  const operator = new Redis(url, { username: 'operator', password: 'o', lazyConnect: true });
  const setup = new Redis(url);
  await setup.call('ACL', 'SETUSER', 'operator', 'on', '>o', ...RIGHTS);
  await setup.call('ACL', 'SETUSER', 'app', 'on', '>p0', ...RIGHTS);
  await setup.call('ACL', 'SETUSER', 'default', 'off');
  setup.disconnect();
  await operator.connect();
  flow.after(() => operator.disconnect());
  return { url, operator };
}

/** Connections of `app` and others, as the server lists them: id, name and user. */
async function listed(operator: Redis) {
  const lines = String(await operator.client('LIST'))
    .trim()
    .split('\n');
  const all = lines.map((line) => {
    const of = (field: string) => new RegExp(`\\b${field}=(\\S*)`).exec(line)?.[1] ?? '';
    return { id: of('id'), name: of('name'), user: of('user'), ssub: Number(of('ssub')) };
  });
  return all.filter(({ user }) => user !== 'operator');
}

test('a worker whose password is refused is not ready, and says why', async ({ flow }) => {
  const { url, operator } = await started(flow);
  const codes = new Set<string>();
  const worker = flow.worker({
    redis: url.replace('//', '//app:p0@'),
    handler: (n: number) => n,
  });
  worker.on('error', (error) => codes.add((error as { code?: string }).code ?? ''));
  await worker.start();
  await operator.call('ACL', 'SETUSER', 'app', 'resetpass', '>p1');
  await operator.client('KILL', 'USER', 'app');
  await until(() => worker.health().why.some((why) => why.includes('WRONGPASS')), {
    what: 'it names the password',
  });
  expect(worker.health().ready).toBe(false);
  expect(codes).toContain('PASSWORD');
});

const failing = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: { code: string; message: string }) => error,
  );

test('a password that changes again and again stops no work, also where handlers block the event loop', async ({
  flow,
}) => {
  const { url, operator } = await started(flow);
  const folder = await mkdtemp(join(tmpdir(), 'piecework-credentials-'));
  flow.after(() => rm(folder, { recursive: true }));
  const file = join(folder, 'password.json');
  const passwords = ['p0'];
  const write = async (password: string) => {
    await writeFile(`${file}.new`, JSON.stringify({ username: 'app', password }));
    await rename(`${file}.new`, file);
  };
  await write('p0');
  // The thread renews while the loop is blocked, for longer than a third of the lease.
  const settings = {
    url,
    queue: flow.queue,
    file,
    leaseMs: 4_000,
    blockMs: 2_000,
    blockEvery: 150,
  };
  const workers = [1, 2].map(() => startProgram(flow, 'rotating-worker', settings));
  for (const worker of workers) expect(await worker.said()).toEqual({ started: true });
  await using pw = new Piecework({
    redis: { url, credentials: () => ({ username: 'app', password: passwords.at(-1) as string }) },
    queue: flow.queue,
  });
  const ran: number[] = [];
  const hear = async (worker: (typeof workers)[number]) => {
    for (;;) ran.push((await worker.said<{ ran: number }>()).ran);
  };
  const request = await pw.submit(numbers(600), { id: flow.id('rotated'), limit: 6 });
  for (const worker of workers) void hear(worker).catch(() => {});
  const completion = request.completion();
  let rotations = 0;
  for (; rotations < 6; rotations += 1) {
    const before = ran.length;
    await until(() => ran.length >= Math.min(600, before + 60));
    const next = `p${rotations + 1}`;
    await operator.call('ACL', 'SETUSER', 'app', `>${next}`);
    // As services that rotate do, the one before is accepted until the next rotation.
    const old = passwords.at(-2);
    if (old) await operator.call('ACL', 'SETUSER', 'app', `<${old}`);
    passwords.push(next);
    await write(next);
    await operator.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await operator.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  }
  expect(await completion).toMatchObject({ status: 'succeeded', counts: { succeeded: 600 } });
  await until(() => ran.length >= 600);
  expect([...ran].sort((a, b) => a - b)).toEqual(numbers(600));
});

describe('a password that changes without `credentials`', () => {
  const ends = async (flow: Flow, more: readonly string[]) => {
    const { url, operator } = await started(flow);
    const redis = url.replace('redis://', 'redis://app:p0@');
    const args = ['worker', '--exec', 'cat', '--queue', flow.queue, '--log-format', 'json'];
    const worker = startCli([...args, ...more], { redis });
    flow.after(() => worker.child.kill('SIGKILL'));
    await until(() => /worker (processes )?started"/.test(worker.said.stderr), STARTS);
    await operator.call('ACL', 'SETUSER', 'app', '>p1', '<p0');
    await operator.client('KILL', 'USER', 'app');
    const { code, stderr } = await worker.finished;
    expect(code).toBe(1);
    const last = JSON.parse(stderr.trim().split('\n').at(-1) as string);
    expect(last).toMatchObject({ level: 60, code: 'PASSWORD' });
    expect(last.msg).toMatch(/WRONGPASS .*operations\.md#passwords-that-change/);
  };

  test.for([true, false])(
    'makes a worker not ready, which says that it is refused (all slots in use: %s)',
    async (isBusy, { flow }) => {
      const { url, operator } = await started(flow);
      const redis = url.replace('redis://', 'redis://app:p0@');
      const held = gate();
      flow.after(() => held.open());
      const worker = flow.worker({ redis, concurrency: 1, handler: () => held.opened });
      await worker.start();
      if (isBusy) {
        await flow.producer({ redis }).submit([1], { id: flow.id('held') });
        await until(() => worker.running === 1);
      }
      await operator.call('ACL', 'SETUSER', 'app', '>p1', '<p0');
      await operator.client('KILL', 'USER', 'app');
      // A moment after the connections are cut nobody knows more than that.
      const refused = /WRONGPASS .*operations\.md#passwords-that-change/;
      const why = () => worker.health().why;
      await until(() => !worker.health().ready && why().some((one) => refused.test(one)));
      expect(why().join()).not.toMatch(/has not answered|Connection is closed/);
      await operator.call('ACL', 'SETUSER', 'app', '>p0');
      held.open();
      await until(() => worker.health().ready, { timeoutMs: 30_000 });
    },
  );

  test('ends a worker process, which says what to do', ({ flow }) => ends(flow, []));

  test('ends worker processes and their parent, which says what to do', ({ flow }) =>
    ends(flow, ['--processes', '2']));
});

describe('`credentials`', () => {
  test('is called once for all connections that open at the same moment', async ({ flow }) => {
    const { url } = await started(flow);
    const answered = gate();
    let calls = 0;
    const credentials = async () => {
      calls += 1;
      await answered.opened;
      return { username: 'app', password: 'p0' };
    };
    const connections = numbers(5).map(() => Connection.open({ url, credentials }));
    for (const connection of connections) flow.after(() => connection.close());
    const checks = Promise.all(connections.map((connection) => connection.check()));
    const others = connections.map((connection) =>
      connection.openAt('standalone', { connectionName: 'other' }),
    );
    for (const other of others) flow.after(() => other.disconnect());
    const opened = Promise.all(others.map((other) => other.connect()));
    answered.open();
    await Promise.all([checks, opened]);
    expect(calls).toBe(1);
  });

  test('is called again before its answer ends: connections stay, and have the new one', async ({
    flow,
  }) => {
    const { url, operator } = await started(flow);
    await operator.call('ACL', 'SETUSER', 'later', 'on', '>later', ...RIGHTS);
    let username = 'app';
    const credentials = () =>
      username === 'app'
        ? { username, password: 'p0', expiresInMs: 2_500 }
        : { username, password: 'later', expiresAt: new Date(Date.now() + 3_600_000) };
    const worker = flow.worker({
      ...RENEWAL_THREAD,
      redis: { url, credentials },
      leaseMs: 2_000,
      handler: async (_, { signal }) => {
        while (username === 'app' && !signal.aborted) await sleep(20);
        await sleep(500);
        return 'done';
      },
    });
    await worker.start();
    await using pw = new Piecework({ redis: { url, credentials }, queue: flow.queue });
    const request = await pw.submit([1], { id: flow.id('long') });
    const completion = request.completion();
    await until(async () =>
      (await listed(operator)).some(({ name }) => name === 'piecework-renewal'),
    );
    const before = await listed(operator);
    username = 'later';
    const stay = before.filter(({ ssub }) => ssub === 0).map(({ id }) => id);
    expect(stay.length).toBeGreaterThanOrEqual(4);
    await until(async () => {
      const now = await listed(operator);
      return stay.every((id) => now.some((one) => one.id === id && one.user === 'later'));
    });
    expect(await completion).toMatchObject({ status: 'succeeded' });
  });

  test('that fails, hangs or answers something else is reported, and called again', async ({
    flow,
  }) => {
    const { url } = await started(flow);
    const answers: (() => unknown)[] = [
      () => Promise.reject(new Error('no vault')),
      () => ({ user: 'app' }),
      () => new Promise(() => {}),
      () => ({ username: 'app', password: 'wrong' }),
    ];
    const says = [
      /`credentials` failed: no vault/,
      /has to answer/,
      /did not answer within/,
      /WRONGPASS/,
    ];
    const check = async (answer: () => unknown) => {
      let first = true;
      const credentials = () => {
        const answered = first ? answer() : { username: 'app', password: 'p0' };
        first = false;
        return answered as never;
      };
      await using pw = new Piecework({ redis: { url, credentials }, queue: flow.queue });
      const error = await failing(pw.check());
      await pw.check();
      return error;
    };
    const errors = await Promise.all(answers.map(check));
    for (const [n, error] of errors.entries()) expect(error?.message).toMatch(says[n] as RegExp);
    expect(errors.map((error) => error?.code)).toEqual([
      ...['CONNECTION', 'CONNECTION', 'CONNECTION', 'PASSWORD'],
    ]);
  });

  test('is refused beside a user or a password, and if it is no function', () => {
    const credentials = () => ({ password: 'x' });
    for (const redis of [
      { url: 'redis://user:pass@localhost', credentials },
      { url: 'redis://localhost', password: 'x', credentials },
      { host: 'localhost', password: 'x', credentials },
      {
        nodes: [{ host: 'localhost', port: 1 }],
        options: { redisOptions: { username: 'x' } },
        credentials,
      },
      { url: 'redis://localhost', credentials: 'x' },
      { url: 'nothing', credentials },
    ])
      expect(() => Connection.open(redis as never)).toThrow(/^redis/);
  });
});
