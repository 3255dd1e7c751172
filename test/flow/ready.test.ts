/**
 * Readiness while nothing but the calls of busy slots would tell that Redis is away.
 * @module-tag one-server
 * @module-tag processes
 */
import { expect } from 'vitest';
import { gate, test } from '../support/flow.js';
import { SwallowingProxy } from '../support/swallowing-proxy.js';
import { until } from '../support/until.js';

test('a worker whose slots are all taken is not ready once Redis answers nothing, and ready when it does', async ({
  flow,
}) => {
  const proxy = await SwallowingProxy.open(Number(new URL(flow.redis as string).port));
  flow.after(() => proxy[Symbol.asyncDispose]());
  const held = gate();
  const redis = { host: '127.0.0.1', port: proxy.port };
  const worker = flow.worker({ redis, concurrency: 1, handler: () => held.opened });
  flow.after(() => worker.close());
  await worker.start();
  const { id } = await flow.producer().submit([1]);
  await until(() => worker.running === 1);
  proxy.swallow();
  await until(() => !worker.health().ready, { what: 'it is not ready' });
  const { live, why } = worker.health();
  expect(live).toBe(true);
  // Sooner than its looks at the agenda are late.
  expect(why).toContainEqual(expect.stringMatching(/^Redis has not answered for \d+ s$/));
  proxy.lift();
  proxy.cut();
  await until(() => worker.health().ready, { what: 'it is ready again' });
  held.open();
  await flow.complete(id);
});

test('a handler that holds up the event loop makes nobody think that Redis is silent', async ({
  flow,
}) => {
  const seen: boolean[] = [];
  const handler = () => {
    const end = performance.now() + 6_000;
    while (performance.now() < end) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
  };
  const worker = flow.worker({ concurrency: 1, handler });
  await worker.start();
  await until(() => worker.health().ready);
  const { id } = await flow.producer().submit([1]);
  const looking = setInterval(() => seen.push(worker.health().ready), 1);
  flow.after(() => clearInterval(looking));
  await flow.complete(id);
  expect(seen).not.toContain(false);
});
