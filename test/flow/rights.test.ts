/**
 * Roles under the ACL users of docs/operations.md.
 * @module-tag own-server
 */
import { Notifier } from '@piecework/notifier';
import { Producer } from '@piecework/producer';
import {
  Connection,
  noteCrashes,
  type PieceworkError,
  type RedisInput,
  requestKeys,
} from '@piecework/protocol';
import { IdQueue, IdQueueView, RetryQueue, Scheduler } from '@piecework/queues';
import { type HandlerContext, Worker } from '@piecework/worker';
import { Redis } from 'ioredis';
import { Admin } from 'piecework';
import { describe, expect, vi } from 'vitest';
import { workerTable } from '../../packages/cli/dist/output/worker-table.js';
import {
  commandsOf,
  LATER,
  OPTIONAL,
  PLAIN,
  patternsOf,
  SCRIPTS,
} from '../../packages/piecework/dist/operate/doctor/servers/rights.js';
import { ROLES, type Role } from '../../packages/piecework/dist/operate/doctor/servers/roles.js';
import { buildScripts } from '../../scripts/lua-source.mjs';
import { denied, makeUsers, PASSWORD, rulesOf, userOf } from '../support/acl.js';
import { type Flow, gate, Log, nodesOf, numbers, test } from '../support/flow.js';
import { partOf, playsAll } from '../support/mode.js';
import { againstCluster, startOwnRedis, testConnection } from '../support/redis.js';
import { until } from '../support/until.js';

/** A server, or a cluster, where the roles have their users; and how each gets there. */
async function guarded(flow: Flow) {
  let servers: Redis[];
  let as: (role: Role) => RedisInput;
  if (againstCluster) {
    const { nodes } = (await testConnection()) as { nodes: { host: string; port: number }[] };
    servers = nodesOf(flow.connection);
    as = (role) => ({
      nodes,
      options: { redisOptions: { username: userOf(role), password: PASSWORD } },
    });
  } else {
    const { url, close } = await startOwnRedis();
    flow.after(() => close());
    const client = new Redis(url);
    flow.after(() => client.disconnect());
    servers = [client];
    as = (role) => url.replace('//', `//${userOf(role)}:${PASSWORD}@`);
  }
  await makeUsers(servers, flow.queue);
  await Promise.all(servers.map((server) => server.call('ACL', 'LOG', 'RESET')));
  return { servers, as };
}

const scriptOf = new Map(
  Object.entries(buildScripts()).flatMap(([name, { sha, lua }]) => [
    [sha, name],
    [lua, name],
  ]),
);

/** What each user sends from here on: plain commands as ACL rules name them, and scripts. */
function listen() {
  const sent = new Map<string, Set<string>>();
  const plain = Redis.prototype.sendCommand;
  const spy = vi.spyOn(Redis.prototype, 'sendCommand').mockImplementation(function (
    this: Redis,
    command,
    stream,
  ) {
    const { args } = command as unknown as { args: unknown[] };
    const [name, first] = [command.name.toLowerCase(), String(args[0] ?? '')];
    const script = /^eval(sha)?$/.test(name) ? scriptOf.get(first) : undefined;
    const container = /^(client|cluster|command|acl|config|xinfo)$/.test(name);
    const what = script ?? (container ? `${name}|${first.toLowerCase()}` : name);
    const user = this.options.username ?? '';
    sent.set(user, (sent.get(user) ?? new Set()).add(what));
    if (script) sent.get(user)?.add(name);
    return plain.call(this, command, stream);
  });
  return { of: (role: Role) => sent.get(userOf(role)) ?? new Set(), stop: () => spy.mockRestore() };
}

/** Everything that the roles do, in one story. */
async function story(
  flow: Flow,
  as: (role: Role) => RedisInput,
  sent: ReturnType<typeof listen>,
): Promise<void> {
  const held = gate();
  const runs = new Map<string, number>();
  const handler = async (n: number, context: HandlerContext) => {
    const key = `${context.requestId} ${n}`;
    const run = (runs.get(key) ?? 0) + 1;
    runs.set(key, run);
    const name = context.requestId.split('.').at(-1);
    context.progress(n);
    if (name === 'retried') throw new Error('not yet');
    if (name === 'failing' && n % 2 === 1) {
      context.checkpoint({ n });
      throw new Error('odd');
    }
    if (name === 'waiting') await Promise.race([held.opened, aborted(context.signal)]);
    if (name === 'held' && run === 1)
      throw n === 0 ? context.holdRequest(20) : context.holdQueue(20);
    return n;
  };
  const worker = flow.worker({ redis: as('worker'), handler, concurrency: 4, quantumMs: 0 });
  const producer = flow.producer({ redis: as('producer') });
  await using notifier = new Notifier({ redis: as('notifier'), queue: flow.queue });
  await using admin = new Admin({ redis: as('admin'), queue: flow.queue });
  await worker.start();

  const small = await producer.submit(numbers(3), { id: flow.id('small') });
  expect(await notifier.completion(small.id)).toMatchObject({ status: 'succeeded' });
  const again = await producer.submit(numbers(3), { id: flow.id('small') });
  expect(again.generation).toBe(small.generation);
  await expect(
    producer.submit(numbers(4), { id: flow.id('small'), priority: 1 }),
  ).rejects.toMatchObject({ code: 'EXISTS' });
  await producer.submit(numbers(2), {
    dedupe: { key: 'once', periodMs: 1_000 },
    results: 'discard',
  });

  const big = await producer.submit(
    (function* () {
      yield* numbers(1_200);
    })(),
    { id: flow.id('big'), window: 600, priority: 3 },
  );
  const values: unknown[] = [];
  for await (const item of notifier.results(big.id, { order: 'index' })) values.push(item.index);
  expect(values).toHaveLength(1_200);
  for await (const _ of notifier.progress(big.id)) break;

  const failing = await producer.submit(numbers(6), {
    id: flow.id('failing'),
    attempts: 2,
    backoff: { type: 'fixed', delayMs: 10 },
    toleratedFailures: 6,
  });
  await notifier.completion(failing.id);
  const failures: number[] = [];
  for await (const { index } of notifier.failures(failing.id)) failures.push(index);
  expect(failures).toEqual([1, 3, 5]);
  expect(await notifier.failureGroups(failing.id)).toHaveLength(1);
  expect((await admin.redrive(failing.id)).redriven).toBe(3);
  await notifier.completion(failing.id);

  await producer.submit(numbers(2), { id: flow.id('held') });
  await notifier.completion(flow.id('held'));
  await producer.submit(numbers(1), { id: flow.id('due'), delayMs: 30, expedite: true });
  await notifier.completion(flow.id('due'));

  const later = await producer.submit(numbers(1), { id: flow.id('later'), delayMs: 3_600_000 });
  expect((await notifier.status(later.id)).waitingFor).toBe('time');
  await admin.cancel(later.id);

  const retried = await producer.submit(numbers(1), {
    ...{ id: flow.id('retried'), attempts: 2 },
    backoff: { type: 'fixed', delayMs: 3_600_000 },
  });
  await until(async () => (await notifier.status(retried.id)).waitingFor === 'retry');
  await admin.cancel(retried.id);

  const waiting = await producer.submit(numbers(20), { id: flow.id('waiting'), limit: 2 });
  await until(async () => (await notifier.status(waiting.id)).counts.inFlight === 2);
  expect(await admin.running(waiting.id)).not.toEqual([]);
  const reading = new AbortController();
  const next = notifier.results(waiting.id, { signal: reading.signal })[Symbol.asyncIterator]();
  const nothing = next.next().catch(() => 'aborted');
  await until(() => sent.of('notifier').has('follow'), { what: 'the reader follows' });
  reading.abort();
  expect(await nothing).toBe('aborted');
  await admin.pause(waiting.id);
  await admin.update(waiting.id, { limit: 3, priority: 7 });
  await admin.resume(waiting.id);
  await admin.pauseQueue();
  await admin.resumeQueue();
  await admin.cancel(waiting.id);
  expect(await notifier.completion(waiting.id)).toMatchObject({ status: 'cancelled' });
  held.open();

  const open = await producer.open({ id: flow.id('open') });
  await open.append(1, 2);
  await open.flush();
  await open.cancel();
  const safe = producer.submit(numbers(1), { id: flow.id('safe'), durability: 'replica' });
  if (againstCluster) await notifier.completion((await safe).id);
  else await expect(safe).rejects.toMatchObject({ code: 'NO_REPLICA' });

  // A task that nobody serves is parked, and cleared away.
  const other = flow.worker({
    redis: as('worker'),
    handlers: [{ task: 'other', run: () => 1 }],
  });
  await worker.close();
  await other.start();
  await producer.submit(numbers(1), { id: flow.id('unserved'), task: 'census' });
  await until(async () => (await admin.counts()).parked === 1);
  const listed: string[] = [];
  for await (const { id } of admin.list({ state: 'all' })) listed.push(id);
  expect(listed).toContain(flow.id('unserved'));
  expect(await admin.workers()).toHaveLength(1);
  expect((await admin.errors()).length).toBeGreaterThan(0);
  expect(await admin.history({ sinceMs: 0 })).toHaveLength(1);
  expect(await admin.repair()).toEqual([]);
  const findings = await admin.doctor({ deep: true, repair: true });
  const gaps = findings.filter(({ check, level }) => check === 'acl' && level !== 'ok');
  expect(gaps).toEqual([]);
  expect(findings.filter(({ what }) => /could not be checked/.test(what))).toEqual([]);
  for (const id of listed) await admin.drop(id);
  await other.close();
}

/** What is done with the queues that are no requests. */
async function queuesStory(
  { queue: name }: Flow,
  as: (role: Role) => RedisInput,
  sent: ReturnType<typeof listen>,
): Promise<void> {
  const listens = (role: Role) => until(() => sent.of(role).has('ssubscribe'));
  const retries = new RetryQueue<number>({ redis: as('retry-queue'), name });
  const over = new AbortController();
  const consuming = retries.consume(
    async () => {
      throw new Error('never');
    },
    { maxFailures: 2, retryDelayMs: () => 10, signal: over.signal },
  );
  await listens('retry-queue');
  await retries.put(1, { delayMs: 50 });
  await until(async () => (await retries.counts()).failures === 1);
  over.abort();
  await consuming;
  for await (const { payload } of retries.failures()) expect(payload).toBe(1);
  await retries.drop();
  await retries.close();

  const scheduler = new Scheduler<string>({ redis: as('scheduler'), name });
  const taking = scheduler.takeDue({ lockMs: 10_000, waitMs: 20_000 });
  await listens('scheduler');
  await scheduler.enqueue('now', Date.now());
  expect(await taking).toHaveLength(1);
  expect(await scheduler.counts()).toMatchObject({ locked: 1 });
  await scheduler.remove('now');
  await scheduler.drop();
  await scheduler.close();

  const ids = await IdQueue.join(name, { redis: as('id-queue'), unique: true });
  await ids.add(['a', 'b']);
  for (const _ of numbers(2)) {
    const pulled = await ids.pull();
    if (pulled.state !== 'ready') throw new Error(`pull: ${pulled.state}`);
    await ids.resume(pulled.key);
    await ids.fail(pulled.key, 'why not');
  }
  expect(await ids.counts()).toMatchObject({ completed: 2, failures: 2 });
  await using view = new IdQueueView(name, { redis: as('id-queue') });
  expect((await view.look()).failures).toHaveLength(2);
  await ids.drop();
  await ids.close();
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));

/** What the story comes to at times only: looks at the agenda, and questions after what is gone. */
const AT_TIMES = [
  'tend',
  'write-back',
  'finish',
  'unlink-spent',
  'schedule-tend',
  'push',
  'reopen',
  'hget',
  'zscore',
  'hvals',
  'zcard',
  // What crashed, by whoever looks at the request then: see the test below.
  ...['hmget', 'zadd', 'zremrangebyrank', 'pexpire'],
];
/** What it does not come to, by role. */
const RARE: Readonly<Record<Role, readonly string[]>> = {
  producer: ['renew-producer', 'wait', 'waitaof', 'command|info'],
  worker: [
    'take',
    'renew',
    'run-alone',
    'cause',
    'read-state',
    'should-yield',
    'exchange',
    'lmpop',
    'pending',
    'hscan',
  ],
  notifier: ['sunsubscribe'],
  admin: [],
  'retry-queue': [],
  // The server has seen its scripts: they are the retry queue's.
  scheduler: ['eval'],
  'id-queue': [],
};
const CONNECTING =
  /^(asking|readonly|cluster\|.*|client\|(setname|setinfo)|ping|info|auth|hello|select|quit)$/;

describe('the users of docs/operations.md', () => {
  test('may do all that their roles do, and nobody is denied anything', {
    tags: 'one-server',
  }, async ({ flow }) => {
    const { servers, as } = await guarded(flow);
    const sent = listen();
    flow.after(() => sent.stop());
    await story(flow, as, sent);
    await queuesStory(flow, as, sent);
    expect(await denied(servers)).toEqual([]);
    for (const role of ROLES) {
      const known = new Set<string>([...SCRIPTS[role], ...PLAIN[role], 'eval', 'evalsha']);
      const unknown = [...sent.of(role)].filter((one) => !known.has(one) && !CONNECTING.test(one));
      expect(unknown, `sent by a ${role}, and not in its list`).toEqual([]);
      const unused = [...known].filter(
        (one) => !sent.of(role).has(one) && ![...AT_TIMES, ...RARE[role]].includes(one),
      );
      expect(
        unused.filter((one) => !CONNECTING.test(one)),
        `of a ${role}, and never sent`,
      ).toEqual([]);
    }
  });

  test('may all record crashes, as each of them ticks the agenda', {
    tags: 'one-server',
  }, async ({ flow }) => {
    const { servers, as } = await guarded(flow);
    for (const role of ['producer', 'worker', 'notifier', 'admin'] as const) {
      const connection = Connection.open(as(role));
      flow.after(() => connection.close());
      const { failed } = requestKeys(flow.id(role));
      await connection.check();
      await (servers[0] as Redis).hset(failed, '3', '{"name":"CrashError","message":"it ended"}');
      await noteCrashes(connection, flow.queue, flow.id(role), [3]);
    }
    expect(await denied(servers)).toEqual([]);
    await using admin = new Admin({ redis: as('admin'), queue: flow.queue });
    expect(await admin.errors()).toHaveLength(4);
  });

  test('have exactly the rights that their scripts and commands need', () => {
    for (const role of ROLES) {
      const rules = rulesOf(role, 'q');
      const given = (sign: string) =>
        rules.filter((rule) => rule.startsWith(sign)).map((rule) => rule.slice(1));
      const needed = commandsOf(role).filter((command) => !LATER.includes(command));
      expect(given('+').toSorted(), role).toEqual(needed);
      expect(given('~'), role).toEqual(patternsOf(role, 'q').keys);
      expect(given('&'), role).toEqual(patternsOf(role, 'q').channels);
      expect(rules.slice(0, 5), role).toEqual([
        'on',
        `>${PASSWORD}`,
        ...['resetkeys', 'resetchannels', '-@all'],
      ]);
    }
  });

  test('are checked by the doctor, which finds each right that is missing', {
    tags: 'one-server',
  }, async ({ flow }) => {
    const { servers, as } = await guarded(flow);
    await using admin = new Admin({ redis: as('admin'), queue: flow.queue });
    const users = Object.fromEntries(ROLES.map((role) => [role, userOf(role)]));
    const missed = async () =>
      (await admin.doctor({ users }))
        .filter(({ check, level }) => check === 'acl' && level === 'error')
        .map(({ advice }) => advice);
    expect(await missed()).toEqual([]);
    const [server] = servers as [Redis];
    for (const role of ROLES) {
      const rules = rulesOf(role, flow.queue);
      const rights = rules.filter((rule) => /^[+~&]/.test(rule));
      // What the doctor itself cannot do without.
      const asking = /^\+(acl\|.*|info|hget|hmget|hlen)$/;
      for (const right of rights.filter((one) => role !== 'admin' && !asking.test(one))) {
        const others = rules.filter((rule) => rule !== right);
        await server.call('ACL', 'SETUSER', userOf(role), 'reset', ...others);
        const found = (await rightsMissed(server, flow.queue, role)).join(' ');
        expect(found, `${role} without ${right}`).toContain(right);
        await server.call('ACL', 'SETUSER', userOf(role), 'reset', ...rules);
      }
    }
    const [later] = (await server.command('INFO', 'WAITAOF')) as unknown[];
    if (later) {
      // Not in the lists of the docs, which Redis 7.0 has to take as well.
      const what = (await rightsMissed(server, flow.queue, 'producer')).join();
      expect(what).toContain("but for +waitaof (durability 'fsync')");
      await server.call('ACL', 'SETUSER', userOf('producer'), '+waitaof');
      expect((await rightsMissed(server, flow.queue, 'producer')).join()).not.toContain('waitaof');
    }
    // What a script may not do ends a look, which says whom to ask as.
    const { id } = await flow
      .producer({ redis: as('producer') })
      .submit([1], { id: flow.id('lost') });
    await server.hdel(flow.queueCommands.keys.open, id);
    await server.call('ACL', 'SETUSER', userOf('admin'), '-zadd');
    const looked = (await admin.doctor({ repair: true })).find(({ check }) => check === 'repair');
    expect(looked).toMatchObject({
      level: 'warning',
      advice: expect.stringMatching(/as an admin/),
    });
    await server.call('ACL', 'SETUSER', userOf('worker'), '-client|id');
    const slower = (await admin.doctor({ users })).find(({ what }) => what.includes('+client|id'));
    expect(slower).toMatchObject({
      level: 'warning',
      what: expect.stringMatching(/but for .*pop/),
    });
    await server.call('ACL', 'SETUSER', userOf('worker'), '+client|id');
    await server.call('ACL', 'SETUSER', userOf('worker'), '-xreadgroup');
    expect((await missed()).join()).toContain(`ACL SETUSER ${userOf('worker')} +xreadgroup`);
    await server.call('ACL', 'DELUSER', userOf('notifier'));
    const gone = (await admin.doctor({ users })).map(({ what }) => what);
    expect(gone.join('\n')).toContain(`there is no ACL user ${userOf('notifier')}`);
  });

  test('that are missing end every wait at once, with the error that names them', async ({
    flow,
  }) => {
    const { servers, as } = await guarded(flow);
    const { id } = await flow
      .producer({ redis: as('producer') })
      .submit([1], { id: flow.id('unseen') });
    for (const server of servers)
      await server.call('ACL', 'SETUSER', userOf('notifier'), '-evalsha', '-eval', '-hmget');
    const notifier = new Notifier({ redis: as('notifier'), queue: flow.queue });
    flow.after(() => notifier.close());
    const waits = [
      () => notifier.completion(id),
      () => notifier.results(id).next(),
      () => notifier.results(id, { wait: false }).next(),
      () => notifier.progress(id).next(),
      () => notifier.events(id).next(),
      () => notifier.failures(id).next(),
    ];
    for (const wait of waits)
      await expect(wait(), String(wait)).rejects.toMatchObject({ code: 'NO_RIGHT' });
  });

  test('do without a right, or are told which one they lack, and never wait in silence', {
    tags: 'one-server',
    timeout: 300_000,
  }, async ({ flow }) => {
    const { servers, as } = await guarded(flow);
    await makeUsers(servers, '*');
    const cases = (['producer', 'worker', 'notifier', 'admin'] as const).flatMap((role) =>
      commandsOf(role)
        .filter((command) => !LATER.includes(command))
        .map((command) => ({ role, command })),
    );
    const refused: string[] = [];
    const wrong: string[] = [];
    const play = async ({ role, command }: (typeof cases)[number]) => {
      const user = `${userOf(role)}-without-${command.replace('|', '-')}`;
      const rules = rulesOf(role, '*').filter((rule) => rule !== `+${command}`);
      for (const server of servers) await server.call('ACL', 'SETUSER', user, 'reset', ...rules);
      const said: PieceworkError | undefined = await fateOf(
        flow,
        `${role}-${command.replace('|', '-')}`,
        (other) => (other === role ? withUser(as(role), userOf(role), user) : as(other)),
      );
      for (const server of servers) await server.call('ACL', 'DELUSER', user);
      if (said === undefined) return;
      if (said.code !== 'NO_RIGHT' || !said.message.split(/[ ,:]/).includes(`+${command}`))
        wrong.push(`${role} without ${command}: ${said.message}`);
      refused.push(`${role} ${command}`);
    };
    const left = playsAll
      ? partOf(cases)
      : cases.filter(({ command }) => command in OPTIONAL || ONCE_SILENT.includes(command));
    await Promise.all(
      numbers(6).map(async () => {
        for (let next = left.shift(); next; next = left.shift()) await play(next);
      }),
    );
    expect(wrong).toEqual([]);
    expect(refused.filter((one) => (one.split(' ')[1] as string) in OPTIONAL)).toEqual([]);
  });

  test('that a worker lacks are named by the status of what it does not run, and logged once', async ({
    flow,
  }) => {
    const { servers, as } = await guarded(flow);
    for (const server of servers) await server.call('ACL', 'SETUSER', userOf('worker'), '-blmpop');
    const log = new Log();
    const worker = flow.worker({ redis: as('worker'), handler: () => 1, logger: log as never });
    let refused = 0;
    worker.on('error', () => {
      refused += 1;
    });
    await worker.start();
    await using notifier = new Notifier({ redis: as('notifier'), queue: flow.queue });
    const { id } = await flow.producer({ redis: as('producer') }).submit([1]);
    await until(async () => (await notifier.status(id)).waitingFor === 'worker');
    const { why } = await notifier.status(id);
    expect(why).toContain(`worker ${worker.id} takes no work: no blocking connection to Redis: `);
    expect(why).toContain('+blmpop');
    expect(why).not.toContain('free');
    await using admin = new Admin({ redis: as('admin'), queue: flow.queue });
    expect(workerTable(await admin.workers(), '')).toMatch(/\n\S+ +not ready +0 of /);
    await until(() => refused > 2);
    expect(log.lines.map(({ what }) => what)).toEqual([
      'blocking connection lost; building a new one',
    ]);
  });

  test('keep a worker from other queues, and a notifier from submitting', async ({ flow }) => {
    const { servers, as } = await guarded(flow);
    const foreign = flow.producer({ redis: as('producer'), queue: `${flow.queue}-other` });
    await expect(foreign.submit([1], { id: flow.id('foreign') })).rejects.toMatchObject({
      code: 'NO_RIGHT',
    });
    const forbidden = flow.id('forbidden');
    const reader = flow.producer({ redis: as('notifier') });
    // In one call, and beginning with an intent.
    for (const items of [[1], numbers(2).values()])
      await expect(reader.submit(items, { id: forbidden })).rejects.toMatchObject({
        code: 'NO_RIGHT',
      });
    const written = await Promise.all(servers.map((server) => server.keys(`{${flow.queue}}:*`)));
    expect(written.flat()).toEqual([]);
  });
});

async function rightsMissed(server: Redis, queue: string, role: Role): Promise<string[]> {
  const { checkAcl } = await import('../../packages/piecework/dist/operate/doctor/servers/acl.js');
  const asked = [{ name: 'server', client: server, info: undefined as never }];
  const findings = await checkAcl(asked, queue, { [role]: userOf(role) });
  return findings.map(({ what }) => what);
}

/** Commands whose lack once went unnoticed, or was reported without their name. */
const ONCE_SILENT = ['blmpop', 'del', 'evalsha', 'hdel', 'xreadgroup'];
const withUser = (redis: RedisInput, former: string, user: string): RedisInput =>
  typeof redis === 'string' ? redis.replace(`//${former}:`, `//${user}:`) : redis;

/** A few requests end to end. Answers the error that a role met first; undefined: all of it worked. */
async function fateOf(
  flow: Flow,
  name: string,
  as: (role: Role) => RedisInput,
): Promise<PieceworkError | undefined> {
  const queue = `${flow.queue}-${name}`;
  await using worker = new Worker({
    ...{ redis: as('worker'), queue, handler: () => 1, maxBlockMs: 0 },
    logger: new Log() as never,
  });
  await using producer = new Producer({ redis: as('producer'), queue });
  await using notifier = new Notifier({ redis: as('notifier'), queue });
  await using admin = new Admin({ redis: as('admin'), queue });
  let first: { readonly error: PieceworkError | undefined } | undefined;
  const end = (error?: unknown) => {
    first ??= { error: error as PieceworkError | undefined };
  };
  worker.on('error', (error) => {
    const { ready, why } = worker.health();
    end(ready || !why.join().includes(error.message) ? new Error(`health: ${why}`) : error);
  });
  const works = async () => {
    await worker.start();
    for (const [size, options] of [
      [3, {}],
      [60, { window: 30, attempts: 2 }],
    ] as const) {
      const { id } = await producer.submit(numbers(size), {
        id: flow.id(`${name}-${size}`),
        ...options,
      });
      await notifier.completion(id);
      for await (const _ of notifier.results(id));
      await admin.drop(id);
    }
  };
  works().then(() => end(), end);
  const silent = new Error('it waits in silence') as PieceworkError;
  const { error } = await until(() => first, { timeoutMs: 60_000 }).catch(() => ({
    error: silent,
  }));
  return error;
}
