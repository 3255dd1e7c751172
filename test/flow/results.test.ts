import { Notifier, type NotifierOptions, type ResultItem } from '@piecework/notifier';
import {
  AbortError,
  ClosedError,
  DroppedError,
  type Entry,
  ExpiredError,
  InvalidOptionError,
  LostError,
  NotFoundError,
  type Outcome,
  ResultsDiscardedError,
  TimeoutError,
} from '@piecework/protocol';
import { Redis } from 'ioredis';
import { Admin, Piecework } from 'piecework';
import { beforeAll, describe, expect } from 'vitest';
import { ReorderBuffer } from '../../packages/notifier/dist/results/reorder-buffer.js';
import { FaultyClients } from '../support/faulty-client.js';
import { type Flow, mastersOf, numbers, test } from '../support/flow.js';
import {
  connected,
  failure,
  given,
  Hand,
  type Options,
  type Scene,
  success,
} from '../support/given.js';
import { until } from '../support/until.js';

// Opened before the first test counts its connections.
beforeAll(async () => (await connected()).check());

function notifierOf(flow: Flow, options: Partial<NotifierOptions> = {}): Notifier {
  const notifier = new Notifier({ redis: flow.redis, queue: flow.queue, ...options });
  flow.after(() => notifier.close());
  return notifier;
}

/** A request of which a hand holds all sub-requests. */
async function held(flow: Flow, items: number, options: Options = {}) {
  const scene = await given.sealed({ queue: flow.queue, items, limit: items, ...options });
  const hand = new Hand(scene);
  const entries = await hand.hold(items);
  return { scene, hand, entries };
}

const value = (index: number) => `{"of":${index},"text":"ü"}`;
const done = (entry: Entry) => success(entry, value(entry.index));
const error = { name: 'Error', message: 'no' };

/** What an item says, without its cursor. */
const said = ({ cursor, ...rest }: ResultItem) => rest;
const succeeded = (index: number) => ({
  index,
  status: 'succeeded',
  value: { of: index, text: 'ü' },
});
const failed = (index: number) => ({ index, status: 'failed', error });

/** Settles these in the order given, `each` at a time; those of `failing` fail. */
async function settle(
  { hand, entries }: { hand: Hand; entries: readonly Entry[] },
  indexes: readonly number[],
  { each = 7, failing = [] as readonly number[] } = {},
): Promise<void> {
  const held = new Map(entries.map((entry) => [entry.index, entry]));
  for (let i = 0; i < indexes.length; i += each) {
    const some = indexes.slice(i, i + each).map((index) => held.get(index)!);
    await hand.trySettle(
      some.map((entry) => (failing.includes(entry.index) ? failure(entry) : done(entry))),
    );
  }
}

/** An order that is nobody's own, the same every time. */
const shuffled = (n: number) =>
  numbers(n).sort((a, b) => ((a * 7_919) % 1_009) - ((b * 7_919) % 1_009));

async function all(items: AsyncIterable<ResultItem>): Promise<ResultItem[]> {
  const list: ResultItem[] = [];
  for await (const item of items) list.push(item);
  return list;
}

const byIndex = (a: { index: number }, b: { index: number }) => a.index - b.index;

const listening = async (flow: Flow, { request }: Scene) => {
  const masters = mastersOf(flow.connection);
  const channels = await Promise.all(masters.map((one) => one.call('PUBSUB', 'SHARDCHANNELS')));
  return channels.flat().includes(request.keys.channel);
};

describe('the outcome behind the results', () => {
  for (const order of ['completion', 'index'] as const) {
    test(`says that a request ended early, in the order of ${order}`, async ({ flow }) => {
      const request = await held(flow, 4);
      const { scene, hand, entries } = request;
      const results = notifierOf(flow).results(scene.id, { order });
      const first = results.next();
      await settle(request, [0]);
      expect((await first).value).toMatchObject({ index: 0 });
      expect(results.outcome).toBeUndefined();
      await scene.request.cancel(scene.generation);
      await hand.trySettle([done(entries[1]!)]);
      const given = entries.slice(2).map(({ entry }): Outcome => ({ entry, kind: 'b' }));
      await hand.trySettle(given);
      expect((await all(results)).map(({ index }) => index)).toEqual([1]);
      expect(results.outcome).toMatchObject({
        status: 'cancelled',
        endReason: 'cancel',
        counts: { total: 4, succeeded: 2, cancelled: 2 },
      });
      expect(() => results.outcome?.throwIfFailed()).toThrow(
        /cancelled: it was cancelled; 0 of 4 sub-requests failed, 2 cancelled$/,
      );
    });
  }

  test('says that all was done, also if the results came with the notice of the end', async ({
    flow,
  }) => {
    await flow.worker({ handler: async (n: number) => n }).start();
    await using pw = new Piecework({ redis: flow.redis, queue: flow.queue });
    const request = await pw.submit(numbers(3), { id: flow.id('small') });
    await request.completion();
    const results = request.results();
    const indexes: number[] = [];
    for await (const { index } of results) indexes.push(index);
    expect(indexes.sort()).toEqual([0, 1, 2]);
    expect(results.outcome?.throwIfFailed()).toMatchObject({ status: 'succeeded' });
    // Who leaves early does not learn it.
    const left = request.results();
    for await (const _ of left) break;
    expect(left.outcome).toBeUndefined();
  });

  test('is that of a deadline that nobody has met', async ({ flow }) => {
    await using pw = new Piecework({ redis: flow.redis, queue: flow.queue });
    const request = await pw.submit(numbers(3), { id: flow.id('late'), deadlineMs: 100 });
    const results = request.results();
    for await (const { index } of results) throw new Error(`${index} has a result`);
    expect(results.outcome).toMatchObject({ status: 'failed', endReason: 'deadline' });
    expect(() => results.outcome?.throwIfFailed()).toThrow(
      /failed: its deadline passed; 0 of 3 sub-requests failed, 3 cancelled$/,
    );
  });
});

describe('results while they are being written', () => {
  test('come in the order in which they were settled', async ({ flow }) => {
    const request = await held(flow, 60);
    const reading = all(notifierOf(flow).results(request.scene.id));
    const order = shuffled(60);
    await settle(request, order, { failing: [3, 30] });
    const expected = order.filter((index) => index !== 3 && index !== 30).map(succeeded);
    expect((await reading).map(said)).toEqual(expected);
  });

  test('come completely, also where one is much longer than the others', async ({ flow }) => {
    const { scene, hand, entries } = await held(flow, 8);
    const lengths = entries.map(({ index }) => (index === 0 ? 600_000 : 200_000));
    for (const [i, entry] of entries.entries())
      await hand.trySettle([success(entry, JSON.stringify('x'.repeat(lengths[i]!)))], {
        running: 7 - i,
      });
    const items = await all(notifierOf(flow).results(scene.id));
    expect(items.map(({ index }) => index)).toEqual(numbers(8));
  });

  test('are those of no other request whose only result stands in the place of long ones', {
    tags: ['one-server'],
  }, async ({ flow }) => {
    const { scene, hand, entries } = await held(flow, 4);
    const { id } = scene;
    for (const [i, entry] of entries.entries())
      await hand.trySettle([success(entry, JSON.stringify('x'.repeat(200_000)))], {
        running: 3 - i,
      });
    const redis = new Redis(flow.redis as string, { protocol: 2 });
    flow.after(() => redis.disconnect());
    const send = redis.sendCommand.bind(redis);
    await using admin = new Admin({ redis: flow.redis, queue: flow.queue });
    let type = '';
    redis.sendCommand = (command, stream) => {
      if (command.name !== 'xrange' || type) return send(command, stream);
      type = 'none';
      const replaced = async () => {
        await admin.drop(id);
        await flow.producer().submit([1], { id });
        await flow.worker({ handler: (n: number) => n }).start();
        await flow.complete(id);
        type = await scene.connection.client.type(scene.request.keys.results);
        return send(command, stream);
      };
      return replaced();
    };
    const notifier = new Notifier({ redis, queue: flow.queue });
    flow.after(() => notifier.close());
    await expect(all(notifier.results(id))).rejects.toThrow(LostError);
    expect(type).toBe('stream');
  });

  test.for(['completion', 'index', 'fetched'] as const)(
    'do not end without what a redrive took back while they were read: %s',
    async (how, { flow }) => {
      const request = await held(flow, 120);
      const failing = numbers(20, 100);
      const order = how === 'fetched' ? numbers(120).reverse() : numbers(120);
      await settle(request, order, { failing, each: 1 });
      const { id } = request.scene;
      const options = {
        failed: true,
        order: how === 'completion' ? how : 'index',
        ...(how === 'fetched' ? { bufferBytes: 1 } : {}),
      } as const;
      const items: ResultItem[] = [];
      await using admin = new Admin({ redis: flow.redis, queue: flow.queue });
      const reading = async () => {
        for await (const item of notifierOf(flow).results(id, options)) {
          if (items.push(item) === 1) await admin.redrive(id);
        }
      };
      await expect(reading()).rejects.toThrow(/results of .* are missing: it was redriven/);
      expect(items.length).toBeLessThan(120);
    },
  );

  test('come in the order of the items', async ({ flow }) => {
    const request = await held(flow, 60);
    const reading = all(notifierOf(flow).results(request.scene.id, { order: 'index' }));
    await settle(request, shuffled(60), { failing: [0, 30, 59] });
    const expected = numbers(60).filter((index) => index % 30 !== 0 && index !== 59);
    expect((await reading).map(said)).toEqual(expected.map(succeeded));
  });

  test.for(['index', 'completion'] as const)(
    'in %s order bring failures if wanted',
    async (order, { flow }) => {
      const request = await held(flow, 40);
      const options = { order, failed: true };
      const reading = all(notifierOf(flow).results(request.scene.id, options));
      const bad = [0, 7, 8, 39];
      await settle(request, shuffled(40), { each: 40, failing: bad });
      const outcome = (index: number) => (bad.includes(index) ? failed(index) : succeeded(index));
      // Of what one call settled, here forty, the successes come first.
      const settled = [false, true].flatMap((failing) =>
        shuffled(40).filter((index) => bad.includes(index) === failing),
      );
      const expected = (order === 'index' ? numbers(40) : settled).map(outcome);
      expect((await reading).map(said)).toEqual(expected);
    },
  );

  test.for([1, 1_000_000])(
    'that are there come in the order of the items, if nobody waits for the others: buffer of %i bytes',
    async (bufferBytes, { flow }) => {
      const request = await held(flow, 20);
      await settle(request, [12, 2, 19, 5], { each: 1, failing: [5] });
      const options = { order: 'index', failed: true, wait: false, bufferBytes } as const;
      const results = notifierOf(flow).results(request.scene.id, options);
      const there = [succeeded(2), failed(5), succeeded(12), succeeded(19)];
      expect((await all(results)).map(said)).toEqual(there);
      expect(results.outcome).toBeUndefined();
      await request.scene.request.cancel(request.scene.generation);
    },
  );

  test('are not delayed by failures that were not asked for', async ({ flow }) => {
    const request = await held(flow, 3);
    const items = notifierOf(flow).results(request.scene.id, { order: 'index' });
    await settle(request, [1, 0], { failing: [0] });
    expect(said((await items.next()).value)).toEqual(succeeded(1));
    expect(await request.scene.request.state()).toMatchObject({ status: 'sealed' });
    await items.return(undefined);
  });

  test.for([1, 200, 100_000])(
    'wait for an early straggler, holding %d bytes',
    async (bufferBytes, { flow }) => {
      const request = await held(flow, 500);
      const options = { order: 'index', failed: true, bufferBytes } as const;
      const seen: ResultItem[] = [];
      const reading = (async () => {
        for await (const item of notifierOf(flow).results(request.scene.id, options))
          seen.push(item);
      })();
      await settle(
        request,
        shuffled(500).filter((index) => index !== 0 && index !== 250),
        { failing: [13] },
      );
      expect(seen).toEqual([]);
      await settle(request, [0]);
      await until(() => seen.length === 250, { what: 'all before the second straggler' });
      await settle(request, [250]);
      await reading;
      expect(seen.map(said)).toEqual(
        numbers(500).map((i) => (i === 13 ? failed(i) : succeeded(i))),
      );
    },
  );

  test('survive the loss of every connection', { tags: ['one-server', 'own-server'] }, async ({
    flow,
  }) => {
    const client = flow.connection.client as Redis;
    const ids = async () =>
      [...((await client.client('LIST')) as string).matchAll(/^id=(\d+)/gm)].map(([, id]) => id!);
    const others = new Set(await ids());
    const request = await held(flow, 50);
    const reading = all(notifierOf(flow).results(request.scene.id));
    for (const index of numbers(50)) {
      await settle(request, [index]);
      if (index % 10 !== 5) continue;
      for (const id of await ids()) {
        if (!others.has(id)) await client.client('KILL', 'ID', id).catch(() => {});
      }
    }
    expect((await reading).map(said)).toEqual(numbers(50).map(succeeded));
  });
});

describe('results of a request that is complete', () => {
  test('continue behind any item, in both orders, with every other item exactly once', async ({
    flow,
  }) => {
    const request = await held(flow, 23);
    await settle(request, shuffled(23), { each: 4, failing: [2, 3, 11] });
    const notifier = notifierOf(flow);
    const read = async (options: object) => await all(notifier.results(request.scene.id, options));
    for (const order of ['completion', 'index']) {
      for (const failed of [false, true]) {
        const whole = await read({ order, failed });
        expect(whole.length).toBe(failed ? 23 : 20);
        expect(new Set(whole.map(({ index }) => index)).size).toBe(whole.length);
        for (const [n, { cursor }] of whole.entries()) {
          expect(await read({ order, failed, cursor })).toEqual(whole.slice(n + 1));
        }
      }
    }
  });

  test('leave out what was cancelled', async ({ flow }) => {
    const request = await held(flow, 4, { limit: 4 });
    const { scene } = request;
    await settle(request, [3, 1], { each: 1 });
    await settle(request, [2], { failing: [2] });
    await scene.request.cancel(scene.generation);
    await request.hand.trySettle([failure(request.entries[0]!)]);
    const notifier = notifierOf(flow);
    expect((await notifier.completion(scene.id)).counts).toMatchObject({ cancelled: 1, failed: 1 });
    const read = async (options: object) =>
      (await all(notifier.results(scene.id, options))).map(said);
    expect(await read({})).toEqual([succeeded(3), succeeded(1)]);
    expect(await read({ order: 'index' })).toEqual([succeeded(1), succeeded(3)]);
    expect(await read({ order: 'index', failed: true, bufferBytes: 1 })).toEqual([
      succeeded(1),
      failed(2),
      succeeded(3),
    ]);
  });

  test('are only the failures when results are discarded', async ({ flow }) => {
    const request = await held(flow, 5, { results: 'discard' });
    await settle(request, [4, 3, 2, 1, 0], { failing: [1, 3] });
    const notifier = notifierOf(flow);
    const read = async (options: object) =>
      (await all(notifier.results(request.scene.id, options))).map(said);
    for (const options of [{}, { order: 'index' }])
      await expect(read(options)).rejects.toThrow(ResultsDiscardedError);
    expect(await read({ order: 'index', failed: true })).toEqual([failed(1), failed(3)]);
    expect(await read({ failed: true })).toEqual([failed(3), failed(1)]);
  });

  test('leave out failures that were taken back', async ({ flow }) => {
    const request = await held(flow, 6);
    await settle(request, shuffled(6), { failing: [1, 4] });
    await flow.connection.client.hdel(request.scene.request.keys.failed, '4');
    const notifier = notifierOf(flow);
    for (const order of ['index', 'completion'] as const) {
      const items = await all(notifier.results(request.scene.id, { order, failed: true }));
      const expected = [succeeded(0), failed(1), succeeded(2), succeeded(3), succeeded(5)];
      expect(items.map(said).sort(byIndex)).toEqual(expected);
    }
  });

  test('are as the handler returned them: undefined, empty or large', async ({ flow }) => {
    const request = await held(flow, 3);
    const large = JSON.stringify('x'.repeat(3_000_000));
    const texts = ['', '""', large];
    await request.hand.trySettle(request.entries.map((entry, i) => success(entry, texts[i])));
    const options = { order: 'index', bufferBytes: 1_000 } as const;
    const items = await all(notifierOf(flow).results(request.scene.id, options));
    const values = items.map((item) => item.status === 'succeeded' && item.value);
    expect(values).toEqual([undefined, '', JSON.parse(large)]);
  });

  // A long call is written from a buffer: the items of a whole submission, or chunks of them, and joined results.
  test.for([10, 40])(
    'and so are long ones with characters of all lengths: %i',
    async (count, { flow }) => {
      const items = Array.from({ length: count }, (_, n) => ({
        n,
        text: 'aü€😀'.repeat(12_000 + n),
      }));
      await flow.worker({ queue: flow.queue, handler: async (item) => item }).start();
      const id = flow.id('long');
      await flow.producer().submit(items, { id });
      const results = await all(notifierOf(flow).results(id, { order: 'index' }));
      expect(results.map((item) => item.status === 'succeeded' && item.value)).toEqual(items);
    },
  );
});

describe('results of an id that is used again', () => {
  test('are those of a request that another process dropped and submitted again', async ({
    flow,
  }) => {
    await flow.worker({ handler: async (n: number) => n }).start();
    await using reader = new Piecework({ redis: flow.redis, queue: flow.queue });
    await using other = new Piecework({ redis: flow.redis, queue: flow.queue });
    const id = flow.id('again');
    const values = async () =>
      (await all(reader.request(id).results())).map((item) => 'value' in item && item.value);
    await (await other.submit([1], { id })).completion();
    expect(await values()).toEqual([1]);
    await other.request(id).drop();
    await (await other.submit([2, 3], { id })).completion();
    expect((await values()).sort()).toEqual([2, 3]);
    const inOrder = await all(reader.request(id).results({ order: 'index' }));
    expect(inOrder).toMatchObject([{ value: 2 }, { value: 3 }]);
  });
});

describe('reading results ends', () => {
  test('with DroppedError or ExpiredError when they are removed meanwhile', async ({ flow }) => {
    const notifier = notifierOf(flow);
    const running = await held(flow, 10);
    const live = notifier.results(running.scene.id);
    await settle(running, [0]);
    await live.next();
    const next = live.next();
    next.catch(() => {});
    await running.scene.request.drop();
    await expect(next).rejects.toThrow(DroppedError);
    await running.scene.queue.finish(running.scene.id, running.scene.generation, 'dropped');

    // More entries than one read brings.
    const complete = await held(flow, 40);
    await settle(complete, numbers(40), { each: 1 });
    const early = notifier.results(complete.scene.id);
    await early.next();
    const late = notifier.results(complete.scene.id, { order: 'index', bufferBytes: 1 });
    await late.next();
    const { id, queue, generation, request } = complete.scene;
    await queue.finish(id, generation, 'succeeded');
    await flow.connection.client.unlink(request.keys.request, request.keys.results);
    await expect(all(early)).rejects.toThrow(ExpiredError);
    await expect(all(notifier.results(id))).rejects.toThrow(ExpiredError);
    await late.return(undefined);
    await queue.finish(id, generation, 'dropped');
    await expect(all(notifier.results(id))).rejects.toThrow(NotFoundError);
  });

  test('with AbortError or TimeoutError, also while nothing comes', async ({ flow }) => {
    const notifier = notifierOf(flow);
    const { scene } = await held(flow, 2);
    const controller = new AbortController();
    const aborted = all(notifier.results(scene.id, { signal: controller.signal }));
    aborted.catch(() => {});
    await until(() => listening(flow, scene));
    controller.abort();
    await expect(aborted).rejects.toThrow(AbortError);
    const timed = all(notifier.results(scene.id, { order: 'index', timeoutMs: 30 }));
    await expect(timed).rejects.toThrow(TimeoutError);
    await until(async () => !(await listening(flow, scene)));
  });

  test('when the consumer leaves, and nothing keeps running', async ({ flow }) => {
    const request = await held(flow, 20);
    await settle(request, numbers(10));
    for await (const { index } of notifierOf(flow).results(request.scene.id)) {
      if (index === 4) break;
    }
    await until(async () => !(await listening(flow, request.scene)));
  });

  test('with ClosedError when the notifier is closed, also while Redis is out of reach', {
    tags: ['one-server'],
  }, async ({ flow }) => {
    const clients = new FaultyClients();
    const redis = await clients.open(String(flow.redis));
    const notifier = notifierOf(flow, { redis });
    const { scene } = await held(flow, 1);
    const progress = notifier.progress(scene.id, { everyMs: 10 });
    await progress.next();
    const readers = [notifier.results(scene.id).next(), progress.next()];
    clients.end();
    for (const reader of readers) reader.catch(() => {});
    const calls = clients.calls;
    await until(() => clients.calls >= calls + 4, { what: 'both have tried in vain' });
    await notifier.close();
    for (const reader of readers) await expect(reader).rejects.toThrow(ClosedError);
  });

  test('before it began, when the cursor is of the other order', async ({ flow }) => {
    const notifier = notifierOf(flow);
    for (const cursor of ['', 'i', '3', 'c1-2.3', 'i1e3']) {
      const read = () => notifier.results('id', { order: 'index', cursor });
      expect(read).toThrow(InvalidOptionError);
    }
    for (const cursor of ['', 'i3', 'c1.2', 'c1-2']) {
      expect(() => notifier.results('id', { cursor })).toThrow(InvalidOptionError);
    }
  });
});

describe('the reorder buffer', () => {
  const item = (index: number) => ({ index, kind: 'succeeded', text: value(index) }) as const;

  test('keeps 200,000 results that came early in at most 16 bytes each', () => {
    const count = 200_000;
    const buffer = new ReorderBuffer(0, 10_000);
    for (let index = 1; index <= count; index += 1) buffer.offer(item(index), `9-${index}`, true);
    expect(buffer.bufferedBytes).toBeLessThanOrEqual(10_000);
    expect(buffer.take()).toEqual([]);
    expect(buffer.bookkeepingBytes / count).toBeLessThanOrEqual(16);

    buffer.offer(item(0), `9-${count + 1}`, true);
    let next = 0;
    for (;;) {
      for (const { index } of buffer.take()) {
        // An `expect` for each would take most of the time.
        if (index !== next) expect(index).toBe(next);
        next += 1;
      }
      const missing = buffer.missing(256);
      if (missing.length === 0) break;
      buffer.refill(
        missing.map((position) => ({ position, items: [item(Number(position.slice(2)))] })),
      );
    }
    expect(next).toBe(count + 1);
    // Pages that were passed are freed.
    expect(buffer.bookkeepingBytes).toBeLessThanOrEqual(8_192);
  });
});

async function listed<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
}

describe('the timing of results', () => {
  const handler = (n: number) => {
    if (n === 2) throw new RangeError('two');
    return n === 1 ? undefined : { n };
  };

  test('shows when, where and for how long each ran, if the request asks for timing', async ({
    flow,
  }) => {
    const id = flow.id('timed');
    const worker = flow.worker({ handler });
    await worker.start();
    const before = Date.now();
    await flow.producer().submit(numbers(4), { id, timing: true, attempts: 2, backoff: 0 });
    await flow.complete(id);
    const notifier = notifierOf(flow);
    for (const order of ['index', 'completion'] as const) {
      const items = await listed(notifier.results(id, { order, failed: true }));
      items.sort((a, b) => a.index - b.index);
      expect(
        items.map((item) => (item.status === 'succeeded' ? item.value : item.error.name)),
      ).toEqual([{ n: 0 }, undefined, 'RangeError', { n: 3 }]);
      expect(items.map(({ timing }) => timing?.attempt)).toEqual([1, 1, 2, 1]);
      for (const { timing } of items) {
        expect(timing?.worker).toBe(worker.id);
        // The clock of this machine, in whole ms.
        expect(timing?.startedAt).toBeGreaterThanOrEqual(before - 1);
        expect(timing?.durationMs).toBeGreaterThanOrEqual(0);
      }
    }
    const failures = await listed(notifier.failures(id));
    expect(Object.keys(failures[0]?.error ?? {}).sort()).toEqual(['message', 'name', 'stack']);
  });

  test('is not there otherwise', async ({ flow }) => {
    const id = flow.id('plain');
    await flow.worker({ handler }).start();
    await flow.producer().submit(numbers(3), { id });
    await flow.complete(id);
    for await (const item of notifierOf(flow).results(id, { failed: true }))
      expect(item).not.toHaveProperty('timing');
  });
});
