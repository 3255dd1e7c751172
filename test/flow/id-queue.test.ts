import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import {
  AbortError,
  ClosedError,
  InvalidOptionError,
  PieceworkError,
  type RedisInput,
} from '@piecework/protocol';
import {
  IdQueue,
  type IdQueueOptions,
  IdQueueView,
  type ItemReference,
  NoQueueError,
  QueueDiffersError,
} from '@piecework/queues';
import { describe, expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { FaultyClients } from '../support/faulty-client.js';
import { type Flow, numbers, test } from '../support/flow.js';
import { testRedis } from '../support/redis.js';

useTestClock();

const TIMEOUT_MS = 10_000;

/** A queue of ids that is dropped when the test is over. */
async function join(flow: Flow, options: Partial<IdQueueOptions> = {}): Promise<IdQueue> {
  const queue = await IdQueue.join(flow.queue, { redis: flow.redis as RedisInput, ...options });
  flow.after(async () => {
    await queue.drop().catch(() => {});
    await queue.close();
  });
  return queue;
}

/** Pulls what has to be ready. */
async function take(queue: IdQueue): Promise<ItemReference<'ready'>> {
  const pulled = await queue.pull();
  if (pulled.state !== 'ready') throw new Error(`pull: ${pulled.state}`);
  return pulled;
}

describe('a look at a queue of ids', () => {
  test('says what is in it and what failed last, and writes nothing', async ({ flow }) => {
    const view = new IdQueueView(flow.queue, { redis: flow.redis as RedisInput });
    flow.after(() => view.close());
    // Nobody has joined it: it is not created.
    await expect(view.look()).rejects.toThrow(NoQueueError);
    await expect(view.look()).rejects.toThrow(`no id queue ${flow.queue} is known`);
    const queue = await join(flow, { timeoutMs: TIMEOUT_MS, unique: true });
    expect(await view.look()).toEqual({
      counts: { pending: 0, running: 0, completed: 0, failures: 0 },
      ...{ timeoutMs: TIMEOUT_MS, unique: true, next: undefined, failures: [] },
    });
    await queue.add(['a', 'b', 'c', 'd', 'e']);
    const items = [await take(queue), await take(queue), await take(queue), await take(queue)];
    await queue.fail(items[0]?.key ?? '', 'one');
    await queue.fail(items[1]?.key ?? '', 'two');
    const looked = await view.look({ failures: 1 });
    expect(looked).toMatchObject({
      counts: { pending: 1, running: 2, completed: 2, failures: 2 },
      next: (items[2]?.stamp ?? 0) + TIMEOUT_MS,
      failures: [{ id: 'b', message: 'two' }],
    });
    expect(looked.failures).toHaveLength(1);
    expect((await view.look()).failures.map(({ id }) => id)).toEqual(['b', 'a']);
    expect((await view.look({ failures: 0 })).failures).toEqual([]);
    await queue.drop();
    await expect(view.look()).rejects.toThrow(NoQueueError);
  });

  test('refuses wrong options, and ends', async ({ flow }) => {
    const redis = flow.redis as RedisInput;
    expect(() => new IdQueueView('a b', { redis })).toThrow(InvalidOptionError);
    expect(() => new IdQueueView('a', { redis, timeoutMs: 5 } as never)).toThrow(
      InvalidOptionError,
    );
    const view = new IdQueueView(flow.queue, { redis });
    await expect(view.look({ failures: 101 })).rejects.toThrow(InvalidOptionError);
    await view.close();
    await expect(view.look()).rejects.toThrow(ClosedError);
  });
});

describe('a queue of ids', () => {
  test('hands out the ids that were added, and counts their outcomes', async ({ flow }) => {
    const queue = await join(flow);
    expect(await queue.add('a')).toBe(1);
    expect(await queue.add(['b', 'ö 🙂', 'a'])).toBe(4);
    expect(await queue.add([])).toBe(4);
    const first = await take(queue);
    expect(first).toMatchObject({ state: 'ready', id: 'a', key: expect.any(String) });
    expect(first.stamp).toBeGreaterThan(1_600_000_000_000);
    const others = [await take(queue), await take(queue), await take(queue)] as const;
    expect(others.map(({ id }) => id)).toEqual(['b', 'ö 🙂', 'a']);
    expect(await queue.pull()).toEqual({ state: 'processing', stamp: expect.any(Number) });
    expect(await queue.done(first.key)).toBe(true);
    expect(await queue.done(first.key)).toBe(false);
    expect(await queue.fail(others[0].key, 'first')).toBe(true);
    expect(await queue.fail(others[1].key, 'second\n')).toBe(true);
    expect(await queue.counts()).toEqual({ pending: 0, running: 1, completed: 3, failures: 2 });
    const { key } = others[1];
    const last = { id: 'ö 🙂', key, message: 'second\n', at: expect.any(Number) };
    expect(await queue.lastFailure()).toEqual(last);
    expect(await queue.failure(2)).toMatchObject({ id: 'b', message: 'first' });
    expect(await queue.failure(3)).toBeUndefined();
    expect(await queue.failures()).toMatchObject([last, { id: 'b' }]);
    expect(await queue.done(others[2].key)).toBe(true);
    expect(await queue.pull()).toEqual({ state: 'none', stamp: expect.any(Number) });
  });

  test('gives an item that timed out to exactly one of many callers', async ({ flow }) => {
    const queues = [
      await join(flow, { timeoutMs: TIMEOUT_MS }),
      await join(flow),
      await join(flow),
    ];
    const [queue] = queues as [IdQueue];
    await queue.add('a');
    const lost = await take(queue);
    moveClock(TIMEOUT_MS);
    const offers = await Promise.all(queues.map((one) => one.pull()));
    expect(offers).toMatchObject(Array(3).fill({ state: 'timed-out', key: lost.key }));
    const answers = await Promise.all(
      queues.flatMap((one) => [one.resume(lost.key), one.resume(lost.key)]),
    );
    const ready = answers.filter(({ state }) => state === 'ready');
    expect(ready).toMatchObject([{ id: 'a' }]);
    expect(ready[0]?.key).not.toBe(lost.key);
    expect(answers.filter(({ state }) => state === 'none')).toHaveLength(5);
    expect(ready[0]?.stamp).toBeGreaterThanOrEqual(lost.stamp + TIMEOUT_MS);
    expect(await queue.fail(lost.key, 'late')).toBe(false);
    expect(await queue.done(lost.key)).toBe(true);
    expect(await queue.done(ready[0]?.key as string)).toBe(false);
    expect(await queue.counts()).toEqual({ pending: 0, running: 0, completed: 1, failures: 0 });
  });

  test('serves many callers of one object, and gives each id to one of them', async ({ flow }) => {
    const queue = await join(flow);
    const ids = numbers(1_300).map(String);
    const adding = [ids.slice(0, 1_200), ids.slice(1_200)].map((part) => queue.add(part));
    const taken: string[] = [];
    const caller = async () => {
      for await (const { id, key } of queue.references()) {
        taken.push(id);
        await queue.done(key);
      }
    };
    expect(await Promise.all(adding)).toHaveLength(2);
    await Promise.all(numbers(20).map(caller));
    expect(taken.toSorted((a, b) => Number(a) - Number(b))).toEqual(ids);
    expect(await queue.counts()).toMatchObject({ pending: 0, running: 0, completed: 1_300 });
  });

  test('has an id that is added again only once if it is unique', async ({ flow }) => {
    const queue = await join(flow, { unique: true });
    expect(await queue.add(['a', 'b', 'a'])).toBe(2);
    const item = await take(queue);
    expect(await queue.add('a')).toBe(1);
    await queue.done(item.key);
    expect(await queue.add('a')).toBe(2);
  });

  test('iterates over its items, also those that timed out, until nothing is left', async ({
    flow,
  }) => {
    const queue = await join(flow, { timeoutMs: TIMEOUT_MS });
    await queue.add(['a', 'b']);
    const first = await take(queue);
    moveClock(TIMEOUT_MS);
    const ids: string[] = [];
    for await (const { id, key } of queue.references()) {
      ids.push(id);
      expect(key).not.toBe(first.key);
      await queue.done(key);
    }
    expect(ids).toEqual(['b', 'a']);
  });

  test('slows its pulls down while others work on all items, until its signal aborts', async ({
    flow,
  }) => {
    const queue = await join(flow, { rest: { after: 2, ms: 86_400_000 } });
    await queue.add('a');
    const item = await take(queue);
    for (let i = 0; i < 2; i += 1) expect((await queue.pull()).state).toBe('processing');
    const stop = new AbortController();
    const resting = queue.pull({ signal: stop.signal });
    // Others of the object go on meanwhile.
    expect(await queue.done(item.key)).toBe(true);
    stop.abort();
    await expect(resting).rejects.toBeInstanceOf(AbortError);
    const closed = expect(queue.pull()).rejects.toBeInstanceOf(ClosedError);
    await queue.close();
    await closed;
    await (await join(flow)).drop();
  });
});

describe('to join', () => {
  test('accepts the options of the existing queue, and names those that differ', async ({
    flow,
  }) => {
    const queue = await join(flow, { timeoutMs: 5, unique: true });
    const other = await join(flow);
    expect([other.timeoutMs, other.unique]).toEqual([5, true]);
    const differs = await join(flow, { timeoutMs: 6, unique: false }).catch((error) => error);
    expect(differs).toBeInstanceOf(QueueDiffersError);
    expect(differs).toMatchObject({ code: 'QUEUE_DIFFERS', differs: ['timeoutMs', 'unique'] });
    expect(differs.message).toContain('timeoutMs is 5, not 6');
    await queue.drop();
    const fresh = await join(flow);
    expect([fresh.timeoutMs, fresh.unique]).toEqual([60_000, false]);
  });

  test('after a drop creates another queue, and calls on the old one throw', async ({ flow }) => {
    const [queue, other] = [await join(flow), await join(flow)];
    await queue.add('a');
    const { key } = await take(queue);
    await queue.add('b');
    await queue.drop();
    expect(await flow.keys()).toEqual([]);
    await queue.drop();
    const fresh = await join(flow);
    const calls = [
      () => other.add('c'),
      () => other.pull(),
      () => other.resume(key),
      () => other.done(key),
      () => other.fail(key, 'x'),
      () => other.counts(),
      () => other.failures(),
    ];
    for (const call of calls) {
      const error = await call().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error, String(call)).toBeInstanceOf(NoQueueError);
      expect(error).toMatchObject({ code: 'NO_QUEUE', retryable: false });
      expect((error as Error).message).toMatch(
        /was dropped, or the server may have lost it .* join/,
      );
    }
    await other.drop();
    expect(await fresh.counts()).toEqual({ pending: 0, running: 0, completed: 0, failures: 0 });
  });
});

describe('wrong input to a queue of ids', () => {
  test('is refused before anything is written', async ({ flow }) => {
    const redis = flow.redis as RedisInput;
    const refused = async (call: () => unknown, field: string) => {
      const error = await Promise.resolve()
        .then(call)
        .catch((thrown: unknown) => thrown);
      expect(error, field).toBeInstanceOf(InvalidOptionError);
      expect((error as InvalidOptionError).field).toBe(field);
    };
    const joining = (options: object) => () =>
      IdQueue.join(flow.queue, { redis, ...options } as IdQueueOptions);
    await refused(() => IdQueue.join('a b', { redis }), 'name');
    await refused(() => IdQueue.join(flow.queue, {} as IdQueueOptions), 'redis');
    await refused(joining({ timeoutMs: 0 }), 'timeoutMs');
    await refused(joining({ unique: 1 }), 'unique');
    await refused(joining({ rest: { after: 0 } }), 'rest');
    await refused(joining({ rest: { every: 1 } }), 'rest');
    await refused(joining({ unavailableMs: -1 }), 'unavailableMs');
    await refused(joining({ limit: 1 }), 'limit');
    expect(await flow.keys()).toEqual([]);
    const queue = await join(flow);
    await refused(() => queue.add(''), 'id');
    await refused(() => queue.add(['a', 'é'.repeat(513)]), 'ids[1]');
    await refused(() => queue.add(['\ud800']), 'ids[0]');
    await refused(() => queue.add([1 as never]), 'ids[0]');
    await refused(() => queue.add({} as never), 'ids');
    for (const key of ['', '1', '0-1', '1-0', '1-1 ', 7 as never]) {
      await refused(() => queue.done(key), 'key');
      await refused(() => queue.fail(key, 'x'), 'key');
      await refused(() => queue.resume(key), 'key');
    }
    await refused(() => queue.fail('1-1', undefined as never), 'message');
    await refused(() => queue.failure(0), 'n');
    await refused(() => queue.failure(101), 'n');
    await refused(() => queue.pull({ signal: 1 as never }), 'signal');
    await refused(() => queue.meters({ everyMs: 1 }), 'everyMs');
    await refused(() => queue.meters({ graphite: { prefix: 'a..b' } }), 'graphite');
    await refused(() => queue.meters({ statsd: { port: 0 } }), 'statsd');
    expect(await queue.add('é'.repeat(512))).toBe(1);
    await queue.close();
    for (const call of [() => queue.pull(), () => queue.add('a'), () => queue.drop()])
      await expect(call()).rejects.toBeInstanceOf(ClosedError);
    await (await join(flow)).drop();
  });
});

describe('an add whose reply is lost', () => {
  test('is the same add when it is asked for again, in several chunks', {
    tags: ['own-server', 'one-server'],
  }, async ({ flow }) => {
    const ids = numbers(1_200).map(String);
    // The server knows the script.
    await (await join(flow)).add([]);
    // The look at the server, the join; then the second of three chunks.
    const clients = new FaultyClients(4, 'reply lost');
    const redis = await clients.open((await testRedis()).url);
    const queue = await IdQueue.join(flow.queue, { redis, unavailableMs: 0 });
    flow.after(async () => {
      await queue.drop();
      await queue.close();
      clients.end();
    });
    const error = await queue.add(ids).catch((thrown: unknown) => thrown);
    expect(clients.struck).toBe('struck');
    expect(error).toBeInstanceOf(PieceworkError);
    expect((error as PieceworkError).retryable).toBe(true);
    expect((await queue.counts()).pending).toBe(1_000);
    expect(await queue.add(ids)).toBe(1_200);
    expect(await queue.add(ids)).toBe(2_400);
  });

  test('is the same add also when the clock stepped, and it is done by then', {
    tags: ['own-server', 'one-server'],
  }, async ({ flow }) => {
    const other = await join(flow);
    await other.add([]);
    // The look at the server, the join; then the add.
    const clients = new FaultyClients(3, 'reply lost');
    const redis = await clients.open((await testRedis()).url);
    const queue = await IdQueue.join(flow.queue, { redis, unavailableMs: 0 });
    flow.after(async () => {
      await queue.close();
      clients.end();
    });
    await expect(queue.add('a')).rejects.toMatchObject({ retryable: true });
    expect(clients.struck).toBe('struck');
    expect(await other.done((await take(other)).key)).toBe(true);
    // From an hour behind to an hour ahead; then somebody comes who strikes out what is old.
    moveClock(2 * 3_600_000);
    await other.add('b');
    expect(await queue.add('a')).toBe(1);
    expect((await take(other)).id).toBe('b');
    expect((await other.pull()).state).toBe('processing');
  });
});

test('many processes, some of them killed, complete every id once', {
  tags: ['processes'],
}, async ({ onTestFinished }) => {
  const program = fileURLToPath(new URL('../scale/id-queue.mjs', import.meta.url));
  const sizes = ['--ids', '2000', '--producers', '2', '--consumers', '3', '--kills', '2'];
  const scale = spawn(process.execPath, [program, ...sizes, '--timeout-ms', '500', '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void scale.kill('SIGTERM'));
  const report = JSON.parse(await text(scale.stdout));
  expect(report).toMatchObject({
    counts: { pending: 0, running: 0, completed: 2_000, failures: 40 },
    ...{ added: 2_000, killed: 2, doubled: 0, wrong: [] },
  });
  expect(report.resumed).toBeGreaterThan(0);
});
