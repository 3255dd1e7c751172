import { TIMES } from '@piecework/protocol';
import type { HandlerContext } from '@piecework/worker';
import type { Redis } from 'ioredis';
import { describe, expect } from 'vitest';
import { expand } from '../support/compact.js';
import { gate, numbers, test } from '../support/flow.js';
import { holdable } from '../support/held-settles.js';
import { until } from '../support/until.js';

/** So long that nothing that recurs with the lease happens during a test. */
const LONG_MS = 600_000;

/** A handler of the items 0 to 2, each of which ends when its gate is opened. */
function threeGates() {
  const gates = numbers(3).map(() => gate());
  const started: number[] = [];
  const handler = async (n: number) => {
    started.push(n);
    await gates[n]!.opened;
    return n;
  };
  return { gates, started, handler };
}

describe('a worker', () => {
  test('aborts its handlers by its own clock when nothing renews the lease', {
    tags: ['own-server', 'one-server'],
  }, async ({ flow }) => {
    let aborted = false;
    const paused = gate();
    const handler = async (_: number, { signal }: HandlerContext) => {
      // The worker that runs it after that has nothing to wait for.
      if (aborted) return 'again';
      await new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
      aborted = true;
      // On a machine that stood still its lease may have ended before.
      await paused.opened;
      return 'late';
    };
    const worker = flow.worker({ concurrency: 1, leaseMs: 1_000, handler });
    await worker.start();
    const { id } = await flow.producer().submit([1]);
    await until(() => worker.running === 1);
    const client = flow.connection.client as Redis;
    flow.after(() => client.call('CLIENT', 'UNPAUSE'));
    // The server answers no script any more, and can withdraw nothing either.
    await client.call('CLIENT', 'PAUSE', LONG_MS, 'WRITE');
    paused.open();
    await until(() => aborted, { timeoutMs: 8_000, what: 'the handler is aborted' });
    expect(await client.exists(flow.request(id).keys.results)).toBe(0);
    await client.call('CLIENT', 'UNPAUSE');
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1, failed: 0 });
  });

  test.for([1_000, 30_000])(
    'with a lease of %i ms has a new request tended when the lease could have ended',
    async (leaseMs, { flow }) => {
      const open = gate();
      const worker = flow.worker({ leaseMs, handler: () => open.opened });
      await worker.start();
      const { id, generation } = await flow.producer().submit([1]);
      await until(() => worker.running === 1);
      const { agenda } = flow.queueCommands.keys;
      const dueAt = async () => Number(await flow.connection.client.zscore(agenda, id));
      const first = generation + TIMES.intentGraceMs;
      if (leaseMs < TIMES.intentGraceMs) await until(async () => (await dueAt()) < first);
      else expect(await dueAt()).toBe(first);
      open.open();
      await flow.complete(id);
    },
  );

  test('gives back at once the items that arrive while it closes', {
    tags: 'one-server',
  }, async ({ flow }) => {
    const client = holdable(flow);
    const { gates, started, handler } = threeGates();
    const options = { concurrency: 2, leaseMs: LONG_MS, quantumMs: LONG_MS, handler };
    const worker = flow.worker({ ...options, redis: client });
    // Before its client is.
    flow.after(() => worker.close());
    await worker.start();
    const { id } = await flow.producer().submit(numbers(3), { limit: 2 });
    await until(() => worker.running === 2);
    // The settle that brings the third one is on its way when the worker begins to close.
    const held = gate();
    client.held = held.opened;
    gates[0]!.open();
    await until(() => client.waiting > 0);
    const closed = worker.close();
    client.held = undefined;
    held.open();
    const request = flow.request(id);
    const seen = await until(
      async () => {
        const now = await request.inspect();
        return now?.state.succeeded === '1' && now.ready === 1 && now;
      },
      { timeoutMs: 8_000, what: 'the third one is ready again' },
    );
    expect(seen.inFlight).toBe(1);
    expect(started.sort()).toEqual([0, 1]);
    for (const one of gates) one.open();
    await closed;
    await flow.worker({ handler: async (n: number) => n }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 3 });
  });

  test('takes nothing under a permit that it no longer has', async ({ flow }) => {
    const { gates, started, handler } = threeGates();
    const options = { concurrency: 2, leaseMs: LONG_MS, quantumMs: LONG_MS };
    const worker = flow.worker({ ...options, handler });
    await worker.start();
    const { id } = await flow.producer().submit(numbers(3), { limit: 2 });
    await until(() => worker.running === 2);
    // It does not know yet: the settle whose answer says so also asks for the third one.
    const request = flow.request(id);
    await expand(request);
    await flow.connection.client.hset(request.keys.request, 'limit', '1');
    gates[0]!.open();
    const seen = await until(
      async () => {
        const now = await request.inspect();
        return now?.state.succeeded === '1' && now.inFlight === 1 && now;
      },
      { timeoutMs: 8_000, what: 'only what runs is in flight' },
    );
    expect(seen.ready).toBe(1);
    expect(started.sort()).toEqual([0, 1]);
    gates[1]!.open();
    gates[2]!.open();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 3 });
  });
});
