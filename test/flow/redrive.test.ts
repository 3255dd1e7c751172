import { InvalidOptionError, NotCompleteError, NotFoundError } from '@piecework/protocol';
import { Admin, Piecework, type ResultItem } from 'piecework';
import { beforeAll, describe, expect } from 'vitest';
import { FaultyClients } from '../support/faulty-client.js';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { connected } from '../support/given.js';
import { keepKeys } from '../support/lost-writes.js';
import { completeWithFailures } from '../support/redriven.js';

// Opened before the first test counts its connections.
beforeAll(async () => (await connected()).check());

function pieceworkOf(flow: Flow): Piecework {
  const pw = new Piecework({ redis: flow.redis, queue: flow.queue });
  flow.after(() => pw.close());
  return pw;
}

/** A worker whose handler doubles; what is in `failing` fails with an error of that name. */
async function working(flow: Flow, failing: Map<number, string>) {
  const worker = flow.worker({
    concurrency: 20,
    handler: async (n) => {
      const name = failing.get(n as number);
      if (name === undefined) return (n as number) * 2;
      throw Object.assign(new Error(`not ${n}`), { name });
    },
  });
  await worker.start();
  return worker;
}

async function all(items: AsyncIterable<ResultItem>): Promise<ResultItem[]> {
  const list: ResultItem[] = [];
  for await (const item of items) list.push(item);
  return list;
}

const indexesOf = (items: readonly { index: number }[]) => items.map(({ index }) => index);
const ascending = (list: readonly number[]) => [...list].sort((a, b) => a - b);

describe('a redrive', () => {
  test('that the server lost is an error for callers that await it, and can be repeated', async ({
    flow,
  }) => {
    const failing = new Map([[1, 'NetError']]);
    const worker = await working(flow, failing);
    const pw = pieceworkOf(flow);
    const id = flow.id('undone');
    const first = await (await pw.submit(numbers(3), { id })).completion();
    await flow.complete(id);
    await worker.close();
    const { id: _, channel: __, ...keys } = flow.request(id).keys;
    const { open, agenda } = flow.queueCommands.keys;
    const putBack = await keepKeys(flow.connection, [...Object.values(keys), open, agenda]);

    failing.clear();
    const waiting = pw.request(id);
    await waiting.redrive();
    await putBack();
    // It is complete, as before; but that is not what was waited for.
    await expect(waiting.completion()).rejects.toMatchObject({
      code: 'LOST',
      message: expect.stringContaining('redrive it again'),
    });
    // Submitted again, it is what it was.
    const again = await pw.submit(numbers(3), { id });
    expect(await again.status()).toMatchObject({
      status: 'complete',
      generation: first.generation,
    });
    expect(await again.redrive()).toMatchObject({ redriven: 1 });
    await working(flow, failing);
    expect(await again.completion()).toMatchObject({
      status: 'succeeded',
      counts: { succeeded: 3 },
    });
  });

  test('runs what failed again, keeps the good results, and is complete again', async ({
    flow,
  }) => {
    const failing = new Map(numbers(300, 100).map((n) => [n, 'NetError']));
    await working(flow, failing);
    const pw = pieceworkOf(flow);
    const id = flow.id('again');
    const request = await pw.submit(numbers(1_000), { id, limit: 20 });
    const first = await request.completion();
    expect(first).toMatchObject({ status: 'failed', counts: { succeeded: 700, failed: 300 } });

    failing.clear();
    failing.set(399, 'OtherError');
    const { generation, redriven } = await request.redrive();
    expect(redriven).toBe(300);
    const second = await request.completion();
    expect(second).toMatchObject({
      status: 'failed',
      generation,
      counts: { total: 1_000, ready: 0, inFlight: 0, succeeded: 999, failed: 1 },
    });
    expect(second.generation).toBeGreaterThan(first.generation);

    // Each index once, in both orders; 399 failed in both lives.
    for (const order of ['completion', 'index'] as const) {
      const found = await all(request.results({ order, failed: true }));
      expect(ascending(indexesOf(found))).toEqual(numbers(1_000));
      expect(found.filter(({ status }) => status === 'failed')).toMatchObject([
        { index: 399, error: { name: 'OtherError' } },
      ]);
    }
    const failures = [];
    for await (const failure of request.failures()) failures.push(failure);
    expect(failures).toMatchObject([{ index: 399, payload: 399, error: { name: 'OtherError' } }]);

    failing.clear();
    await request.redrive();
    expect(await request.completion()).toMatchObject({ status: 'succeeded' });
    expect(await all(request.results({ failed: true }))).toHaveLength(1_000);
    // The submission is still recognised.
    await pw.submit(numbers(1_000), { id, limit: 20 });
    await flow.complete(id);
  });

  test('stays in the queue of the request, whichever queue its caller has', async ({ flow }) => {
    const failing = new Map([[1, 'NetError']]);
    await working(flow, failing);
    const id = flow.id('elsewhere');
    await (await pieceworkOf(flow).submit(numbers(3), { id })).completion();
    failing.clear();
    const elsewhere = new Piecework({ redis: flow.redis, queue: `${flow.queue}-other` });
    flow.after(() => elsewhere.close());
    const request = elsewhere.request(id);
    expect(await request.redrive()).toMatchObject({ redriven: 1 });
    expect(await request.completion()).toMatchObject({ status: 'succeeded' });
    await flow.complete(id);
  });

  test('selects by indexes, by the name of the error, or by a predicate', async ({ flow }) => {
    const names = ['NetError', 'TypeError', 'NetError', 'TypeError', 'NetError'];
    const failing = new Map(names.map((name, n) => [n, name]));
    await working(flow, failing);
    const pw = pieceworkOf(flow);
    const request = await pw.submit(numbers(6), { id: flow.id('some') });
    const left = async () => {
      await request.completion();
      const list = [];
      for await (const { index } of request.failures()) list.push(index);
      return list;
    };
    expect(await left()).toEqual([0, 1, 2, 3, 4]);
    failing.clear();
    const redriven = async (...options: Parameters<typeof request.redrive>) => {
      const done = await request.redrive(...options);
      return [done.redriven, await left()];
    };
    expect(await redriven({ indexes: [4, 0, 5, 99, 0] })).toEqual([2, [1, 2, 3]]);
    expect(await redriven({ name: 'TypeError', indexes: [2, 3] })).toEqual([1, [1, 2]]);
    expect(await redriven({ where: ({ payload }) => payload === 2 })).toEqual([1, [1]]);
    const before = await request.status();
    expect(await redriven({ name: 'NoSuchError' })).toEqual([0, [1]]);
    expect((await request.status()).generation).toBe(before.generation);
    expect(await redriven({ name: 'TypeError' })).toEqual([1, []]);
  });

  test('is refused while the request is not complete', async ({ flow }) => {
    const held = gate();
    const worker = flow.worker({ handler: () => held.opened });
    await worker.start();
    const pw = pieceworkOf(flow);
    const request = await pw.submit([1], { id: flow.id('running') });
    await expect(request.redrive()).rejects.toThrow(NotCompleteError);
    held.open();
    await request.completion();
    await expect(pw.request(flow.id('nobody')).redrive()).rejects.toThrow(NotFoundError);
    for (const wrong of [
      { indexes: [] },
      { indexes: [-1] },
      { name: '' },
      { where: 7 },
      { a: 1 },
    ]) {
      await expect(request.redrive(wrong as never)).rejects.toThrow(InvalidOptionError);
    }
  });

  test('whose predicate throws lets what it moved run, and the rest failed', async ({ flow }) => {
    const scene = await completeWithFailures([...numbers(150)], {
      ...{ queue: flow.queue, items: 150, limit: 150, id: flow.id('thrown') },
    });
    const pw = pieceworkOf(flow);
    const where = ({ index }: { index: number }) => {
      if (index === 120) throw new RangeError('no more');
      return true;
    };
    const { failed } = scene.request.keys;
    for (const n of numbers(150)) await scene.connection.client.hset(failed, `${n}:payload`, '1');
    await expect(pw.request(scene.id).redrive({ where })).rejects.toThrow('no more');
    await working(flow, new Map());
    expect(await pw.request(scene.id).completion()).toMatchObject({
      counts: { total: 150, succeeded: 100, failed: 50 },
    });
  });
});

describe('a redrive whose n-th call goes wrong', () => {
  for (const fault of ['not sent', 'reply lost', 'sent again', 'TRYAGAIN'] as const) {
    test(`is carried out all the same, and once: ${fault}`, { tags: 'one-server' }, async ({
      flow,
    }) => {
      const failing = new Map<number, string>();
      await working(flow, failing);
      const pw = pieceworkOf(flow);
      let struck = 0;
      for (let n = 1; ; n += 1) {
        const id = flow.id(`fault-${n}`);
        for (const index of [1, 2]) failing.set(index, 'NetError');
        await (await pw.submit(numbers(3), { id })).completion();
        failing.clear();
        const clients = new FaultyClients(n, fault);
        const client = await clients.open(String(flow.redis));
        flow.after(() => clients.end());
        const { redriven } = await new Admin({ redis: client, queue: flow.queue }).redrive(id);
        expect(redriven, `call ${n}`).toBe(2);
        expect(await pw.request(id).completion(), `call ${n}`).toMatchObject({
          status: 'succeeded',
          counts: { total: 3, succeeded: 3 },
        });
        const items = await all(pw.request(id).results({ failed: true }));
        expect(ascending(indexesOf(items)), `call ${n}`).toEqual([0, 1, 2]);
        if (clients.struck === 'not yet') break;
        struck += 1;
      }
      expect(struck).toBeGreaterThan(8);
    });
  }
});
