import { requestKeys } from '@piecework/protocol';
import { type Command, Redis } from 'ioredis';
import { Admin } from 'piecework';
import { expect, vi } from 'vitest';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { requestsOf } from '../support/script-names.js';
import { until } from '../support/until.js';

interface Enter {
  readonly key: string;
  readonly want: number;
  /** How long the last pop before it took. */
  readonly popMs: number;
}

/** Notes how each request is entered from here on. `poppedAt`: when the last pop was sent. */
function watch(flow: Flow): {
  readonly entered: readonly Enter[];
  readonly poppedAt: () => number;
} {
  const entered: Enter[] = [];
  let [popMs, poppedAt] = [0, 0];
  const plain = Redis.prototype.sendCommand;
  const spy = vi.spyOn(Redis.prototype, 'sendCommand').mockImplementation(function (
    this: Redis,
    command,
    stream,
  ) {
    const { name, args } = command as unknown as Command;
    for (const { key, of } of requestsOf('enter', { name, args }))
      entered.push({ key, want: Number(of('want')), popMs });
    const sentAt = performance.now();
    const reply = plain.call(this, command, stream) as Promise<unknown>;
    if (name !== 'blmpop') return reply;
    poppedAt = sentAt;
    return reply.finally(() => {
      popMs = performance.now() - sentAt;
    });
  });
  flow.after(() => spy.mockRestore());
  return { entered, poppedAt: () => poppedAt };
}

async function startWorker(flow: Flow, handler: (n: number) => unknown): Promise<void> {
  const worker = flow.worker({ concurrency: 8, handler });
  flow.after(() => worker.close());
  await worker.start();
}

/*
 * If requests of one sub-request were entered for all slots that became free while their tokens were popped, these slots
 * would be taken until the server has answered, and nothing could be popped for them.
 */
test('slots that become free during a pop are left to the next one, if more is there', {
  tags: ['one-server'],
}, async ({ flow }) => {
  const producer = flow.producer();
  const count = 400;
  const submit = (_: unknown, i: number) => producer.submit([i], { id: flow.id(`r${i}`) });
  const requests = await Promise.all(Array.from({ length: count }, submit));
  const { entered } = watch(flow);
  await startWorker(flow, (n) => n);
  await Promise.all(requests.map(({ id }) => flow.complete(id)));
  expect(entered.length).toBeGreaterThanOrEqual(count);
  // By the hundredth the worker knows that they use one slot each; the last pop brings fewer than it asks for. A pop that
  // took longer may have waited for a token.
  const usual = entered.slice(100, count - 20).filter(({ popMs }) => popMs < 10);
  expect(usual.length).toBeGreaterThan(0);
  expect(usual.filter(({ want }) => want !== 1)).toEqual([]);
});

/*
 * A request of ten would take eight slots, and the next would wait for them, though one slot runs all ten in no time.
 */
test('requests of a few sub-requests with short handlers take a slot each', {
  tags: ['one-server'],
}, async ({ flow }) => {
  const producer = flow.producer();
  const count = 200;
  const { entered } = watch(flow);
  /** How many of the requests that came at once got one or two slots. */
  const part = async (round: number) => {
    const submit = (_: unknown, i: number) =>
      producer.submit(numbers(10), { id: flow.id(`r${round}-${i}`) });
    const before = entered.length;
    const requests = await Promise.all(Array.from({ length: count }, submit));
    await Promise.all(requests.map(({ id }) => flow.complete(id)));
    const usual = entered.slice(before + 100, before + count - 20);
    const atOnce = usual.filter(({ popMs }) => popMs < 10);
    return atOnce.filter(({ want }) => want <= 2).length / Math.max(1, atOnce.length);
  };
  await startWorker(flow, (n) => n);
  // On a machine that is very busy handlers seem to be slow.
  const parts: number[] = [];
  while (parts.length < 5 && !parts.some((one) => one > 0.25)) parts.push(await part(parts.length));
  expect(Math.max(...parts)).toBeGreaterThan(0.25);
});

test('an urgent request gets all free slots, though those before it used one each', {
  tags: ['one-server'],
}, async ({ flow }) => {
  const producer = flow.producer();
  const started: number[] = [];
  const held = gate();
  const handler = (n: number) => {
    started.push(n);
    return n < 1_000 ? n : held.opened;
  };
  const submit = (n: number) => producer.submit([n], { id: flow.id(`r${n}`) });
  const requests = await Promise.all(numbers(100).map(submit));
  const { entered } = watch(flow);
  await startWorker(flow, handler);
  await Promise.all(requests.map(({ id }) => flow.complete(id)));
  const admin = new Admin({ redis: flow.redis, queue: flow.queue });
  flow.after(() => admin.close());
  await admin.pauseQueue();
  const later = await producer.submit(numbers(8, 2_000), { id: flow.id('later'), priority: 9 });
  const urgent = await producer.submit(numbers(8, 1_000), { id: flow.id('urgent'), priority: 0 });
  await admin.resumeQueue();
  await until(() => started.length === 108);
  expect(started.slice(100).toSorted()).toEqual(numbers(8, 1_000));
  held.open();
  for (const { id } of [urgent, later]) await flow.complete(id);
  const key = requestKeys(urgent.id).request;
  expect(entered.find((one) => one.key === key)).toMatchObject({ want: 8 });
});

test('a request that comes while a pop waits gets all slots that are free by then', {
  tags: ['one-server'],
}, async ({ flow }) => {
  const gates = numbers(8).map(() => gate());
  const { entered, poppedAt } = watch(flow);
  await startWorker(flow, (n) => gates[n]?.opened);
  const producer = flow.producer();
  for (const n of numbers(8)) await producer.submit([n], { id: flow.id(`r${n}`) });
  await until(() => entered.length === 8);
  // The first one that is free asks for one token; seven more slots become free while this pop waits.
  for (const [n, held] of gates.entries()) {
    held.open();
    await flow.complete(flow.id(`r${n}`));
  }
  await until(() => performance.now() - poppedAt() > 100, { what: 'the pop has waited' });
  const { id } = await producer.submit(numbers(100), { id: flow.id('large') });
  await flow.complete(id);
  const first = entered.find(({ key }) => key === requestKeys(id).request);
  expect(first).toMatchObject({ want: 8 });
});
