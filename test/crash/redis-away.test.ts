/**
 * Redis itself stands still, or is gone, while workers live on.
 * @module-tag own-server
 * @module-tag one-server
 */

import { Redis } from 'ioredis';
import { describe, expect } from 'vitest';
import { stateOf } from '../support/compact.js';
import { gate, test } from '../support/flow.js';
import { startOwnRedis } from '../support/redis.js';
import { SwallowingProxy } from '../support/swallowing-proxy.js';
import { until } from '../support/until.js';

/** Longer than any fleet leaves the agenda alone, and than the leases here. */
const AWAY_MS = 16_500;
const LEASE_MS = 12_000;

describe('a Redis that stands still for longer than a lease', () => {
  test('takes nothing away from a worker that still runs it', async ({ flow }) => {
    const server = await startOwnRedis();
    flow.after(() => server.close());
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
    const options = { queue, leaseMs: LEASE_MS, concurrency: 1, handler };
    // Whoever runs it is cut off, or its renewal, on its way while Redis stands still, may be first.
    const proxy = await SwallowingProxy.open(Number(new URL(redis).port));
    const runner = flow.worker({ ...options, redis: `redis://127.0.0.1:${proxy.port}` });
    await runner.start();
    const { id } = await flow.producer({ redis }).submit([1]);
    await until(() => runs === 1);
    await flow.worker({ ...options, redis }).start();
    const { agenda, counters, request } = {
      ...flow.queueCommands.keys,
      request: flow.request(id).keys.request,
    };
    await until(async () => await probe.hget(counters, 'tickedAt'));
    proxy.swallow();
    await server.kill('SIGSTOP');
    const since = performance.now();
    await until(() => performance.now() - since > AWAY_MS, { timeoutMs: 2 * AWAY_MS });
    await server.kill('SIGCONT');
    const resumedAt = Number(await until(() => probe.hget(counters, 'resumedAt')));
    // Somebody tended the request since, found that its lease had ended long ago, and left it alone.
    await until(async () => Number(await probe.zscore(agenda, id)) === resumedAt + LEASE_MS);
    const fields = Object.entries(await stateOf(probe, request));
    const [[, lease] = []] = fields.filter(([field]) => field.startsWith('lease:'));
    expect(Number(lease)).toBeLessThan(resumedAt);
    done.open();
    proxy.lift();
    proxy.cut();
    await until(async () => (await stateOf(probe, request))['status'] === 'complete');
    expect(await stateOf(probe, request)).toMatchObject({ succeeded: '1', failed: '0' });
    expect(runs).toBe(1);
    await runner.close();
    await proxy[Symbol.asyncDispose]();
  });
});
