/**
 * A process that awaits the requests that it submits: it hears of all their ends on one channel.
 * @module-tag one-server
 */
import { Notifier } from '@piecework/notifier';
import { AbortError, ClosedError, Connection, recentEnds } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { Admin, Piecework } from 'piecework';
import { beforeAll, describe, expect } from 'vitest';
import { noticeOf } from '../../packages/notifier/dist/waiting/notice.js';
import { RecentEnds } from '../../packages/protocol/dist/calls/request/recent-ends.js';
import { buildScripts } from '../../scripts/lua-source.mjs';
import { expand } from '../support/compact.js';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { connected } from '../support/given.js';
import { until } from '../support/until.js';

// Opened before the first test counts its connections.
beforeAll(async () => (await connected()).check());

/** A sweep that never comes. */
const NEVER = 600_000;

const shas = new Map(Object.entries(buildScripts()).map(([name, { sha }]) => [sha, name]));

/** A client that notes what it sends; one that subscribes is a duplicate, and notes in the same list. */
class Noting extends Redis {
  sent: string[] = [];

  override sendCommand(
    ...[command, stream]: Parameters<Redis['sendCommand']>
  ): ReturnType<Redis['sendCommand']> {
    const name = shas.get(String(command.args[0])) ?? command.name;
    // A read of the state begins with its status.
    this.sent.push(name === 'read-state' ? `read-state ${command.args[3]}` : name);
    return super.sendCommand(command, stream);
  }

  override duplicate(...args: Parameters<Redis['duplicate']>): Redis {
    const copy = new Noting({ ...this.options, ...args[0] } as never);
    copy.sent = this.sent;
    return copy;
  }
}

let submitted = 0;

function caller(flow: Flow) {
  const redis = new Noting(flow.redis as string, { protocol: 2 });
  const pw = new Piecework({ redis, queue: flow.queue });
  flow.after(async () => {
    await pw.close();
    redis.disconnect();
  });
  const submit = (items: unknown[], options = {}) => {
    submitted += 1;
    return pw.submit(items, { id: flow.id(`own${submitted}`), ...options });
  };
  /** From its second request on, a process awaits its own on its channel. */
  const ready = async () => {
    const { id, completion } = await submit([]).then((first) => ({
      id: first.id,
      completion: first.completion(),
    }));
    await completion;
    await until(async () => (await channelsOf(flow)).some((it) => it.includes(`${id}~`)));
  };
  const notifyOf = async ({ id }: { id: string }) =>
    (await flow.request(id).fields('notify'))['notify'];
  return { redis, pw, submit, ready, notifyOf };
}

/** The same with the parts of a `Piecework`; it has awaited a request, and never sweeps. */
async function sharing(flow: Flow) {
  const redis = new Noting(flow.redis as string, { protocol: 2 });
  const connection = Connection.open(redis);
  const notifier = new Notifier({ redis: connection, queue: flow.queue, sweepMs: NEVER });
  flow.after(async () => {
    await notifier.close();
    redis.disconnect();
  });
  const producer = flow.producer({ redis: connection });
  const submit = async (name: string, items: readonly unknown[] = []) => {
    const named = notifier.name();
    const { id, generation } = await producer.submit(items, { id: flow.id(name) }, named.channel);
    return {
      id,
      completion: () => notifier.completion(id, {}, generation, named),
      results: () => notifier.results(id, {}, generation, named),
    };
  };
  await (await submit('first')).completion();
  await until(async () => (await channelsOf(flow)).length === 1);
  return { redis, connection, submit };
}

/** The channels of requests that are subscribed. */
const channelsOf = async (flow: Flow) =>
  (await (flow.connection.client as Redis).pubsub(
    'SHARDCHANNELS',
    `done:{${flow.queue}*`,
  )) as string[];

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** A handler that fails item 1 the first time, and waits for `again` the next time. */
function failsOnce(again: Promise<unknown>) {
  let runs = 0;
  return async (n: number) => {
    if (n === 1) runs += 1;
    if (n === 1 && runs === 1) throw new Error('not yet');
    if (n === 1) await again;
    return n;
  };
}

/** The same request in another process. */
function elsewhere(flow: Flow, { id }: { id: string }) {
  const pw = new Piecework({ redis: flow.redis, queue: flow.queue });
  flow.after(() => pw.close());
  return pw.request(id);
}

describe('a process that awaits its own requests', () => {
  test('subscribes once, and reads neither the state nor the results of small ones', async ({
    flow,
  }) => {
    await flow.worker({ handler: (n: number) => n * n }).start();
    // On a machine that is slow for seconds, the state is read in case the message was lost.
    await until(async () => {
      const { redis, submit, ready } = caller(flow);
      await ready();
      redis.sent.length = 0;
      for (let i = 0; i < 5; i += 1) {
        const request = await submit([3, 4]);
        const { status, counts } = await request.completion();
        expect({ status, counts }).toMatchObject({ status: 'succeeded', counts: { succeeded: 2 } });
        const results = await all(request.results({ order: 'index' }));
        expect(results.map(({ value }) => value)).toEqual([9, 16]);
      }
      return !redis.sent.some((name) => /subscribe|read-results|read-state status/.test(name));
    });
  });

  test('gets the results that the stream has, with the same cursors', async ({ flow }) => {
    const { submit, ready } = caller(flow);
    const values = [undefined, null, '', 'é\u001e\u001d\n', { a: [1] }];
    await flow.worker({ handler: (n: number) => values[n] }).start();
    await ready();
    for (const options of [{}, { timing: true }, { limit: 1 }]) {
      const request = await submit(numbers(5), options);
      await request.completion();
      for (const order of ['index', 'completion'] as const) {
        const brought = await all(request.results({ order, failed: true }));
        const other = elsewhere(flow, request);
        expect(brought).toEqual(await all(other.results({ order, failed: true })));
        const cursor = brought[1]?.cursor as string;
        const rest = await all(request.results({ order, cursor }));
        expect(rest).toEqual(brought.slice(2));
      }
    }
  });

  test('takes small results from memory until it closes, and knows the outcome behind the last', async ({
    flow,
  }) => {
    await flow.worker({ handler: (n: number) => n }).start();
    // On a machine that is slow for seconds, the state is read in case the message was lost.
    await until(async () => {
      const { redis, pw, submit, ready } = caller(flow);
      await ready();
      const request = await submit(numbers(3));
      await request.completion();
      redis.sent.length = 0;
      const results = request.results();
      expect(results.outcome).toBeUndefined();
      expect((await all(results)).map(({ value }) => value).toSorted()).toEqual([0, 1, 2]);
      expect(results.outcome).toMatchObject({ requestId: request.id, status: 'succeeded' });
      const signal = AbortSignal.abort('no more');
      await expect(request.results({ signal }).next()).rejects.toThrow(AbortError);
      const open = request.results();
      await open.next();
      await pw.close();
      await expect(open.next()).rejects.toThrow(ClosedError);
      expect(await open.next()).toEqual({ done: true, value: undefined });
      return redis.sent.length === 0;
    });
  });

  test('reads many results, long ones, failures and what is not kept from the server', async ({
    flow,
  }) => {
    const { redis, submit, ready } = caller(flow);
    const handler = (item: number | string) => {
      if (item === 'fail') throw new Error('as told');
      return typeof item === 'number' ? item : 'x'.repeat(2_000);
    };
    await flow.worker({ handler }).start();
    await ready();
    for (const [items, options] of [
      [numbers(300), {}],
      [['long'], {}],
      [[1, 'fail'], {}],
      [[1], { retentionMs: 50_000 }],
    ] as const) {
      const request = await submit([...items], options);
      await request.completion();
      redis.sent.length = 0;
      const results = await all(request.results({ failed: true }));
      expect(results).toHaveLength(items.length);
      expect(redis.sent).toContain('read-results');
    }
    const discarded = await submit([1], { results: 'discard' });
    await discarded.completion();
    await expect(all(discarded.results())).rejects.toMatchObject({ code: 'RESULTS_DISCARDED' });
  });

  test('reads the state of a request that may have ended before it is awaited', async ({
    flow,
  }) => {
    const { redis, connection, submit } = await sharing(flow);
    const early = async () => {
      submitted += 1;
      const atMs = performance.now();
      const request = await submit(`early${submitted}`);
      await until(() => recentEnds(connection).find(request.id, atMs) !== undefined);
      redis.sent.length = 0;
      expect((await request.completion()).status).toBe('succeeded');
      return request;
    };
    // Heard before it is awaited: nothing is read, unless this took seconds.
    let request = await early();
    await until(async () => {
      request = await early();
      return !redis.sent.includes('read-state status');
    });
    // Nothing will be heard of it any more.
    expect((await request.completion()).status).toBe('succeeded');
    expect(redis.sent).toContain('read-state status');
  });

  test('awaits requests on their own channels after it has missed a message', async ({ flow }) => {
    const { submit, ready, notifyOf } = caller(flow);
    await ready();
    const request = await submit([1]);
    expect(await notifyOf(request)).toContain('done:{');
    // As with a worker of an earlier version.
    await expand(flow.request(request.id));
    await flow.connection.client.hdel(flow.request(request.id).keys.request, 'notify');
    const over = request.completion();
    await flow.worker({ handler: (n: number) => n }).start();
    expect((await over).status).toBe('succeeded');
    const next = await submit([1]);
    expect(await notifyOf(next)).toBe('');
    expect((await next.completion()).status).toBe('succeeded');
    expect(await notifyOf(await submit([]))).toBe('');
  });

  test('awaits requests on their own channels when the connection of its channel is lost', async ({
    flow,
  }) => {
    const { submit, ready, notifyOf } = caller(flow);
    await ready();
    const request = await submit([1]);
    const over = request.completion();
    const operator = flow.connection.client as Redis;
    const listeners = ((await operator.client('LIST')) as string)
      .split('\n')
      .filter((line) => line.includes('piecework-notifier') && !line.includes('ssub=0'))
      .map((line) => /id=(\d+)/.exec(line)?.[1] as string);
    for (const id of listeners) await operator.call('CLIENT', 'KILL', 'ID', id);
    await until(async () => (await channelsOf(flow)).includes(`done:{${request.id}}`));
    await flow.worker({ handler: (n: number) => n }).start();
    expect((await over).status).toBe('succeeded');
    // The next wait has it listen again.
    await until(async () => {
      const next = await submit([]);
      await next.completion();
      return (await notifyOf(next)) !== '';
    });
  });

  test('is not told of the ends of requests that it does not await', async ({ flow }) => {
    const { submit, ready, notifyOf } = caller(flow);
    await ready();
    for (let i = 0; i < 100; i += 1) await submit([]);
    const request = await submit([]);
    expect(await notifyOf(request)).toBe('');
    await request.completion();
    expect(await notifyOf(await submit([]))).not.toBe('');
  });

  test('relies on its channel only for requests that its own call made', async ({ flow }) => {
    const { pw, ready, notifyOf } = caller(flow);
    await ready();
    const id = flow.id('shared');
    await flow.producer().submit([1], { id });
    const request = await pw.submit([1], { id });
    expect(request.created).toBe(false);
    expect(await notifyOf(request)).toBe('');
    const over = request.completion();
    await until(async () => (await channelsOf(flow)).includes(`done:{${id}}`));
    await flow.worker({ handler: (n: number) => n }).start();
    expect((await over).status).toBe('succeeded');
  });
});

describe('what a process remembers of an end', () => {
  test('is forgotten when it drops the request', async ({ flow }) => {
    const { pw, submit, ready } = caller(flow);
    await flow.worker({ handler: (n: number) => n }).start();
    await ready();
    const request = await submit([1]);
    await request.completion();
    // No message says that it was dropped.
    await expand(flow.request(request.id));
    await flow.connection.client.hdel(flow.request(request.id).keys.request, 'notify');
    await pw.admin.drop(request.id);
    await expect(all(request.results())).rejects.toMatchObject({ code: 'DROPPED' });
  });

  test('is forgotten when another process drops the request', async ({ flow }) => {
    const { connection, submit } = await sharing(flow);
    const ends = recentEnds(connection);
    const atMs = performance.now();
    const request = await submit('theirs');
    await request.completion();
    expect(ends.find(request.id, atMs)).toBeDefined();
    await elsewhere(flow, request).drop();
    await until(() => ends.find(request.id, atMs) === undefined);
    await expect(all(request.results())).rejects.toMatchObject({ code: 'DROPPED' });
  });

  test('is forgotten when it redrives the request', async ({ flow }) => {
    const { connection, submit } = await sharing(flow);
    const again = gate();
    await flow.worker({ handler: failsOnce(again.opened) }).start();
    const atMs = performance.now();
    const request = await submit('redriven', numbers(3));
    await until(() => recentEnds(connection).find(request.id, atMs) !== undefined);
    const admin = new Admin({ redis: connection, queue: flow.queue });
    expect(await admin.redrive(request.id)).toMatchObject({ redriven: 1 });
    // Nobody had awaited the end that was undone.
    const over = request.completion();
    again.open();
    expect((await over).status).toBe('succeeded');
  });

  test('does not serve results of a request that another process may have redriven', async ({
    flow,
  }) => {
    const { submit, ready } = caller(flow);
    const again = gate();
    await flow.worker({ handler: failsOnce(again.opened) }).start();
    await ready();
    const request = await submit(numbers(3));
    expect((await request.completion()).status).toBe('failed');
    await elsewhere(flow, request).redrive();
    const reading = all(request.results());
    again.open();
    const values = (await reading).map(({ value }) => value);
    expect(values.sort()).toEqual([0, 1, 2]);
  });

  test('is not taken from a message that was under way when it dropped the request', () => {
    const ends = new RecentEnds();
    const state = { ...stateOf(1), generation: 7 };
    ends.note('a', { state }, true, 0);
    expect(ends.find('a', 1)).toEqual({ state });
    ends.forget('a', 2);
    ends.note('a', { state }, false, 3);
    expect(ends.find('a', 4)).toBeUndefined();
    expect(ends.noneSince('a', 1, 4)).toBe(false);
  });

  test('serves the first caller that awaits it, and is read by the next', () => {
    const ends = new RecentEnds();
    ends.note('a', { state: stateOf(1) }, false, 0);
    expect(ends.claim('a', 1)).toBeDefined();
    expect(ends.claim('a', 1)).toBeUndefined();
    expect(ends.find('a', 1)).toBeDefined();
    expect(ends.find('a', 2_000)).toBeUndefined();
    expect(ends.noneSince('b', 1, 2)).toBe(true);
    expect(ends.noneSince('b', 1, 2_001)).toBe(false);
    for (const n of numbers(1_001)) ends.note(`other${n}`, { state: stateOf(1) }, false, 3);
    expect(ends.noneSince('b', 1, 4)).toBe(false);
    expect(ends.noneSince('b', 4, 5)).toBe(true);
  });
});

const stateOf = (total: number) => ({
  ...{ status: 'complete', generation: 5, outcome: 'succeeded' as const, endReason: '' as const },
  ...{ total, succeeded: total, failed: 0, cancelled: 0 },
});

describe('a message with results', () => {
  test('brings all of them, or none', () => {
    const head = '5 succeeded 3 3 0 0 -';
    const first = '\u001d5-2\u001e0 "a"\u001e2 ';
    const second = '\u001d5-3\u001e1 {"b":1}';
    expect(noticeOf(head + first + second)).toEqual({
      kind: 'complete',
      state: stateOf(3),
      results: [
        {
          position: '5-2',
          records: [
            { index: 0, failed: false, value: '"a"' },
            { index: 2, failed: false, value: '' },
          ],
        },
        { position: '5-3', records: [{ index: 1, failed: false, value: '{"b":1}' }] },
      ],
    });
    expect(noticeOf(head + first)).toEqual({ kind: 'complete', state: stateOf(3) });
    expect(noticeOf(head)).toEqual({ kind: 'complete', state: stateOf(3) });
  });

  test('in which one is twice is not believed: the stream is read', async ({ flow }) => {
    const { submit, ready, notifyOf } = caller(flow);
    await ready();
    const request = await submit([5, 6]);
    const channel = await notifyOf(request);
    await expand(flow.request(request.id));
    await flow.connection.client.hdel(flow.request(request.id).keys.request, 'notify');
    const over = request.completion();
    const worker = flow.worker({ handler: (n: number) => n });
    await worker.start();
    const { generation } = await flow.complete(request.id);
    const text = `${generation} succeeded 2 2 0 0 -\u001d${generation}-2\u001e0 5\u001e0 5`;
    await flow.connection.client.spublish(channel as string, `done:{${request.id}} ${text}`);
    await over;
    const values = (await all(request.results())).map(({ value }) => value);
    expect(values).toEqual([5, 6]);
  });
});
