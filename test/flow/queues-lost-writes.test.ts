import { IdQueue, RetryQueue } from '@piecework/queues';
import { type Command, Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { keepState } from '../scale/lost-writes.mjs';
import { startOwnRedis } from '../support/redis.js';
import { until } from '../support/until.js';

/** A client after whose next script call something happens, before the caller hears the answer. */
class Interrupted extends Redis {
  afterNext: (() => Promise<unknown>) | undefined;

  override sendCommand(command: Command, stream?: never): unknown {
    const reply = super.sendCommand(command, stream) as Promise<unknown>;
    if (!/^eval(sha)?$/.test(command.name) || !this.afterNext) return reply;
    const then = this.afterNext;
    return reply.then(async (answer) => {
      if (this.afterNext === then) this.afterNext = undefined;
      else return answer;
      await then();
      return answer;
    });
  }
}

/** A server of the test's own, and a client of it. */
async function ownServer() {
  const server = await startOwnRedis();
  onTestFinished(() => server.close());
  const client = new Interrupted(server.url);
  onTestFinished(() => client.disconnect());
  return { redis: server.url, client };
}

describe('a queue whose server lost its last writes', { tags: ['own-server'] }, () => {
  it('of ids offers each id that was added since, also when a forgotten one is reported', async () => {
    const { redis, client } = await ownServer();
    const queue = await IdQueue.join('ids', { redis, timeoutMs: 1_000 });
    onTestFinished(() => queue.close());
    const putBack = await keepState(client);
    await queue.add('forgotten');
    const stale = await queue.pull();
    await putBack();
    await queue.add('kept');
    const item = await queue.pull();
    expect(item).toMatchObject({ state: 'ready', id: 'kept' });
    expect(await queue.done(stale.key as string)).toBe(false);
    const again = await until(async () => {
      const pulled = await queue.pull();
      return pulled.state === 'timed-out' && pulled;
    });
    expect(again).toEqual({ ...again, id: 'kept', key: item.key });
    const resumed = await queue.resume(again.key as string);
    expect(await queue.done(resumed.key as string)).toBe(true);
    expect(await queue.counts()).toMatchObject({ pending: 0, running: 0, completed: 1 });
  });

  it('of ids contains all of an add that was answered, though a part of it was lost', async () => {
    const { client } = await ownServer();
    const queue = await IdQueue.join('ids', { redis: client });
    onTestFinished(() => queue.close());
    await queue.add('before');
    client.afterNext = await keepState(client);
    const ids = Array.from({ length: 1_200 }, (_, i) => `id ${i}`);
    expect(await queue.add(ids)).toBe(1_201);
    expect(await client.lrange('ids:{ids}:pending', 0, -1)).toEqual(['before', ...ids]);
  });

  it('of retries hands an item out again, and ignores its earlier consumer', async () => {
    const { redis, client } = await ownServer();
    const queueOf = () => {
      const queue = new RetryQueue<string>({ redis, name: 'retries' });
      onTestFinished(() => queue.close());
      return queue;
    };
    const [first, second] = [queueOf(), queueOf()];
    await first.put('payload');
    const putBack = await keepState(client);
    const taken = (await first.items({ demand: 1 }).next()).value;
    await putBack();
    const again = (await second.items({ demand: 1 }).next()).value;
    expect(again).toMatchObject({ key: taken?.key, payload: 'payload' });
    expect(await taken?.done()).toBe(false);
    expect(await second.counts()).toMatchObject({ leased: 1 });
    expect(await again?.done()).toBe(true);
    expect(await second.counts()).toMatchObject({ waiting: 0, leased: 0 });
  });
});
