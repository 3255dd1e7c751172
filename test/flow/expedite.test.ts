import { InvalidOptionError } from '@piecework/protocol';
import type { HandlerContext } from '@piecework/worker';
import { describe, expect } from 'vitest';
import { type Flow, gate, heard, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

/** What started, by the last part of its request's name; the first one waits until it is let go. */
function recorder() {
  const { opened, open } = gate();
  const order: string[] = [];
  const handler = async (_: unknown, { requestId }: HandlerContext) => {
    order.push(requestId.split('.').at(-1) as string);
    if (order.length === 1) await opened;
  };
  return { order, open: () => open(), handler };
}

const inLane = (flow: Flow, priority = 50) =>
  flow.connection.client.llen(flow.queueCommands.keys.lane(priority));

const times = (n: number, name: string): string[] => numbers(n).map(() => name);

describe('expedited requests', () => {
  test('that came due while another ran go before what is left of it, in due order', async ({
    flow,
  }) => {
    const { order, open, handler } = recorder();
    const producer = flow.producer();
    await producer.submit(numbers(5), { id: flow.id('plain') });
    await flow.worker({ concurrency: 1, quantumMs: 0, handler }).start();
    // Who does not listen yet learns of the lane later.
    await heard(flow);
    await until(() => order.length === 1);
    // By one clock: two delays would begin with their submissions, however far apart those are.
    const [runAt, expedite] = [Date.now() + 40, true];
    await producer.submit(numbers(3), { id: flow.id('later'), runAt: runAt + 360, expedite });
    await producer.submit(numbers(3), { id: flow.id('soon'), runAt, expedite });
    await producer.submit(numbers(2), { id: flow.id('other') });
    await producer.submit(numbers(1), { id: flow.id('urgent'), priority: 10 });
    await until(async () => (await inLane(flow)) === 2);
    open();
    for (const name of ['later', 'soon', 'plain', 'other', 'urgent'])
      expect(await flow.complete(flow.id(name))).toMatchObject({ outcome: 'succeeded' });
    const first = ['plain', 'urgent', ...times(3, 'soon'), ...times(3, 'later')];
    expect(order.slice(0, first.length)).toEqual(first);
    expect(order.slice(first.length).sort()).toEqual([...times(2, 'other'), ...times(4, 'plain')]);
  });

  test('keep their order over retries, many slots and a limit of one', async ({ flow }) => {
    const { order, open, handler } = recorder();
    const failed = new Set<string>();
    const producer = flow.producer();
    await producer.submit(numbers(1), { id: flow.id('plain') });
    const flaky = async (item: unknown, context: HandlerContext) => {
      await handler(item, context);
      const { requestId, index } = context;
      if (failed.has(`${requestId} ${index}`) || requestId.endsWith('plain')) return;
      failed.add(`${requestId} ${index}`);
      // Meanwhile another request would be entered, if that were allowed.
      for (let i = 0; i < 30; i += 1) await flow.connection.client.get(requestId);
      throw new Error('the first time');
    };
    await flow.worker({ concurrency: 1, quantumMs: 0, handler: flaky }).start();
    await heard(flow);
    await until(() => order.length === 1);
    for (const runAt of [30, 10, 20]) {
      const id = flow.id(`due${runAt}`);
      await producer.submit(numbers(4), { id, runAt, expedite: true, attempts: 2, limit: 1 });
    }
    expect(await inLane(flow)).toBe(3);
    open();
    const names = ['due10', 'due20', 'due30'];
    for (const name of names)
      expect(await flow.complete(flow.id(name))).toMatchObject({ succeeded: 4 });
    expect(order).toEqual(['plain', ...names.flatMap((name) => times(8, name))]);
  });

  test('are found by an idle worker that receives the message about the lane', async ({ flow }) => {
    const { order, open, handler } = recorder();
    open();
    await flow.worker({ concurrency: 2, handler }).start();
    await flow.producer().submit(numbers(4), { id: flow.id('due'), runAt: 5, expedite: true });
    expect(await flow.complete(flow.id('due'))).toMatchObject({ succeeded: 4 });
    expect(order).toHaveLength(4);
  });

  test('are found by an idle worker that missed the message', async ({ flow }) => {
    const { open, handler } = recorder();
    open();
    await flow.worker({ concurrency: 2, handler }).start();
    // As though it were known, so nobody says anything: it is learnt by the next tick.
    await flow.connection.client.hset(flow.queueCommands.keys.pushed, 'lanes', '50');
    await flow.producer().submit(numbers(4), { id: flow.id('due'), runAt: 5, expedite: true });
    expect(await flow.complete(flow.id('due'))).toMatchObject({ succeeded: 4 });
  });

  test('are worked off by a fleet, beside undelayed ones', async ({ flow }) => {
    const done = new Map<string, number>();
    const handler = async (_: unknown, { requestId }: HandlerContext) => {
      done.set(requestId, (done.get(requestId) ?? 0) + 1);
    };
    for (let i = 0; i < 3; i += 1)
      await flow.worker({ concurrency: 4, quantumMs: 1, handler }).start();
    const producer = flow.producer();
    const ids = await Promise.all(
      numbers(12).map(async (n) => {
        const expedited = { delayMs: (n * 7) % 50, expedite: true };
        const id = flow.id(`r${n}`);
        await producer.submit(numbers(60), { id, limit: 3 + n, ...(n % 3 > 0 ? expedited : {}) });
        return id;
      }),
    );
    for (const id of ids) expect(await flow.complete(id)).toMatchObject({ succeeded: 60 });
    expect([...done.values()]).toEqual(ids.map(() => 60));
  });

  test('are only those that are delayed', async ({ flow }) => {
    const producer = flow.producer();
    const submitted = producer.submit([1], { id: flow.id('never'), expedite: true });
    await expect(submitted).rejects.toThrow(InvalidOptionError);
    await expect(submitted).rejects.toMatchObject({ field: 'expedite' });
    const word = { delayMs: 5, expedite: 'yes' as never };
    await expect(producer.submit([1], word)).rejects.toMatchObject({ field: 'expedite' });
    expect(await flow.keys()).toEqual([]);
  });
});
