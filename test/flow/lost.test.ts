/**
 * A server that lost what it had, or begins to evict, while those who use it live.
 * @module-tag own-server
 * @module-tag processes
 */
import { Connection, finishOnQueue, QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { type Command, Redis } from 'ioredis';
import { Piecework } from 'piecework';
import { expect } from 'vitest';
import { expand } from '../support/compact.js';
import { type Flow, test } from '../support/flow.js';
import { keepKeys } from '../support/lost-writes.js';
import { ownClock } from '../support/own-clock.js';
import { startOwnRedis } from '../support/redis.js';
import { scriptOf } from '../support/script-names.js';
import { until } from '../support/until.js';

async function started(flow: Flow) {
  const { url, close } = await startOwnRedis();
  flow.after(close);
  const operator = new Redis(url);
  flow.after(() => operator.disconnect());
  const pw = new Piecework({ redis: url, queue: flow.queue });
  flow.after(() => pw.close());
  const connection = Connection.open(url);
  flow.after(() => connection.close());
  return { operator, pw, connection, queue: new QueueCommands(connection, flow.queue) };
}

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'none',
    (error: { code: string }) => error.code,
  );
const readAll = async (items: AsyncIterable<unknown>) => {
  for await (const _ of items);
};

test('a request that no longer exists, and that is not known to have ended, is a LostError', async ({
  flow,
}) => {
  const { operator, pw } = await started(flow);
  const request = await pw.submit([1, 2], { id: flow.id('gone') });
  const waiting = codeOf(request.completion());
  const reading = codeOf(readAll(request.results()));
  await until(
    async () => (await operator.pubsub('SHARDCHANNELS', `done:{${request.id}}`)).length > 0,
  );
  await operator.flushall();
  // Whoever joins has the state read, for those who wait as well.
  expect(await codeOf(request.completion())).toBe('LOST');
  expect(await waiting).toBe('LOST');
  expect(await reading).toBe('LOST');
  expect(await codeOf(request.status())).toBe('LOST');
  expect(await codeOf(readAll(request.failures()))).toBe('LOST');
  expect(await codeOf(request.failureGroups())).toBe('LOST');
  expect(await codeOf(readAll(request.progress()))).toBe('LOST');
  // Who has only the id knows of none.
  expect(await codeOf(pw.request(request.id).completion())).toBe('NOT_FOUND');
});

test('a request that the queue lists as ended is an ExpiredError', async ({ flow }) => {
  const { operator, pw, connection, queue } = await started(flow);
  const request = await pw.submit([], { id: flow.id('ended') });
  await operator.del(new RequestCommands(connection, request.id).keys.request);
  expect((await queue.whereabouts(request.id)).endedAt).toBeDefined();
  expect(await codeOf(request.completion())).toBe('EXPIRED');
  expect(await codeOf(request.status())).toBe('EXPIRED');
});

test('the end of an earlier generation is not reported as that of a later one', async ({
  flow,
}) => {
  const { operator, pw, connection } = await started(flow);
  const request = await pw.submit([], { id: flow.id('back') });
  const { generation } = await request.completion();
  const { request: key } = new RequestCommands(connection, request.id).keys;
  await operator.hset(key, 'generation', generation - 1);
  expect(await codeOf(request.completion())).toBe('LOST');
});

test('a worker of a request that the queue has lost opens it there again', async ({ flow }) => {
  const { operator, pw, queue } = await started(flow);
  const request = await pw.submit([1, 2], { id: flow.id('unknown') });
  const { generation } = await request.status();
  const forgets = async () => {
    await operator.del(queue.keys.open, queue.keys.agenda);
    expect((await queue.whereabouts(request.id)).open).toBeUndefined();
  };
  const isOpen = async () => (await queue.whereabouts(request.id)).open === generation;
  await forgets();
  await request.update({ limit: 3 });
  expect(await isOpen()).toBe(true);
  await forgets();
  expect((await pw.submit([1, 2], { id: request.id })).id).toBe(request.id);
  expect(await isOpen()).toBe(true);
  // Of one that is over, 'closed' is the truth.
  await request.cancel();
  expect((await queue.whereabouts(request.id)).open).toBeUndefined();
});

test('a request that a failover brought back stays open on the queue side', async ({ flow }) => {
  const { operator, pw, connection, queue } = await started(flow);
  const { id } = await pw.submit([1], { id: flow.id('lives') });
  const request = new RequestCommands(connection, id);
  const { generation = 0 } = (await request.state()) ?? {};
  const { epoch } = connection;
  const over = { generation, outcome: 'succeeded' };
  await connection.check();
  // Somebody heard of its end; the server that took over has not.
  await operator.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await until(() => connection.epoch !== epoch);
  await finishOnQueue(epoch, queue, request, over);
  expect((await queue.whereabouts(id)).open).toBe(generation);
  // Of one that has ended, it is taken off all the same.
  await expand(request);
  await operator.hset(request.keys.request, 'status', 'complete');
  await finishOnQueue(epoch, queue, request, over);
  expect((await queue.whereabouts(id)).open).toBeUndefined();
});

test('a request that its server brought back without breaking a connection stays open on the queue side', async ({
  flow,
}) => {
  const { pw, connection, queue } = await started(flow);
  const { id } = await pw.submit([1], { id: flow.id('lives') });
  const request = new RequestCommands(connection, id);
  const { generation = 0 } = (await request.state()) ?? {};
  await connection.check();
  // Somebody heard of its end; then the server came back from a snapshot behind a proxy.
  await finishOnQueue(connection.epoch, queue, request, { generation, outcome: 'succeeded' });
  expect((await queue.whereabouts(id)).open).toBe(generation);
});

/** A server that comes back from a snapshot behind a proxy, before it receives the next end of a request. */
class Forgetful extends Redis {
  goBack: (() => Promise<void>) | undefined;

  override sendCommand(command: Command, stream?: never): unknown {
    const { goBack } = this;
    if (!goBack || scriptOf(command.name, command.args) !== 'finish')
      return super.sendCommand(command, stream);
    this.goBack = undefined;
    return goBack().then(() => super.sendCommand(command, stream));
  }
}

test('a drop whose request its server brought back drops it again', async ({ flow }) => {
  const { operator, pw, connection, queue } = await started(flow);
  const client = new Forgetful(operator.options.port ?? 0, { protocol: 2 } as object);
  flow.after(() => client.disconnect());
  const other = new Piecework({ redis: client, queue: flow.queue });
  flow.after(() => other.close());
  const { id } = await pw.submit([1], { id: flow.id('back') });
  const request = new RequestCommands(connection, id);
  const { id: _, channel: __, ...keys } = request.keys;
  client.goBack = await keepKeys(connection, Object.values(keys));
  await other.request(id).drop();
  expect((await request.state())?.status).toBe('dropped');
  expect((await queue.whereabouts(id)).open).toBeUndefined();
});

test('what follows from an answer goes over the connection of that answer, and over no later one', async ({
  flow,
}) => {
  const { operator, pw, connection, queue } = await started(flow);
  const { id } = await pw.submit([1], { id: flow.id('unanswered') });
  const request = new RequestCommands(connection, id);
  const { generation = 0 } = (await request.state()) ?? {};
  const finish = () => queue.finish(id, generation, 'succeeded', 0, connection.epoch);
  const next = new RequestCommands(connection, flow.id('intended'));
  const intended = await queue.intent(next.keys.id);
  const create = () =>
    next.create({ generation: intended, owner: 'owner', leaseMs: 1_000, options: '[]' });
  const blocked = async () => /blocked_clients:[1-9]/.test(await operator.info('clients'));
  // Sent, and no answer comes from the connection that carried it.
  await operator.call('CLIENT', 'PAUSE', 60_000, 'WRITE');
  const unanswered = [finish(), create()];
  await until(blocked);
  await operator.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await operator.call('CLIENT', 'UNPAUSE');
  expect(await Promise.all(unanswered)).toEqual([false, { verdict: 'broke' }]);
  // Asked for while there is no connection.
  (connection.client as Redis).disconnect(true);
  expect(await Promise.all([finish(), create()])).toEqual([false, { verdict: 'broke' }]);
  expect((await queue.whereabouts(id)).open).toBe(generation);
  expect(await next.state()).toBeNull();
  expect(await create()).toMatchObject({ verdict: 'created' });
  expect(await finish()).toBe(true);
  expect((await queue.whereabouts(id)).open).toBeUndefined();
});

test('ends that were reported over different connections do not share a call', async ({ flow }) => {
  const { pw, connection, queue } = await started(flow);
  const submit = (name: string) => pw.submit([1], { id: flow.id(name) });
  const [before, after] = [await submit('before'), await submit('after')];
  const generationOf = async ({ id }: { id: string }) => (await queue.whereabouts(id)).open;
  const [one, other] = [await generationOf(before), await generationOf(after)];
  const { epoch } = connection;
  const finished = Promise.all([
    queue.finish(after.id, other ?? 0, 'succeeded', 0, epoch),
    queue.finish(before.id, one ?? 0, 'succeeded', 0, epoch - 1),
  ]);
  expect(await finished).toEqual([true, false]);
  expect([await generationOf(before), await generationOf(after)]).toEqual([one, undefined]);
});

/** For so long the settings of a server are taken to be as they were, in ms. */
const CHECKED_MS = 3_000;

/** Sets a policy that evicts, and takes it back: `ask` rejects with that in between. */
async function noticesEvicting(
  flow: Flow,
  { operator }: { operator: Redis },
  ask: () => Promise<unknown>,
): Promise<void> {
  const clock = ownClock(flow);
  await ask();
  await operator.config('SET', 'maxmemory', '200mb');
  for (const [policy, code] of [
    ['allkeys-lru', 'EVICTING'],
    ['noeviction', 'none'],
  ] as const) {
    await operator.config('SET', 'maxmemory-policy', policy);
    clock.move(CHECKED_MS);
    // The first one has it checked, and does not wait for that.
    await until(async () => (await codeOf(ask())) === code, { what: `${policy} is noticed` });
  }
}

test('a running producer notices a policy that evicts, and its end', async ({ flow }) => {
  const scene = await started(flow);
  let n = 0;
  await noticesEvicting(flow, scene, () => scene.pw.submit([1], { id: flow.id(`number-${n++}`) }));
});

test('a check that is repeated notices a policy that evicts, and its end', async ({ flow }) => {
  const scene = await started(flow);
  await noticesEvicting(flow, scene, () => scene.pw.check());
});
