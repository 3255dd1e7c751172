import { Agenda, type RedisInput } from '@piecework/protocol';
import { Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import type { ScriptName } from '../../scripts/lua-source.mjs';
import { moveClock, useTestClock } from '../support/clock.js';
import { type Flow, test } from '../support/flow.js';
import { NotingRedis } from '../support/noting-redis.js';
import { interceptScripts } from '../support/script-calls.js';
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
  interceptScripts(client, async (_, send) => {
    if (client.sent.includes(last)) throw new Error('Connection is closed.');
    return send();
  });
  const pw = new Piecework({ redis: client, queue: flow.queue });
  flow.after(() => pw.close());
  return { pw, isDead: () => client.sent.includes(last) };
}

describe('a request that is asleep among many goes on within a minute', () => {
  const changes = [
    ['resume', 'update'],
    ['cancel', 'cancel'],
    ['drop', 'drop'],
  ] as const;
  for (const [change, last] of changes)
    test(`although the process that called ${change} died before it notified the queue`, async ({
      flow,
    }) => {
      const { id, agenda } = await asleep(flow);
      const { pw, isDead } = dying(flow, last);
      pw.request(id)
        [change]()
        .catch(() => {});
      await until(isDead);
      moveClock(61_000);
      await agenda.tick();
      if (change === 'resume') await flow.worker({ handler: (n: number) => n }).start();
      await until(async () => !(await flow.queueCommands.whereabouts(id)).open);
      const state = await flow.request(id).inspect();
      expect(state?.state['outcome']).toBe(
        { resume: 'succeeded', cancel: 'cancelled', drop: undefined }[change],
      );
    });
});
