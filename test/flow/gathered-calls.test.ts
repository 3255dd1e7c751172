/**
 * Requests that are submitted in one call, which needs one server for all keys.
 * @module-tag one-server
 */

import { describe, expect } from 'vitest';
import { numbers, test } from '../support/flow.js';
import { LEASE_MS } from '../support/given.js';
import { NotingRedis } from '../support/noting-redis.js';

const argsOf = (generation: number) => ({
  ...{ generation, worker: 'worker', op: generation % 1_000, want: 3, leaseMs: LEASE_MS },
  ...{ tasks: '*', epochs: ['1'], most: 3 },
});

describe('calls on several requests', () => {
  test('go together where they come in one turn', async ({ flow }) => {
    const redis = new NotingRedis(flow);
    const worker = flow.worker({ redis, handler: (n: number) => n, concurrency: 250 });
    const producer = flow.producer();
    const submit = (n: number) => producer.submit([n, n], { id: flow.id(`r${n}`) });
    flow.after(() => worker.close());
    await worker.start();
    redis.sent.length = 0;
    const all = await Promise.all(numbers(30).map((n) => submit(n + 1)));
    for (const { id } of all) expect(await flow.complete(id)).toMatchObject({ succeeded: 2 });
    for (const { id } of all) expect((await flow.results(id)).size).toBe(2);
    const count = (name: string) => redis.sent.filter((one) => one === name).length;
    expect(count('enter')).toBeLessThan(20);
    expect(count('settle')).toBeLessThan(20);
    expect(count('finish')).toBeLessThan(20);
  });

  test('refuse no other request for one that cannot be read', async ({ flow }) => {
    const ids = numbers(4).map((n) => flow.id(`r${n}`));
    const submit = (id: string) => flow.producer().submit(numbers(3), { id });
    const all = await Promise.all(ids.map(submit));
    const enter = ({ id, generation }: (typeof all)[0]) =>
      flow.request(id).enter(argsOf(generation));
    const [bad, ...good] = all as [(typeof all)[0], ...typeof all];
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
