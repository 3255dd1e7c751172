/**
 * Redis itself stands still, or is gone, while workers live on.
 * @module-tag own-server
 */

import { Redis } from 'ioredis';
import { describe, expect } from 'vitest';
import { gate, test } from '../support/flow.js';
import { startOwnRedis } from '../support/redis.js';
import { until } from '../support/until.js';

/** Longer than any fleet leaves the agenda alone, and than the leases here. */
const AWAY_MS = 16_500;
const LEASE_MS = 5_000;

describe('a Redis that stands still for longer than a lease', () => {
  test('takes nothing away from a worker that still runs it', async ({ flow }) => {
    const server = await startOwnRedis();
    flow.after(() => server.stop());
    const redis = server.url;
    const probe = new Redis(redis);
    flow.after(() => probe.disconnect());
    const done = gate();
    let runs = 0;
    const handler = async () => {
      runs += 1;
      await done.opened;
    };
    const { queue } = flow;
    const workers = [1, 2].map(() =>
      flow.worker({ redis, queue, leaseMs: LEASE_MS, concurrency: 1, handler }),
    );
    for (const worker of workers) await worker.start();
    const { id } = await flow.producer({ redis }).submit([1]);
    await until(() => runs === 1);
    const { agenda, counters, request } = {
      ...flow.queueCommands.keys,
      request: flow.request(id).keys.request,
    };
    await until(async () => await probe.hget(counters, 'tickedAt'));
    await server.kill('SIGSTOP');
    const since = performance.now();
    await until(() => performance.now() - since > AWAY_MS, { timeoutMs: 2 * AWAY_MS });
    await server.kill('SIGCONT');
    const resumedAt = Number(await until(() => probe.hget(counters, 'resumedAt')));
    // Somebody looked at the request since, found its lease long over, and let it be.
    await until(async () => Number(await probe.zscore(agenda, id)) >= resumedAt + LEASE_MS);
    done.open();
    await until(async () => (await probe.hget(request, 'status')) === 'complete');
    expect(await probe.hmget(request, 'succeeded', 'failed')).toEqual(['1', '0']);
    expect(runs).toBe(1);
  });
});
