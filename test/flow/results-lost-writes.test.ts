import { Notifier, type ResultItem, type ResultsOptions } from '@piecework/notifier';
import { type RedisInput, ResultsLostError } from '@piecework/protocol';
import { type Command, Redis } from 'ioredis';
import { beforeAll, describe, expect } from 'vitest';
import { type Flow, numbers, test } from '../support/flow.js';
import { connected, failure, given, Hand, type Options, success } from '../support/given.js';
import { keepRequest } from '../support/lost-writes.js';
import { until } from '../support/until.js';

// Opened before the first test counts its connections.
beforeAll(async () => (await connected()).check());

const ITEMS = 20;
const FAILING = 7;

/** A request of which a hand holds all sub-requests, and a reader of its results. */
async function read(
  flow: Flow,
  options: ResultsOptions,
  of: Options = {},
  redis: RedisInput = flow.redis as RedisInput,
) {
  const scene = await given.sealed({ queue: flow.queue, items: ITEMS, limit: ITEMS, ...of });
  const hand = new Hand(scene);
  const entries = await hand.hold(ITEMS);
  const notifier = new Notifier({ redis, queue: flow.queue });
  flow.after(() => notifier.close());
  const items: ResultItem[] = [];
  const reading = (async () => {
    for await (const item of notifier.results(scene.id, options)) items.push(item);
  })();
  reading.catch(() => {});
  return {
    ...{ scene, notifier, items, reading },
    /** One settle, so one record of the stream. */
    settle: (...indexes: number[]) =>
      hand.trySettle(
        indexes.map((index) => {
          const entry = entries[index]!;
          return index === FAILING ? failure(entry) : success(entry, `{"of":${index}}`);
        }),
      ),
  };
}

/**
 * The reader has had what the server then forgets; of what is recorded instead some comes before the
 * reader's place (10), and some behind it, for the second time (8 and 9).
 */
async function goBack({ settle, scene, items }: Awaited<ReturnType<typeof read>>, had: number) {
  await settle(0, 1, 2, 3, 4);
  const putBack = await keepRequest(scene);
  await settle(5, 6, 7, 8, 9);
  await until(() => items.length === had);
  await putBack();
  await settle(5, 6, 7, 10);
}

const indexes = (items: readonly ResultItem[]) => items.map(({ index }) => index);
const all = numbers(ITEMS);
const rest = [8, 9, ...numbers(9, 11)];

/** Goes back before it is asked for the errors of what failed. */
class Forgetful extends Redis {
  goBack: (() => Promise<void>) | undefined;
  wentBack = false;

  override sendCommand(command: Command, stream?: never): unknown {
    const asks =
      command.name === 'hmget' && command.args.some((arg) => String(arg) === `${FAILING}`);
    const { goBack } = this;
    if (!asks || !goBack) return super.sendCommand(command, stream);
    this.goBack = undefined;
    return goBack().then(() => {
      this.wentBack = true;
      return super.sendCommand(command, stream);
    });
  }
}

describe('results of a server that lost its last writes', () => {
  for (const order of ['completion', 'index'] as const)
    test(`come once each if it loses them before the error of one is read: ${order}`, {
      tags: ['one-server'],
    }, async ({ flow }) => {
      const redis = new Forgetful(flow.redis as string, { lazyConnect: true, protocol: 2 });
      flow.after(() => redis.disconnect());
      const { scene, notifier, settle, items, reading } = await read(
        flow,
        { order, failed: true },
        {},
        redis,
      );
      flow.after(() => notifier.close());
      await settle(0, 1, 2, 3, 4);
      redis.goBack = await keepRequest(scene);
      await settle(5, 6, FAILING);
      await until(() => redis.wentBack);
      await settle(5, 6, FAILING);
      await settle(...numbers(ITEMS - 8, 8));
      await reading;
      expect(indexes(items).sort((a, b) => a - b)).toEqual(all);
      expect(items.find(({ index }) => index === FAILING)).toMatchObject({ status: 'failed' });
    });

  test('come once each in the order of completion', async ({ flow }) => {
    const reader = await read(flow, { order: 'completion', failed: true });
    await goBack(reader, 10);
    await reader.settle(...rest);
    await reader.reading;
    expect(indexes(reader.items).sort((a, b) => a - b)).toEqual(all);
    // It stands before what had been read when it was recorded.
    expect(reader.items.at(-1)).toMatchObject({ index: 10 });
    const failed = reader.items.filter(({ status }) => status === 'failed');
    expect(indexes(failed)).toEqual([FAILING]);
  });

  test('come once each in the order of the items', async ({ flow }) => {
    const reader = await read(flow, { order: 'index', failed: true });
    await goBack(reader, 10);
    await reader.settle(...rest);
    await reader.reading;
    expect(indexes(reader.items)).toEqual(all);
  });

  test('come once each without those that failed', async ({ flow }) => {
    const reader = await read(flow, { order: 'index' });
    await goBack(reader, 9);
    await reader.settle(...rest);
    await reader.reading;
    expect(indexes(reader.items)).toEqual(all.filter((index) => index !== FAILING));
  });

  test('come once each when only their places were kept', async ({ flow }) => {
    const reader = await read(flow, { order: 'index', bufferBytes: 1 });
    await reader.settle(1, 2, 3, 4, 5);
    const putBack = await keepRequest(reader.scene);
    await reader.settle(6);
    await reader.settle(8, 9);
    await reader.settle(0);
    await until(() => reader.items.length === 7);
    await putBack();
    await reader.settle(0, 10, 11);
    await reader.settle(12, 13);
    await reader.settle(6);
    // The turn of 8 comes while nobody has recorded it again.
    await reader.settle(FAILING);
    await reader.settle(8, 9, 14, 15);
    await reader.settle(16, 17, 18, 19);
    await reader.reading;
    expect(indexes(reader.items)).toEqual(all.filter((index) => index !== FAILING));
  });

  test('cannot be continued from a cursor that was lost with them', async ({ flow }) => {
    const reader = await read(flow, { order: 'completion', failed: true });
    await goBack(reader, 10);
    const { notifier, scene, items } = reader;
    const from = (cursor: string | undefined, order: 'completion' | 'index') =>
      notifier.results(scene.id, { cursor: cursor as string, order, failed: true });
    const lost = from(items.at(-1)?.cursor, 'completion').next();
    await expect(lost).rejects.toMatchObject({
      ...{ name: 'ResultsLostError', code: 'RESULTS_LOST', retryable: true },
      message: expect.stringContaining('read the results again from the start'),
    });
    await reader.settle(...rest);
    await reader.reading;
    // One that is older than what was lost is as good as ever; indexes are not lost.
    for (const [cursor, order] of [
      [items[4]?.cursor, 'completion'],
      ['i5', 'index'],
    ] as const) {
      const read: ResultItem[] = [];
      for await (const item of from(cursor, order)) read.push(item);
      expect(indexes(read).sort((a, b) => a - b)).toEqual(numbers(15, 5));
    }
  });

  test('that are still missing at the end are an error', async ({ flow }) => {
    for (const order of ['completion', 'index'] as const) {
      const reader = await read(flow, { order });
      await reader.settle(0, 1, 2);
      await reader.settle(3, 4);
      const { request, connection } = reader.scene;
      await connection.client.xdel(request.keys.results, `${reader.scene.generation}-5`);
      await reader.settle(...numbers(15, 5));
      // A reader that was there in time has them.
      const late = async () => {
        for await (const _ of reader.notifier.results(reader.scene.id, { order }));
      };
      const error = await late().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ResultsLostError);
      expect(error).toMatchObject({ missing: 2, requestId: reader.scene.id });
      await reader.reading.catch(() => {});
    }
  });

  test('are no error if the request keeps none', async ({ flow }) => {
    const reader = await read(flow, { order: 'completion', failed: true }, { results: 'discard' });
    await reader.settle(...all);
    await reader.reading;
    expect(indexes(reader.items)).toEqual([FAILING]);
  });
});
