/**
 * Requests that only wait, among many: what a process leaves half done when it dies.
 * @module-tag one-server
 */
import { Agenda, QueueControlCommands, type RedisInput } from '@piecework/protocol';
import { Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import type { ScriptName } from '../../scripts/lua-source.mjs';
import { moveClock, useTestClock } from '../support/clock.js';
import { type Flow, test } from '../support/flow.js';
import { NotingRedis } from '../support/noting-redis.js';
import { interceptScripts } from '../support/script-calls.js';
import { scriptOf } from '../support/script-names.js';
import { until } from '../support/until.js';

useTestClock();

/** So many that one of them is tended again after hours. */
const MANY = 20_000;
const HOUR_MS = 3_600_000;

/** A paused request that is asleep among many that only wait, and what tends it. */
async function asleep(flow: Flow) {
  const { client } = flow.connection;
  const { keys } = flow.queueCommands;
  const later = Date.now() + 1_000 * HOUR_MS;
  const others = Array.from({ length: MANY }, (_, i) => [later, `other${i}`]).flat();
  await client.zadd(keys.agenda, ...others);
  const { id } = await flow.producer().submit([1], { id: flow.id('a') });
  const pw = new Piecework({ redis: flow.redis as RedisInput, queue: flow.queue });
  flow.after(() => pw.close());
  await pw.request(id).pause();
  await client.rpop(keys.lists[50] as string);
  const agenda = new Agenda(flow.connection, flow.queueCommands);
  await until(async () => {
    moveClock(10_000);
    await agenda.tick();
    return Number(await client.zscore(keys.agenda, id)) - Date.now() > HOUR_MS;
  });
  return { id, pw, agenda };
}

/** A process that dies once it has sent the script `last`. */
function dying(flow: Flow, last: ScriptName) {
  const client = new NotingRedis(flow);
  let isDead = false;
  interceptScripts(client, async (_, send) => {
    if (isDead) throw new Error('Connection is closed.');
    const reply = await send();
    isDead = client.sent.includes(last);
    return reply;
  });
  const pw = new Piecework({ redis: client, queue: flow.queue });
  flow.after(() => pw.close());
  return { pw, isDead: () => isDead };
}

/** Makes a change of a request that is asleep, by a process that dies of its first call, and a tick a minute later. */
async function cutOff(flow: Flow, change: 'resume' | 'cancel' | 'drop') {
  const { id, agenda } = await asleep(flow);
  const { pw, isDead } = dying(flow, change === 'resume' ? 'update' : change);
  pw.request(id)
    [change]()
    .catch(() => {});
  await until(isDead);
  moveClock(61_000);
  await agenda.tick();
  return id;
}

const left = (flow: Flow, id: string) =>
  until(async () => !(await flow.queueCommands.whereabouts(id)).open);

describe('a request that is asleep among many goes on within a minute', () => {
  test('when the process that resumed it died before it notified the queue', async ({ flow }) => {
    const id = await cutOff(flow, 'resume');
    await flow.worker({ handler: (n: number) => n }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
  });

  test('when the process that cancelled it died before it notified the queue', async ({ flow }) => {
    const id = await cutOff(flow, 'cancel');
    await left(flow, id);
    expect(await flow.complete(id)).toMatchObject({ cancelled: 1 });
  });

  test('when the process that dropped it died before it notified the queue', async ({ flow }) => {
    await left(flow, await cutOff(flow, 'drop'));
  });
});

test('a change that Redis could not answer is announced again', async ({ flow }) => {
  const { id } = await flow.producer().submit([1], { id: flow.id('a') });
  const client = new NotingRedis(flow);
  const called: (string | undefined)[] = [];
  interceptScripts(client, async (args, send) => {
    const script = scriptOf('evalsha', args);
    called.push(script);
    if (script === 'update' && called.filter((name) => name === script).length === 1)
      throw new Error('Connection is closed.');
    return send();
  });
  const pw = new Piecework({ redis: client, queue: flow.queue });
  flow.after(() => pw.close());
  await pw.request(id).resume();
  const changes = called.filter((name) => name === 'schedule-tend' || name === 'update');
  expect(changes).toEqual([
    ...['schedule-tend', 'update', 'schedule-tend', 'update'],
    'schedule-tend',
  ]);
});

test('parked requests of a worker that comes are found page by page without a wait', async ({
  flow,
}) => {
  const queue = flow.queueCommands;
  const ids = Array.from({ length: 250 }, (_, i) => flow.id(`a${i}`));
  const waiting = await Promise.all(
    ids.map(async (id) => {
      const generation = await queue.intent(id);
      await queue.park(id, generation, 'mine');
      return { id, generation };
    }),
  );
  const found: string[] = [];
  const agenda = new Agenda(flow.connection, queue, {
    seeking: () => ' mine ',
    onTick: ({ parked }) => found.push(...parked.map(({ id }) => id)),
  });
  const waits = [await agenda.tick(), await agenda.tick(), await agenda.tick()];
  expect(waits.map((ms) => ms > 0)).toEqual([false, false, true]);
  expect(found.sort()).toEqual(ids.sort());
  await Promise.all(waiting.map(({ id, generation }) => queue.finish(id, generation, 'gone')));
});

describe('a parked request', () => {
  test('is not tended for a worker whose queue is paused', async ({ flow }) => {
    const { keys } = flow.queueCommands;
    const { client } = flow.connection;
    const control = new QueueControlCommands(flow.connection, flow.queue);
    await control.pause(0);
    flow.after(() => control.resume());
    const worker = flow.worker({ handlers: [{ task: 'mine', run: (n: number) => n }] });
    await worker.start();
    const signOf = async () => {
      const signs = await client.call('ZRANGE', keys.workers, 0, 0, 'WITHSCORES');
      return Number((signs as string[])[1]);
    };
    const ticked = async () => {
      const seen = await signOf();
      await until(async () => (await signOf()) > seen);
    };
    await ticked();
    const { id, generation } = await flow
      .producer()
      .submit([1], { id: flow.id('a'), task: 'mine' });
    await flow.queueCommands.park(id, generation, 'mine');
    const later = Date.now() + HOUR_MS;
    await client.zadd(keys.agenda, later, id);
    await ticked();
    await ticked();
    expect(await client.zscore(keys.agenda, id)).toBe(String(later));
  });
});
