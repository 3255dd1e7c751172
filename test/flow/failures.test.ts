import { type Failure, Notifier } from '@piecework/notifier';
import { DroppedError, type Entry, NotFoundError } from '@piecework/protocol';
import { Admin } from 'piecework';
import { beforeAll, describe, expect } from 'vitest';
import { IndexSet } from '../../packages/notifier/dist/results/index-set.js';
import { type Flow, numbers, test } from '../support/flow.js';
import { connected, given, Hand, success } from '../support/given.js';
import { until } from '../support/until.js';

// Opened before the first test counts its connections.
beforeAll(async () => (await connected()).check());

function notifierOf(flow: Flow): Notifier {
  const notifier = new Notifier({ redis: flow.redis, queue: flow.queue });
  flow.after(() => notifier.close());
  return notifier;
}

const failing = ({ entry, index }: Entry, name: string) =>
  ({
    entry,
    kind: 'f',
    value: JSON.stringify({ name, message: `no ${index}` }),
    delayMs: 0,
  }) as const;

/** A request of which every third sub-request succeeded and the others failed, of two kinds. */
async function someFailed(flow: Flow, items: number) {
  const scene = await given.sealed({ queue: flow.queue, items, limit: items });
  const hand = new Hand(scene);
  const entries = await hand.hold(items);
  // The last one first: the order of the failures is not that of the items.
  await hand.trySettle(
    entries.reverse().map((entry) => {
      if (entry.index % 3 === 0) return success(entry, '1');
      return failing(entry, entry.index % 3 === 1 ? 'TypeError' : 'RangeError');
    }),
  );
  return scene;
}

async function all(items: AsyncIterable<Failure>): Promise<Failure[]> {
  const list: Failure[] = [];
  for await (const item of items) list.push(item);
  return list;
}

describe('the failures of a request', () => {
  test('come with all that is kept of them, in the order of the items', async ({ flow }) => {
    const scene = await given.sealed({ queue: flow.queue, items: 2, limit: 2, attempts: 3 });
    const hand = new Hand(scene);
    const [first, second] = await hand.hold(2);
    const fail = (entry: Entry | undefined) => failing(entry!, 'TypeError');
    await hand.settle([success(first!, '1'), fail(second)]);
    await hand.settle(([await hand.take(1)].flat() as Entry[]).map(fail));
    await scene.connection.client.hset(scene.request.keys.tries, '1:crashes', 1);
    await hand.trySettle((await hand.take(1)).map(fail));
    const { failed } = scene.request.keys;
    await scene.connection.client.hset(failed, '1:payload', '{"some":"payload"}');
    expect(await all(notifierOf(flow).failures(scene.id))).toEqual([
      {
        index: 1,
        payload: { some: 'payload' },
        attempts: 3,
        crashes: 1,
        error: { name: 'TypeError', message: 'no 1' },
        cursor: 'f2',
      },
    ]);
  });

  // Small hashes come in one look, big ones in many.
  for (const items of [10, 900]) {
    test(`come each once, of ${items} sub-requests`, async ({ flow }) => {
      const scene = await someFailed(flow, items);
      const notifier = notifierOf(flow);
      const options = { payload: false };
      const indexes = (list: readonly Failure[]) => list.map(({ index }) => index);
      const expected = numbers(items).filter((index) => index % 3 !== 0);
      expect(indexes(await all(notifier.failures(scene.id, options)))).toEqual(expected);
      const named = await all(notifier.failures(scene.id, { ...options, name: 'RangeError' }));
      expect(indexes(named)).toEqual(expected.filter((index) => index % 3 === 2));
      const { cursor } = named[1] as Failure;
      expect(indexes(await all(notifier.failures(scene.id, { ...options, cursor })))).toEqual(
        expected.filter((index) => index > 5),
      );
    });
  }

  test('are grouped by name and message of their errors, whatever items these name', async ({
    flow,
  }) => {
    const scene = await someFailed(flow, 11);
    const { failed } = scene.request.keys;
    for (const index of [1, 2]) await scene.connection.client.hset(failed, `${index}:payload`, '7');
    const example = (index: number, name: string) => {
      const error = { name, message: `no ${index}` };
      return { index, payload: 7, attempts: 1, crashes: 0, error };
    };
    expect(await notifierOf(flow).failureGroups(scene.id)).toEqual([
      { name: 'TypeError', message: 'no 1', count: 4, example: example(1, 'TypeError') },
      { name: 'RangeError', message: 'no 2', count: 3, example: example(2, 'RangeError') },
    ]);
  });

  test('of one error name are as many groups as there are reasons', async ({ flow }) => {
    const scene = await given.sealed({ queue: flow.queue, items: 7, limit: 7 });
    const hand = new Hand(scene);
    const messages = [
      'payload.width: expected number, received string',
      'payload.height: expected number, received string',
      'payload.url: invalid URL',
      'payload.tags.3: expected string, received number',
      'payload.tags.11: expected string, received number',
      'payload: unrecognized key "colour"',
      'payload: unrecognized key "size"',
    ];
    await hand.trySettle(
      (await hand.hold(7)).map((entry) => {
        const value = JSON.stringify({ name: 'PayloadError', message: messages[entry.index] });
        return { ...failing(entry, 'PayloadError'), value };
      }),
    );
    const payloads = messages.flatMap((_, index) => [`${index}:payload`, '7']);
    await scene.connection.client.hset(scene.request.keys.failed, ...payloads);
    const groups = await notifierOf(flow).failureGroups(scene.id);
    expect(groups.map(({ message, count }) => [count, message])).toEqual([
      [2, messages[3]],
      [2, messages[5]],
      [1, messages[0]],
      [1, messages[1]],
      [1, messages[2]],
    ]);
  });

  test('need a request that exists', async ({ flow }) => {
    const notifier = notifierOf(flow);
    await expect(all(notifier.failures(flow.id('nobody')))).rejects.toThrow(NotFoundError);
    const scene = await someFailed(flow, 3);
    await scene.request.drop();
    await expect(notifier.failureGroups(scene.id)).rejects.toThrow(DroppedError);
    await scene.queue.finish(scene.id, scene.generation, 'dropped');
  });
});

test('a set of indexes has a bit for each, and lists them in order', () => {
  const set = new IndexSet();
  const indexes = [9_000_000, 31, 0, 32_767, 32_768, 63];
  expect(indexes.map((index) => set.add(index))).toEqual(indexes.map(() => true));
  expect(set.add(31)).toBe(false);
  expect([...set.ascending()]).toEqual([0, 31, 63, 32_767, 32_768, 9_000_000]);
  for (const index of numbers(1_000_000)) set.add(index);
  expect(set.bytes).toBeLessThan(140_000);
});

describe('the last errors of a queue', () => {
  test('are reported by its workers: the last hundred, the latest first', async ({ flow }) => {
    const worker = flow.worker({
      concurrency: 10,
      handler: async (n) => {
        throw new RangeError(`not ${n}`);
      },
    });
    await worker.start();
    const id = flow.id('failing');
    await flow.producer().submit(numbers(150), { id, limit: 1 });
    await flow.complete(id);
    const admin = new Admin({ redis: flow.connection, queue: flow.queue });
    const errors = await until(
      async () => {
        const now = await admin.errors();
        return now[0]?.index === 149 && now;
      },
      { what: 'the last error is told' },
    );
    expect(errors.map(({ index }) => index)).toEqual(numbers(100, 50).reverse());
    const { at, ...last } = errors[0]!;
    expect(last).toEqual({
      ...{ requestId: id, index: 149, attempt: 1, worker: worker.id },
      ...{ name: 'RangeError', message: 'not 149' },
    });
    const { client } = flow.connection;
    expect(await client.pttl(flow.queueCommands.keys.errors)).toBeGreaterThan(0);
  });
});
