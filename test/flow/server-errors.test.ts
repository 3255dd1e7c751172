/**
 * A server that answers, and will not do what it is asked for now: workers hold what they have until it
 * does, producers wait or say why not, and nothing is lost or run twice.
 * @module-tag own-server
 * @module-tag processes
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Notifier } from '@piecework/notifier';
import { Connection, redisError, requestKeys, ServerError } from '@piecework/protocol';
import { IdQueue, RetryQueue, Scheduler } from '@piecework/queues';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { freePort, releasePort } from '../../packages/embedded/dist/free-port.js';
import { cli, STARTS, startCli } from '../support/cli.js';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { startOwnRedis } from '../support/redis.js';
import { until } from '../support/until.js';

interface Trouble {
  /** Of the error that a producer without patience gets. */
  readonly code: string;
  readonly says: RegExp;
  begin(server: Redis): Promise<unknown>;
  end(server: Redis): Promise<unknown>;
}

const troubles: Record<string, Trouble> = {
  READONLY: {
    code: 'READ_ONLY',
    says: /master/,
    begin: (server) => server.replicaof('127.0.0.1', 1),
    end: (server) => server.replicaof('NO', 'ONE'),
  },
  MISCONF: {
    code: 'REDIS',
    says: /MISCONF/,
    async begin(server) {
      const folder = await mkdtemp(join(tmpdir(), 'piecework-misconf-'));
      await server.config('SET', 'dir', folder, 'save', '3600 1000000');
      await rm(folder, { recursive: true });
      await server.bgsave();
      await until(async () => /rdb_last_bgsave_status:err/.test(await server.info('persistence')));
    },
    end: (server) => server.config('SET', 'stop-writes-on-bgsave-error', 'no'),
  },
  BUSY: {
    code: 'REDIS',
    says: /BUSY/,
    async begin(server) {
      await server.config('SET', 'busy-reply-threshold', 50);
      const endless = server.duplicate();
      endless
        .eval('while true do end', 0)
        .catch(() => {})
        .finally(() => endless.disconnect());
      await until(() =>
        server.get('any').then(
          () => false,
          (error: Error) => error.message.startsWith('BUSY'),
        ),
      );
    },
    end: (server) => server.script('KILL'),
  },
  LOADING: {
    code: 'REDIS',
    says: /LOADING/,
    begin: load,
    end: loaded,
  },
};

/** The server begins to load what takes it 40 s. */
async function load(server: Redis): Promise<void> {
  const filler = numbers(1_000).flatMap((n) => [`filler ${n}`, 'x'.repeat(2_000)]);
  await server.mset(...filler);
  // So that it answers between any two keys.
  await server.config('SET', 'rdbcompression', 'no');
  await server.config('SET', 'loading-process-events-interval-bytes', 1_024);
  await server.config('SET', 'key-load-delay', 40_000);
  const reloading = server.duplicate();
  reloading
    .debug('RELOAD')
    .catch(() => {})
    .finally(() => reloading.disconnect());
  await until(() =>
    server.get('any').then(
      () => false,
      (error: Error) => error.message.startsWith('LOADING'),
    ),
  );
}

/** It loads no more, or without delay. */
async function loaded(server: Redis): Promise<void> {
  await until(() => server.config('SET', 'key-load-delay', 0), { timeoutMs: 30_000 });
}

/** A server of the test's own, a worker on it that holds two of ten, and somebody who waits. */
async function working(flow: Flow) {
  const started = await startOwnRedis(['--enable-protected-configs', 'yes']);
  flow.after(() => started.close());
  const server = new Redis(started.url);
  flow.after(() => server.disconnect());
  const { queue } = flow;
  const redis = started.url;
  const held = gate();
  const ran: unknown[] = [];
  const worker = flow.worker({
    redis,
    concurrency: 2,
    handler: async (item) => {
      ran.push(item);
      await held.opened;
    },
  });
  await worker.start();
  const producer = flow.producer({ redis });
  const id = flow.id('working');
  await producer.submit(numbers(10), { id });
  const notifier = new Notifier({ redis, queue, sweepMs: 500 });
  flow.after(() => notifier.close());
  const completion = notifier.completion(id);
  await until(() => ran.length === 2);
  return { redis, server, held, ran, worker, producer, notifier, completion };
}

describe('a server that answers', () => {
  for (const [name, trouble] of Object.entries(troubles)) {
    test(`${name} is asked again until it does it`, async ({ flow }) => {
      const { redis, server, held, ran, worker, producer, notifier, completion } =
        await working(flow);
      await trouble.begin(server);
      const options = { id: flow.id('hasty'), unavailableMs: 150 };
      const hasty = await producer.submit([1], options).catch((thrown: unknown) => thrown);
      expect(hasty).toBeInstanceOf(ServerError);
      expect(hasty).toMatchObject({ code: trouble.code, retryable: true });
      expect((hasty as Error).message).toMatch(trouble.says);
      const patient = flow.producer({ redis }).submit(['later'], { id: flow.id('patient') });
      held.open();
      await until(() => flow.log.quiet.some((what) => /sending it again/.test(what)));
      expect(ran).toHaveLength(2);
      await trouble.end(server);
      expect(await patient).toMatchObject({ total: 1 });
      expect(await completion).toMatchObject({ status: 'succeeded', counts: { succeeded: 10 } });
      expect(await notifier.completion(flow.id('patient'))).toMatchObject({ status: 'succeeded' });
      expect(ran).toHaveLength(11);
      expect(new Set(ran).size).toBe(11);
      await worker.close();
    });
  }

  test('OOM lets workers drain what it has, and takes more when there is room', async ({
    flow,
  }) => {
    const { redis, server, held, ran, worker, producer, notifier, completion } =
      await working(flow);
    await server.config('SET', 'maxmemory', 1);
    const options = { id: flow.id('hasty'), unavailableMs: 150 };
    const hasty = await producer.submit([1], options).catch((thrown: unknown) => thrown);
    expect(hasty).toMatchObject({ name: 'ServerError', code: 'FULL', retryable: true });
    const patient = flow.producer({ redis }).submit(['later'], { id: flow.id('patient') });
    held.open();
    expect(await completion).toMatchObject({ status: 'succeeded', counts: { succeeded: 10 } });
    expect(await server.config('GET', 'maxmemory')).toEqual(['maxmemory', '1']);
    await server.config('SET', 'maxmemory', 0);
    expect(await patient).toMatchObject({ total: 1 });
    expect(await notifier.completion(flow.id('patient'))).toMatchObject({ status: 'succeeded' });
    expect(ran).toHaveLength(11);
    await worker.close();
  });

  test('OOM in the midst of a named stream tells what to do before the next try', async ({
    flow,
  }) => {
    const { redis, server, held, completion } = await working(flow);
    const id = flow.id('halfway');
    const submit = ['submit', '--id', id, '--queue', flow.queue, '--unavailable-ms', '0'];
    const items = (n: number) => `${'x'.repeat(50)}\n`.repeat(n);
    const first = startCli([...submit, '--input', '-'], { redis, input: null });
    first.child.stdin?.on('error', () => {}).write(items(1_000));
    const total = async () => Number(await server.hget(requestKeys(id).request, 'total'));
    await until(async () => (await total()) >= 500, STARTS);
    await server.config('SET', 'maxmemory', 1);
    first.child.stdin?.end(items(1_000));
    const advice = `drop that before you submit it again: piecework drop ${id}`;
    const oneLine = ({ stderr }: { stderr: string }) => stderr.replace(/\s+/g, ' ');
    const full = await first.finished;
    expect(full.code).toBe(1);
    expect(oneLine(full)).toContain(advice);
    await server.config('SET', 'maxmemory', 0);
    const again = await cli([...submit, '--input', '-'], { redis, input: items(3) });
    expect(again.code).toBe(1);
    expect(oneLine(again)).toContain('if its producer died, drop it and submit again');
    expect(await cli(['drop', id, '--queue', flow.queue], { redis })).toMatchObject({ code: 0 });
    const anew = await cli([...submit, '--input', '-'], { redis, input: items(3) });
    expect(anew).toMatchObject({ code: 0, stdout: `${id}\n` });
    held.open();
    await completion;
  });

  test('READONLY is left for a new connection, which may lead to the master', async ({ flow }) => {
    const { redis, server, held, completion } = await working(flow);
    held.open();
    await completion;
    const connection = Connection.open(redis);
    flow.after(() => connection.close());
    const idOf = async () => Number(await connection.client.client('ID'));
    await connection.check();
    const before = await idOf();
    await server.replicaof('127.0.0.1', 1);
    flow.after(() => server.replicaof('NO', 'ONE'));
    await expect(connection.client.set('any', 1)).rejects.toThrow('READONLY');
    await until(async () => (await idOf()) !== before);
    await server.replicaof('NO', 'ONE');
    expect(await connection.client.set('any', 1)).toBe('OK');
  });

  test('READONLY to many calls under way leaves the connection once', async ({ flow }) => {
    const { redis, server, held, completion } = await working(flow);
    held.open();
    await completion;
    await server.replicaof('127.0.0.1', 1);
    flow.after(() => server.replicaof('NO', 'ONE'));
    const connection = Connection.open(redis);
    const plain = connection.openAt('standalone', {});
    flow.after(() => connection.close());
    flow.after(() => plain.disconnect());
    for (const client of [connection.client as Redis, plain]) {
      await client.ping();
      const { stream } = client;
      const before = stream.listenerCount('close');
      const calls = numbers(50).map(() => client.set('any', 1));
      const counts = calls.map((call) => call.catch(() => stream.listenerCount('close')));
      expect(Math.max(...((await Promise.all(counts)) as number[]))).toBeLessThanOrEqual(
        before + 1,
      );
    }
    await server.replicaof('NO', 'ONE');
  });

  test('nothing while its clients are paused, or has lost the scripts, is waited for', async ({
    flow,
  }) => {
    const { server, held, ran, worker, producer, completion } = await working(flow);
    await server.script('FLUSH');
    await server.client('PAUSE', 1_000, 'ALL');
    const patient = producer.submit(['later'], { id: flow.id('patient') });
    held.open();
    expect(await patient).toMatchObject({ total: 1 });
    expect(await completion).toMatchObject({ status: 'succeeded', counts: { succeeded: 10 } });
    await until(() => ran.length === 11);
    await worker.close();
  });

  test('LOADING is waited for also by who comes meanwhile, for as long as it has patience', async ({
    flow,
  }) => {
    const started = await startOwnRedis(['--enable-protected-configs', 'yes']);
    flow.after(() => started.close());
    const server = new Redis(started.url);
    flow.after(() => server.disconnect());
    await load(server);
    const { url: redis } = started;
    const patient = flow.producer({ redis }).submit([1], { id: flow.id('patient') });
    const joining = IdQueue.join(flow.queue, { redis });
    for (const call of [patient, joining]) call.catch(() => {});
    // Longer than the first look at a server may take, so that the other one is past it too.
    const hasty = await flow
      .producer({ redis })
      .submit([1], { id: flow.id('hasty'), unavailableMs: 11_000 })
      .catch((thrown: unknown) => thrown);
    expect(hasty).toBeInstanceOf(ServerError);
    expect(hasty).toMatchObject({ code: 'REDIS', retryable: true });
    expect((hasty as Error).message).toMatch(/LOADING/);
    await loaded(server);
    expect(await patient).toMatchObject({ id: flow.id('patient') });
    await (await joining).close();
  });
});

it('tells what may be tried again from what may not', () => {
  const ofCluster = {
    'TRYAGAIN Multiple keys request during rehashing of slot': 'SLOT_MOVES',
    'MOVED 1 127.0.0.1:7001': 'SLOT_MOVES',
    'CLUSTERDOWN The cluster is down': 'CLUSTER_DOWN',
    'MASTERDOWN Link with MASTER is down': 'CLUSTER_DOWN',
  };
  for (const [message, code] of Object.entries(ofCluster)) {
    for (const whole of [
      message,
      `Too many Cluster redirections. Last error: ReplyError: ${message}`,
    ])
      expect(redisError(new Error(whole), 'x'), whole).toMatchObject({ code, retryable: true });
  }
  const passing = [
    'NOREPLICAS Not enough good replicas to write.',
    'UNBLOCKED force unblock from blocking operation, instance state changed',
    'ERR max number of clients reached',
  ];
  for (const message of passing) {
    expect(redisError(new Error(message), 'x'), message).toMatchObject({
      code: 'REDIS',
      retryable: true,
    });
  }
  const cut = [
    ...['Connection is closed.', 'Command timed out', 'read ECONNRESET'],
    ...['connect EHOSTUNREACH 10.0.0.9:6379', 'connect ENETUNREACH 10.0.0.9:6379'],
    ...['Cluster is ended.', "Cluster isn't ready and enableOfflineQueue options is false"],
    'Too many Cluster redirections. Last error: Error: Connection is closed.',
    'Too many Cluster redirections. Last error: ReplyError: NOSCRIPT No matching script.',
  ];
  for (const message of [...cut, 'Command aborted due to connection close']) {
    expect(redisError(new Error(message), 'x'), message).toMatchObject({ code: 'CONNECTION' });
  }
  for (const message of ['NOAUTH Authentication required.', 'WRONGTYPE …', 'NOPERM …']) {
    expect(redisError(new Error(message), 'x'), message).toMatchObject({ retryable: false });
  }
});

test('a host with several addresses, as localhost, at which nobody listens is a lost connection', async () => {
  const port = await freePort();
  const socket = connect({
    ...{ host: 'two.example', port, autoSelectFamily: true },
    // One of each family: of both, Node tries one after the other.
    lookup: (_host, _options, found) =>
      found(null, [
        { address: '127.0.0.1', family: 4 },
        { address: '::ffff:127.0.0.2', family: 6 },
      ]),
  });
  const [error] = (await once(socket, 'error')) as [Error];
  releasePort(port);
  // That is what makes it a case of its own.
  expect(error.message).toBe('');
  const known = redisError(error, 'connect');
  expect(known).toMatchObject({ code: 'CONNECTION', retryable: true });
  expect(known.message).toMatch(
    /^connect: ECONNREFUSED 127\.0\.0\.1:\d+, E\w+ \S*127\.0\.0\.2:\d+.*: nothing listens there; /,
  );
});

test('a listener of a timed queue receives a broken connection as an error with a code', async ({
  flow,
}) => {
  const server = await startOwnRedis();
  flow.after(() => server.close());
  const client = new Redis(server.url);
  flow.after(() => client.disconnect());
  const told: unknown[] = [];
  const options = {
    redis: server.url,
    name: flow.queue,
    onError: (error: unknown) => told.push(error),
  };
  const stop = new AbortController();
  const queues = [new RetryQueue<number>(options), new Scheduler<number>(options)];
  const [retries, scheduler] = queues as [RetryQueue<number>, Scheduler<number>];
  const over = [
    retries.consume(() => {}, { signal: stop.signal }),
    (async () => {
      for await (const _ of scheduler.due({ signal: stop.signal }));
    })(),
  ];
  const subscribed = async () =>
    String(await client.call('CLIENT', 'LIST', 'TYPE', 'pubsub'))
      .split('\n')
      .filter((line) => /ssub=1/.test(line)).length;
  await until(async () => (await subscribed()) === 2);
  await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await until(() => told.length >= 2);
  stop.abort();
  await Promise.allSettled(over);
  await Promise.all(queues.map((queue) => queue.close()));
  for (const error of told) expect(error).toMatchObject({ code: 'CONNECTION', retryable: true });
});

it('names the right or the command that is missing, whatever version says so', () => {
  const lua = "#!lua\nlocal a = 1\nredis.call('XGROUP', 'SETID', a)";
  const sent = { text: { sha: '', lua }, keys: ['request:{a}', 'sub:{a}'] };
  const said: readonly (readonly [message: string, names: RegExp])[] = [
    [
      "NOPERM this user has no permissions to run the 'info' command",
      /may not run info: .*\+info /,
    ],
    ["NOPERM User x has no permissions to run the 'client|id' command", /\+client\|id /],
    [
      "ERR The user executing the script can't run this command or subcommand script: f00, on @user_script:3.",
      /may not run xgroup\|setid: its ACL needs \+xgroup\|setid /,
    ],
    [
      "ERR ACL failure in script: User x has no permissions to run the 'unlink' command script: f00, on @user_script:3.",
      /\+unlink /,
    ],
    [
      'NOPERM this user has no permissions to access one of the keys used as arguments',
      /one of the keys request:\{a\}, sub:\{a\}: its ACL needs ~KEY/,
    ],
    [
      "ERR ACL failure in script: No permissions to access the 'other' key script: f00, on @user_script:3.",
      /the key other: its ACL needs ~KEY/,
    ],
    ['NOPERM No permissions to access a channel', /one of its channels: its ACL needs &CHANNEL/],
    [
      "ERR unknown command 'EVALSHA', with args beginning with: 'f00' '1'",
      /does not have the command evalsha /,
    ],
    ['ERR unknown command `LMPOP`', /does not have the command lmpop /],
    ["ERR unknown subcommand 'ID'. Try CLIENT HELP.", /does not have the command client\|id /],
    [
      'ERR Unknown Redis command called from script script: f00, on @user_script:3.',
      /does not have the command xgroup\|setid /,
    ],
  ];
  for (const [message, names] of said) {
    const error = redisError(new Error(message), 'x', sent);
    expect(error, message).toMatchObject({ code: 'NO_RIGHT', retryable: false });
    expect(error.message).toMatch(names);
    expect(error.message).not.toMatch(/f00|undefined/);
  }
});
