/**
 * Fills its server.
 * @module-tag own-server
 */
import {
  Connection,
  ControlCommands,
  type IdItem,
  IdQueueCommands,
  QueueCommands,
  QueueControlCommands,
  ServerError,
  TimedCommands,
} from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  parseHeader,
  readSource,
  type ScriptName,
  scriptNames,
} from '../../scripts/lua-source.mjs';
import { moveClock, useTestClock, withMutations } from '../support/clock.js';
import { settleAll } from '../support/compact.js';
import {
  append,
  create,
  failure,
  freshName,
  given,
  Hand,
  holds,
  items,
  LEASE_MS,
  type Scene,
  success,
} from '../support/given.js';
import type { TestServer } from '../support/providers/provider.js';
import { startOwnRedis } from '../support/redis.js';
import { bodyOf, headOf } from '../support/whole.js';

useTestClock();

/*
 * A server without room for more: what fills is refused before it writes anything, what drains works,
 * or else memory could never get free again. The server is our own, so that nobody else starves.
 */
describe('when Redis is full', () => {
  let server: TestServer;
  let connection: Connection;
  let scene: Scene;
  let worker: Hand;
  let entries: Awaited<ReturnType<Hand['hold']>>;

  const memory = (limit: string) => connection.client.call('CONFIG', 'SET', 'maxmemory', limit);

  beforeAll(async () => {
    server = await startOwnRedis();
    connection = Connection.open(server.url);
  });

  afterAll(async () => {
    await connection?.close();
    await server?.close();
  });

  beforeEach(async () => {
    await memory('0');
    scene = await given.opened();
    const { id, queue } = scene;
    scene = {
      ...scene,
      connection,
      queue: new QueueCommands(connection, queue.keys.queue),
      request: new RequestCommands(connection, id),
    };
    scene = { ...scene, generation: await scene.queue.intent(id) };
    await create(scene, { attempts: 2, limit: 5 });
    await append(scene, 6);
    worker = new Hand(scene);
    entries = await worker.hold(3);
    await memory('1mb');
  });

  const full = (call: Promise<unknown>) =>
    expect(call).rejects.toSatisfy(
      (error) => error instanceof ServerError && error.code === 'FULL' && error.retryable,
    );

  it('refuses an intent', () => full(scene.queue.intent('another')));

  it('refuses a create', async () => {
    const another = { ...scene, request: new RequestCommands(connection, 'another') };
    await full(create(another));
    expect(await connection.client.exists('request:{another}')).toBe(0);
  });

  it('refuses an append', async () => {
    await full(scene.request.append(scene.generation, 'maker', 6, items(1, 6)));
    expect((await scene.request.state())?.total).toBe(6);
  });

  const goesOnWithTheWork = async () => {
    const { id, generation, queue, request } = scene;
    const settled = await worker.settle([success(entries[0]!), failure(entries[1]!)], {
      keep: 2,
      running: 1,
    });
    await queue.push({ id, generation, ...settled });
    expect(await worker.take(1)).toHaveLength(1);
    expect(await worker.read(1)).toHaveLength(1);
    expect(await worker.renew()).toMatchObject({ verdict: 'ok' });
    expect(await request.cause(generation, 'worker', {}, false)).toBe('ok');
    expect(await request.runAlone(generation, 'worker', 1, [entries[2]!.entry])).toMatchObject({
      verdict: 'ok',
    });
    const tokens = await queue.exchange({ id, generation, ...settled, mint: 1 }, 9);
    expect(tokens.length).toBeGreaterThan(0);
    expect(await worker.enter(1, [1])).toMatchObject({ permits: 3 });
    expect(await queue.shouldYield(id, 50)).toBe('keep');
    expect(await request.renewProducer(generation)).toMatchObject({ verdict: 'ok' });
    expect(await request.inspect()).toMatchObject({ inFlight: 3 });
    expect(await holds(scene).hold(generation, 0)).toMatchObject({ verdict: 'held' });
  };

  const completesCompact = async () => {
    await memory('0');
    const id = freshName('compact');
    const queue = freshName('queue');
    const bodies = [bodyOf({ id })];
    const commands = new QueueCommands(connection, queue);
    const [generation = 0] = await commands.submit(headOf({}, queue), bodies);
    const request = new RequestCommands(connection, id);
    await memory('1mb');
    const of = { generation, worker: 'worker', op: 1, want: 3, most: 3, leaseMs: LEASE_MS };
    const entered = await request.enter({ ...of, tasks: '*', epochs: ['1'] });
    expect(entered).toMatchObject({ permits: 3 });
    expect(await settleAll({ request, generation })).toMatchObject({ verdict: 'complete' });
  };

  it('completes compact requests', completesCompact);

  const goesOnWithTheAgenda = async () => {
    const { id, generation, queue, request } = scene;
    await queue.scheduleTend(id, generation, 1);
    const { claims } = await queue.tick('worker', '{}');
    expect(claims).toMatchObject([{ id }]);
    const tended = await request.tend(generation, '');
    expect(await queue.writeBack(claims[0]!, tended as never)).toBeTypeOf('number');
    await queue.park(id, generation, '');
    await queue.reopen(id, generation);
    await queue.deregister('worker');
  };

  const isUnderControl = async () => {
    const { id, generation, queue } = scene;
    const control = new ControlCommands(connection, id);
    const queueControl = new QueueControlCommands(connection, queue.keys.queue);
    expect(await control.pause(generation)).toMatchObject({ verdict: 'ok', mint: 0 });
    expect(await control.resume(generation)).toMatchObject({ verdict: 'ok' });
    expect(await control.update(generation, { priority: 3 })).toMatchObject({ verdict: 'ok' });
    await queueControl.pause(0);
    await queueControl.resume();
  };

  const goesOnWithTheEnd = async () => {
    const { id, generation, queue, request } = scene;
    expect(await request.seal(generation, 'maker', 6)).toMatchObject({ verdict: 'sealed' });
    expect(await request.cancel(generation)).toMatchObject({ verdict: 'cancelling' });
    expect(await worker.trySettle(entries.map((entry) => success(entry)))).toEqual({
      verdict: 'complete',
      outcome: 'cancelled',
    });
    await queue.finish(id, generation, 'cancelled');
    expect(await request.unlinkSpent(generation)).toBe(true);
    expect(await request.drop()).toMatchObject({ verdict: 'dropped' });
    await queue.finish(id, generation, 'dropped');
  };

  const emptiesIds = async () => {
    await memory('0');
    const ids = new IdQueueCommands(connection, freshName('ids'));
    await ids.join('life', {}, 1);
    const chunk = { sender: 'sender', number: 1, keepMs: 60_000 };
    await ids.add('life', chunk, ['a', 'b']);
    await memory('1mb');
    await full(ids.add('life', { ...chunk, number: 2 }, ['c']));
    const pulled = await ids.pull('life');
    moveClock(1);
    expect(await ids.resume('life', pulled as IdItem)).toMatchObject({ verdict: 'ready' });
    expect(await ids.settle('life', { number: 1, attempt: 2 }, 'no')).toMatchObject({
      verdict: 'counted',
    });
    expect(await ids.inspect('life')).toMatchObject({ pending: 1, failures: 1 });
    expect(await ids.drop('life')).toEqual({ verdict: 'dropped' });
  };

  it('hands out and drops ids, and takes no more', emptiesIds);

  it('refuses to create a queue of ids', () =>
    full(new IdQueueCommands(connection, freshName('ids')).join('life', {}, 1)));

  const emptiesTimed = async () => {
    await memory('0');
    const set = new TimedCommands(connection, 'retry', freshName('timed'));
    const entry = (key: string) => ({ key, time: 1, token: '', payload: '1' });
    await set.put('p', 1, [entry('a'), entry('b')]);
    await memory('1mb');
    await full(set.put('p', 2, [entry('c')]));
    expect(await set.take('t', 1, 2, LEASE_MS)).toMatchObject({
      taken: [{ key: 'a' }, { key: 'b' }],
    });
    const discard = { key: 'a', token: 't~1', verb: 'discard', value: 'no' } as const;
    const done = { key: 'b', token: 't~1', verb: 'done', value: '' } as const;
    await set.settle('p', 3, 10, [discard, done]);
    expect(await set.counts()).toMatchObject({ waiting: 0, leased: 0, failures: 1 });
  };

  it('hands out what is due of a timed set, and takes no more', emptiesTimed);

  it('goes on with the work', goesOnWithTheWork);

  it('goes on with the agenda', goesOnWithTheAgenda);

  it('is under control', isUnderControl);

  it('goes on with the end', goesOnWithTheEnd);

  const needed: Partial<Record<ScriptName, () => Promise<void>>> = {
    ...forEach(
      [
        'enter',
        'take',
        'run-alone',
        'cause',
        'settle',
        'renew',
        'exchange',
        'push',
        'renew-producer',
        'hold',
      ],
      goesOnWithTheWork,
    ),
    ...forEach(
      ['schedule-tend', 'tick', 'tend', 'write-back', 'park', 'reopen', 'deregister'],
      goesOnWithTheAgenda,
    ),
    ...forEach(['update', 'pause-queue', 'resume-queue'], isUnderControl),
    ...forEach(['seal', 'cancel', 'finish', 'unlink-spent', 'drop'], goesOnWithTheEnd),
    ...forEach(['id-pull', 'id-resume', 'id-settle', 'id-drop'], emptiesIds),
    ...forEach(['timed-take', 'timed-settle'], emptiesTimed),
  };

  for (const [name, work] of Object.entries(needed)) {
    it(`needs allow-oom in ${name}`, async () => {
      const mutation = {
        script: name as ScriptName,
        flags: false as const,
      };
      await withMutations([mutation], () => full(work()));
    });
  }

  it('has every script that drains among them', () => {
    const draining = scriptNames.filter((name) =>
      parseHeader(name, readSource(name)).flags.includes('allow-oom'),
    );
    expect(Object.keys(needed).sort()).toEqual([...draining].sort());
  });
});

function forEach<T>(names: readonly ScriptName[], value: T): Partial<Record<ScriptName, T>> {
  return Object.fromEntries(names.map((name) => [name, value]));
}
