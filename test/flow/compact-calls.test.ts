/**
 * Requests that are submitted in one call, which needs one server for all keys.
 * @module-tag one-server
 */

import type { Redis } from 'ioredis';
import { describe, expect } from 'vitest';
import { numbers, test } from '../support/flow.js';
import { LEASE_MS } from '../support/given.js';
import { NotingRedis } from '../support/noting-redis.js';
import { argumentsOf, scriptOf } from '../support/script-names.js';

/** Also counts of the calls of `settle-compact` how many finish what they complete. */
class Finishing extends NotingRedis {
  finishing = 0;

  override sendCommand(
    ...[command, stream]: Parameters<Redis['sendCommand']>
  ): ReturnType<Redis['sendCommand']> {
    const isSettle = scriptOf(command.name, command.args) === 'settle-compact';
    if (isSettle)
      this.finishing += Number(argumentsOf('settle-compact', command.args).of('finishes'));
    return super.sendCommand(command, stream);
  }
}

const argsOf = (generation: number) => ({
  ...{ generation, worker: 'worker', op: generation % 1_000, want: 3, leaseMs: LEASE_MS },
  ...{ tasks: '*', epochs: ['1'], most: 3 },
});

describe('calls on compact requests', () => {
  test('go together where they come in one turn', async ({ flow }) => {
    const redis = new NotingRedis(flow);
    const worker = flow.worker({ redis, handler: (n: number) => n, concurrency: 250 });
    const producer = flow.producer();
    const submit = (n: number) => producer.submit([n, n], { id: flow.id(`r${n}`) });
    // The first one shows what the requests are like.
    const first = await submit(0);
    flow.after(() => worker.close());
    await worker.start();
    expect(await flow.complete(first.id)).toMatchObject({ succeeded: 2 });
    redis.sent.length = 0;
    const all = await Promise.all(numbers(30).map((n) => submit(n + 1)));
    for (const { id } of all) expect(await flow.complete(id)).toMatchObject({ succeeded: 2 });
    for (const { id } of all) expect((await flow.results(id)).size).toBe(2);
    const count = (name: string) => redis.sent.filter((one) => one === name).length;
    expect(count('enter-compact')).toBeGreaterThan(0);
    expect(count('enter') + count('enter-compact')).toBeLessThan(20);
    expect(count('settle')).toBe(0);
    expect(count('settle-compact')).toBeLessThan(20);
  });

  test('finish what they complete, where they complete several', async ({ flow }) => {
    const redis = new Finishing(flow);
    const worker = flow.worker({ redis, handler: (n: number) => n, concurrency: 100 });
    const producer = flow.producer();
    const submit = (n: number) => producer.submit([n], { id: flow.id(`r${n}`) });
    const first = await submit(0);
    flow.after(() => worker.close());
    await worker.start();
    expect(await flow.complete(first.id)).toMatchObject({ succeeded: 1 });
    redis.sent.length = 0;
    redis.finishing = 0;
    const all = await Promise.all(numbers(100).map((n) => submit(n + 1)));
    for (const { id } of all) expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
    const count = (name: string) => redis.sent.filter((one) => one === name).length;
    expect(count('settle')).toBe(0);
    expect(redis.finishing).toBeGreaterThan(1);
    // One more clears the queue for the first time.
    expect(count('finish')).toBeLessThanOrEqual(count('settle-compact') - redis.finishing + 1);
  });

  test('refuse no other request for one that cannot be read', async ({ flow }) => {
    const ids = numbers(4).map((n) => flow.id(`r${n}`));
    const submit = (id: string) => flow.producer().submit(numbers(3), { id });
    const all = await Promise.all(ids.map(submit));
    const enter = ({ id, generation }: (typeof all)[0]) =>
      flow.request(id).enter(argsOf(generation));
    const [first, bad, ...good] = all as [(typeof all)[0], (typeof all)[0], ...typeof all];
    expect(await enter(first)).toMatchObject({ verdict: 'ok', compact: 1 });
    const { client } = flow.connection;
    const { request } = flow.request(bad.id).keys;
    await client.rename(request, `${request}:kept`);
    await client.set(request, 'no request');
    const [lost, ...entered] = await Promise.allSettled([bad, ...good].map(enter));
    expect(lost?.status).toBe('rejected');
    for (const one of entered)
      expect(one).toMatchObject({ status: 'fulfilled', value: { verdict: 'ok', permits: 3 } });
    await client.rename(`${request}:kept`, request);
    for (const { id } of all) {
      await flow.request(id).drop();
      const { generation } = (await flow.request(id).state()) ?? {};
      await flow.queueCommands.finish(id, generation ?? 0, 'dropped');
    }
  });
});
