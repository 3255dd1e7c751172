import { createHash } from 'node:crypto';
import { Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { expand } from '../support/compact.js';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

/** So long that nothing of a time slice, or of a look, comes in between. */
const LONG_MS = 600_000;

function piecework(flow: Flow): Piecework {
  const pw = new Piecework({ redis: flow.redis, queue: flow.queue });
  flow.after(() => pw.close());
  return pw;
}

/** Handlers that wait, by the request they belong to. */
function holding() {
  const running = new Map<string, number>();
  const held = gate();
  const handler = async (_: unknown, { requestId }: { requestId: string }) => {
    const change = (by: number) => running.set(requestId, (running.get(requestId) ?? 0) + by);
    change(1);
    await held.opened;
    change(-1);
  };
  const all = () => [...running.values()].reduce((sum, n) => sum + n, 0);
  return { handler, of: (id: string) => running.get(id) ?? 0, all, open: () => held.open() };
}

const tokensOf = (flow: Flow) =>
  flow.connection.client.llen(flow.queueCommands.keys.list(50)) as Promise<number>;

describe('a request without a limit', () => {
  test('uses all slots of the fleet', async ({ flow }) => {
    const { handler, all, open } = holding();
    const workers = numbers(4).map(() =>
      flow.worker({ concurrency: 10, leaseMs: LONG_MS, handler }),
    );
    for (const worker of workers) await worker.start();
    const { id } = await flow.producer().submit(numbers(60));
    await until(() => all() === 40, { what: 'all 40 slots are taken' });
    open();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 60 });
  });

  test('says so in its status, and may be given one and lose it again', async ({ flow }) => {
    const { handler, all, open } = holding();
    await flow.worker({ concurrency: 20, leaseMs: LONG_MS, handler }).start();
    const pw = piecework(flow);
    const request = await pw.submit(numbers(60), { id: flow.id('a'), limit: 3 });
    expect((await request.status()).limit).toBe(3);
    await until(() => all() === 3);
    await request.update({ limit: null });
    await until(() => all() === 20, { what: 'all slots are taken' });
    const status = await request.status();
    expect(status.limit).toBeNull();
    expect(JSON.parse(JSON.stringify(status))).toHaveProperty('limit', null);
    // What a look brought goes back as it is.
    await request.update({ limit: status.limit });
    await request.update({ priority: 40 });
    expect((await request.status()).limit).toBeNull();
    open();
    expect(await flow.complete(request.id)).toMatchObject({ succeeded: 60 });
  });

  test('is the same whether none is given or null', async ({ flow }) => {
    const producer = flow.producer();
    const id = flow.id('a');
    const first = await producer.submit([1, 2], { id });
    expect(await flow.producer().submit([1, 2], { id, limit: null })).toMatchObject({
      generation: first.generation,
    });
    const other = flow.producer().submit([1, 2], { id, limit: 10 });
    await expect(other).rejects.toMatchObject({ code: 'EXISTS', differs: ['limit'] });
  });

  test('has one token while nobody serves it, and never more than 32', async ({ flow }) => {
    const { handler, of, open } = holding();
    const producer = flow.producer();
    const { id } = await producer.submit(numbers(5_000));
    expect(await tokensOf(flow)).toBe(1);
    const worker = flow.worker({ concurrency: 100, leaseMs: LONG_MS, handler });
    await worker.start();
    await until(() => of(id) === 100, { what: 'all slots are taken' });
    const { state } = (await flow.request(id).inspect(['out', 'outBefore']))!;
    expect(Number(state['out']) + Number(state['outBefore'])).toBeLessThanOrEqual(32);
    expect(await tokensOf(flow)).toBeLessThanOrEqual(32);
    open();
    await flow.complete(id);
  });

  test('leaves slots to one of its priority that comes later, as soon as its handlers end', async ({
    flow,
  }) => {
    const order: string[] = [];
    const producer = flow.producer();
    const { id: big } = await producer.submit(numbers(20_000), { id: flow.id('big') });
    const handler = async (_: unknown, { requestId }: { requestId: string }) => {
      order.push(requestId);
      await new Promise((resolve) => setImmediate(resolve));
    };
    await flow.worker({ concurrency: 50, quantumMs: 0, handler }).start();
    await until(() => order.length > 100);
    const before = order.length;
    const { id: small } = await producer.submit(numbers(20), { id: flow.id('small') });
    await flow.complete(small);
    // It neither waits for the end of the other, nor takes all slots at once.
    expect(order.filter((one) => one === big).length).toBeLessThan(20_000);
    expect(order.slice(before)).toContain(big);
    await piecework(flow).request(big).cancel();
    await flow.complete(big);
  });
});

test('what a release with a default limit of 10 submitted is recognised', async ({ flow }) => {
  const producer = flow.producer();
  const id = flow.id('a');
  const first = await producer.submit([1, 2], { id });
  const { request } = flow.request(id).keys;
  // As they name it: with the limit that nobody gave.
  const content = [
    ...[
      ['priority', 50],
      ['limit', 10],
      ['task', null],
      ['window', 0],
      ['results', 'keep'],
    ],
    ...[
      ['maxCrashes', 3],
      ['attempts', 1],
      ['backoff', null],
      ['attemptTimeoutMs', null],
    ],
    ...[
      ['deadlineMs', null],
      ['delayMs', null],
      ['runAt', null],
      ['expedite', false],
    ],
    ...[
      ['toleratedFailures', 0],
      ['onExceeded', 'continue'],
      ['retentionMs', 86_400_000],
    ],
    ...[
      ['onProducerLost', 'cancel'],
      ['producerLeaseMs', 30_000],
      ['metadata', null],
    ],
  ];
  const text = JSON.stringify([flow.queue, content]);
  const digest = createHash('sha256').update(text).digest('base64url');
  await expand(flow.request(id));
  expect(await flow.connection.client.hget(request, 'digest')).toBe(digest);
  await flow.connection.client.hset(request, 'limit', 10);
  expect(await flow.producer().submit([1, 2], { id })).toMatchObject({
    generation: first.generation,
    total: 2,
  });
});
