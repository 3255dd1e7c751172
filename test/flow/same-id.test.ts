import { Notifier } from '@piecework/notifier';
import {
  ConnectionError,
  InvalidOptionError,
  QueueCommands,
  RequestExistsError,
} from '@piecework/protocol';
import { Redis } from 'ioredis';
import { describe, expect } from 'vitest';
import { type Flow, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

async function* stream(n: number) {
  yield* numbers(n);
}

const refused = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail('not refused'),
    (error: unknown) => {
      expect(error).toBeInstanceOf(RequestExistsError);
      return error as RequestExistsError;
    },
  );

/** A key of deduplication that goes with the test. */
function keyOf(flow: Flow): string {
  const key = `${flow.queue}.key`;
  flow.after(() => flow.connection.client.unlink(flow.queueCommands.keys.dedupe(key)));
  return key;
}

describe('the same id', () => {
  test('of a stream returns the existing request, once all its items are in', async ({ flow }) => {
    const id = flow.id('stream');
    const first = await flow.producer().submit(stream(7), { id });
    expect(await flow.producer().submit(stream(7), { id })).toEqual({ ...first, created: false });
    await flow.worker({ handler: (n: number) => n }).start();
    await flow.complete(id);
    expect(await flow.producer().submit(stream(7), { id })).toEqual({ ...first, created: false });
    expect(await flow.request(id).state()).toMatchObject({ status: 'complete', total: 7 });
  });

  test('of a stream finds what several producers appended, and what was an array', async ({
    flow,
  }) => {
    const id = flow.id('joined');
    const [one, two] = await Promise.all([
      flow.producer().open({ id }),
      flow.producer().open({ id }),
    ]);
    await one.append(1, 2);
    await one.flush();
    await two.append(3);
    await two.seal();
    expect(await flow.producer().submit(stream(3), { id })).toMatchObject({ total: 3 });
    const array = await flow.producer().submit(numbers(4), { id: flow.id('array') });
    expect(await flow.producer().submit(stream(4), { id: flow.id('array') })).toEqual({
      ...array,
      created: false,
    });
  });

  test('of a request of another queue is not left open here, also under an equal generation', async ({
    flow,
  }) => {
    const id = flow.id('twice');
    const { generation } = await flow.producer().submit(numbers(2), { id });
    const queue = `${flow.queue}-other`;
    const other = new QueueCommands(flow.connection, queue);
    // As an intent of this queue in the same millisecond.
    await flow.connection.client.hset(other.keys.open, id, generation);
    await refused(flow.producer({ queue }).submit(numbers(2), { id }));
    expect(await other.whereabouts(id)).toEqual({});
    await flow.worker({ handler: (n: number) => n }).start();
    await flow.complete(id);
  });

  test('of a stream that is still open elsewhere is refused', async ({ flow }) => {
    const id = flow.id('open');
    await flow.producer().open({ id });
    const error = await refused(flow.producer().submit(stream(3), { id }));
    expect(error).toMatchObject({ status: 'open', differs: [] });
    expect(error.message).toContain('if its producer died, drop it and submit again');
  });

  test('of a request that ended before all was in is refused', async ({ flow }) => {
    const id = flow.id('ended');
    const open = await flow.producer().open({ id });
    await open.append(1);
    await open.flush();
    await open.cancel();
    await until(async () => (await flow.request(id).state())?.status === 'complete');
    const error = await refused(flow.producer().submit(stream(1), { id }));
    expect(error).toMatchObject({ status: 'complete', differs: [] });
    expect(error.message).toContain('before all its items were in; drop it and submit again');
    const opened = await refused(flow.producer().open({ id }));
    expect(opened.message).toContain('takes no more items; drop it to begin anew');
  });

  test('with other options or items is refused, and the error names what differs', async ({
    flow,
  }) => {
    const id = flow.id('other');
    const producer = flow.producer();
    await producer.submit([1, 2], { id, limit: 3, metadata: { a: 1 } });
    const differs = async (items: Iterable<number> | AsyncIterable<number>, options: object) =>
      (await refused(flow.producer().submit(items, { id, limit: 3, ...options }))).differs;
    expect(await differs([1, 2], { metadata: { a: 2 } })).toEqual(['metadata']);
    expect(await differs([1, 3], { metadata: { a: 1 } })).toEqual(['items']);
    const many = { limit: 4, priority: 1, task: 't', producerLeaseMs: 60_000 };
    const named = ['limit', 'metadata', 'priority', 'producerLeaseMs', 'task'];
    expect([...(await differs([1, 2], many))].sort()).toEqual(named);
    expect(await differs(stream(2), {})).toEqual(['metadata']);
    expect(await flow.request(id).state()).toMatchObject({ total: 2 });
  });
});

describe('a key of deduplication', () => {
  test('stands for one request, which each later submission gets', async ({ flow }) => {
    const dedupe = { key: keyOf(flow), periodMs: 60_000 };
    const first = await flow.producer().submit([1, 2], { dedupe });
    expect(await flow.producer().submit([1, 2], { dedupe })).toEqual({ ...first, created: false });
    expect(await flow.producer().submit(stream(2), { dedupe })).toEqual({
      ...first,
      created: false,
    });
    const error = await refused(flow.producer().submit([1], { dedupe }));
    expect(error).toMatchObject({ requestId: first.id, differs: ['items'] });
    expect(error).toMatchObject({ message: expect.stringContaining(`key '${dedupe.key}'`) });
    for (const call of ['submit', 'open'] as const) {
      const options = { dedupe, priority: 5 };
      const producer = flow.producer();
      const other = call === 'open' ? producer.open(options) : producer.submit([1, 2], options);
      expect(await refused(other), call).toMatchObject({
        differs: ['priority'],
        message: expect.stringContaining(`key '${dedupe.key}'`),
      });
    }
    expect(await refused(flow.producer().open({ dedupe }))).toMatchObject({
      message: expect.stringContaining(
        `key '${dedupe.key}' exists and takes no more items; drop it`,
      ),
    });
    const elsewhere = await flow.producer().submit([1, 2]);
    expect(elsewhere.id).not.toBe(first.id);
  });

  test('that stands for an id without a request yet makes that request', async ({ flow }) => {
    const [key, id] = [keyOf(flow), flow.id('reserved')];
    // Whoever had the id died before its intent.
    expect(await flow.queueCommands.dedupe(key, id, 60_000)).toBe(id);
    const dedupe = { key, periodMs: 60_000 };
    const first = await flow.producer().submit([1, 2], { dedupe });
    expect(first).toMatchObject({ id, total: 2 });
    expect(await flow.producer().submit([1, 2], { dedupe })).toEqual({ ...first, created: false });
  });

  test('whose reply got lost is repeated by the key', {
    tags: ['one-server'],
  }, async ({ flow }) => {
    const redis = new Redis(flow.redis as string, { protocol: 2 });
    flow.after(() => redis.disconnect());
    const { set } = redis;
    redis.set = async (...args: unknown[]) => {
      await (set as (...all: unknown[]) => Promise<unknown>).apply(redis, args);
      throw new Error('Connection is closed.');
    };
    const dedupe = { key: keyOf(flow), periodMs: 60_000 };
    const submit = (options = {}) =>
      flow.producer(options).submit([1, 2], { dedupe, unavailableMs: 0 });
    const error = await submit({ redis }).catch((thrown: unknown) => thrown);
    // There may be a key, but no request: nothing is indeterminate.
    expect(error).toBeInstanceOf(ConnectionError);
    const known = await flow.connection.client.get(flow.queueCommands.keys.dedupe(dedupe.key));
    expect(await submit()).toMatchObject({ id: known, total: 2 });
  });

  test('joins the open request that has it', async ({ flow }) => {
    const dedupe = { key: keyOf(flow) };
    const one = await flow.producer().open({ dedupe });
    const two = await flow.producer().open({ dedupe });
    expect([one.joined, two.joined]).toEqual([false, true]);
    expect(two.id).toBe(one.id);
    const error = await refused(flow.producer().open({ dedupe, limit: 3 }));
    expect(error).toMatchObject({ requestId: one.id, status: 'open', differs: ['limit'] });
    await two.append(1);
    await two.seal();
    await one.close();
  });

  test('is known for its period, from its first use', async ({ flow }) => {
    const key = keyOf(flow);
    const { client } = flow.connection;
    const name = flow.queueCommands.keys.dedupe(key);
    await flow.producer().submit([1], { dedupe: { key, periodMs: 60_000 } });
    await client.pexpire(name, 30_000);
    const first = await flow.producer().submit([1], { dedupe: { key, periodMs: 60_000 } });
    expect(await client.pttl(name)).toBeLessThanOrEqual(30_000);
    await client.unlink(name);
    const next = await flow.producer().submit([1], { dedupe: { key } });
    expect(next.id).not.toBe(first.id);
    // Without a period: for as long as the request is remembered.
    expect(await client.pttl(name)).toBeGreaterThan(86_400_000 - 60_000);
  });

  test('that does not go with the other options is refused, unwritten', async ({ flow }) => {
    const key = 'key';
    const wrong: [object, string][] = [
      [{ id: flow.id('x'), dedupe: { key } }, 'dedupe'],
      [{ retentionMs: 5_000, dedupe: { key, periodMs: 5_001 } }, 'dedupe.periodMs'],
      [{ dedupe: { key: 'a b' } }, 'dedupe'],
      [{ dedupe: { key, periodMs: 0 } }, 'dedupe'],
      [{ dedupe: { key, period: 5 } }, 'dedupe'],
      [{ dedupe: key }, 'dedupe'],
    ];
    for (const [options, field] of wrong) {
      for (const call of [
        () => flow.producer().submit([1], options),
        () => flow.producer().open(options),
      ]) {
        const error = await call().catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(InvalidOptionError);
        expect(error).toMatchObject({ field });
      }
    }
    expect(await flow.keys()).toEqual([]);
  });
});

describe('a source with a name', () => {
  /** Tells how many of its items were read. */
  function counted(n: number) {
    const read = { count: 0 };
    async function* items() {
      for (const item of numbers(n)) {
        read.count += 1;
        yield item;
      }
    }
    return { read, items };
  }

  test('is continued by any process, with each of its items once', async ({ flow }) => {
    const options = { id: flow.id('cut'), source: 'file.1' };
    const first = await flow.producer().open(options);
    await first.append(...numbers(700));
    await first.flush();
    // Its process ends here; whoever comes next gives all items from the start.
    await first.close();
    const second = await flow.producer().open({ ...options, unavailableMs: 1_000 });
    expect([first.joined, second.joined, second.allIn]).toEqual([false, true, false]);
    await second.append(...numbers(1_000));
    await second.seal();
    const third = await flow.producer().open(options);
    expect([third.joined, third.allIn]).toEqual([true, true]);
    await flow.worker({ handler: (n: number) => n }).start();
    await flow.complete(options.id);
    const results = new Map<number, unknown>();
    const { items } = counted(1_000);
    const submitted = await flow.producer().submit(items(), options);
    expect(submitted).toMatchObject({ total: 1_000, created: false });
    const notifier = new Notifier({ redis: flow.redis, queue: flow.queue });
    flow.after(() => notifier.close());
    for await (const { index, value } of notifier.results(options.id)) results.set(index, value);
    expect([...results.values()].every((value, i) => value === [...results.keys()][i])).toBe(true);
    expect(results.size).toBe(1_000);
  });

  test('continues after its lease has ended, if no tick noticed', async ({ flow }) => {
    const options = { id: flow.id('left'), source: 'file.1', producerLeaseMs: 1_000 };
    const first = await flow.producer().open(options);
    await first.append(1, 2);
    await first.flush();
    await first.close();
    const request = flow.request(options.id);
    await flow.connection.client.hset(request.keys.request, 'producerUntil', 1);
    const second = await flow.producer().open(options);
    await second.append(1, 2, 3);
    await second.seal();
    expect(await request.state()).toMatchObject({ status: 'sealed', total: 3 });
  });

  test('is continued as a stream by another process where the first one stopped', async ({
    flow,
  }) => {
    const options = { id: flow.id('stream'), source: 'file.1' };
    const first = await flow.producer().open(options);
    await first.append(...numbers(3));
    await first.flush();
    await first.close();
    const { items, read } = counted(5);
    const submitted = await flow.producer().submit(items(), options);
    expect(submitted).toMatchObject({ total: 5, created: false });
    expect(read.count).toBe(5);
    expect(await flow.request(options.id).state()).toMatchObject({ total: 5 });
  });

  test('is distinguished from another source, and from none', async ({ flow }) => {
    const id = flow.id('told');
    const first = await flow.producer().open({ id, source: 'file.1' });
    await first.append(1);
    for (const source of ['file.2', undefined]) {
      const other = { id, ...(source ? { source } : {}) };
      if (source) {
        const error = await refused(flow.producer().open(other));
        expect(error.differs).toEqual(['items']);
      }
      await refused(flow.producer().submit(stream(1), other));
    }
    await first.seal();
    const error = await refused(flow.producer().open({ id, source: 'file.2' }));
    expect(error).toMatchObject({ status: 'sealed', differs: ['items'] });
    const limited = await refused(flow.producer().open({ id, source: 'file.1', limit: 3 }));
    expect(limited.differs).toEqual(['limit']);
  });
});
