import { ConditionError, InvalidOptionError, PayloadError } from '@piecework/protocol';
import type { RetryItem } from '@piecework/queues';
import { LeaseLostError } from 'piecework';
import { from, mergeMap } from 'rxjs';
import { describe, expect } from 'vitest';
import { mayAlso } from '../support/acl.js';
import { moveClock, useTestClock } from '../support/clock.js';
import { gate, nodesOf, numbers } from '../support/flow.js';
import { test } from '../support/timed.js';
import { until } from '../support/until.js';

useTestClock();

/** Looks by itself, as a test that moves the clock cannot be woken by it. */
const poll = { pollMs: 5 };

/** A lease that is kept, also on a machine that stands still for a second. */
const LEASE_MS = 2_400;

/** The next `n` items of a stream, which goes on. */
async function some<T>(stream: AsyncIterator<T>, n: number): Promise<T[]> {
  const found: T[] = [];
  while (found.length < n) {
    const { value, done } = await stream.next();
    if (done) throw new Error(`the stream ended after ${found.length}`);
    found.push(value);
  }
  return found;
}

const first = async <T>(stream: AsyncIterator<T>): Promise<T> => (await some(stream, 1))[0] as T;

describe('an item', () => {
  test('is taken when it is due, and is gone when it is done', async ({ timed }) => {
    const queue = timed.retryQueue<{ to: string }>();
    const start = Date.now();
    const key = await queue.put({ to: 'me' }, { delayMs: 60_000 });
    const other = await queue.put({ to: 'you' }, { at: start + 30_000 });
    expect(await queue.counts()).toMatchObject({ waiting: 2, leased: 0, next: start + 30_000 });
    moveClock(60_000);
    const items = queue.items({ ...poll, demand: 2 });
    const [you, me] = await some(items, 2);
    expect(you).toMatchObject({ key: other, numFailures: 0, payload: { to: 'you' } });
    expect(me).toMatchObject({ key, numFailures: 0, payload: { to: 'me' } });
    expect(me!.created).toBeGreaterThanOrEqual(start);
    expect(await queue.counts()).toMatchObject({ waiting: 0, leased: 2 });
    expect(await you!.done()).toBe(true);
    expect(await you!.done()).toBe(false);
    expect(await me!.retry({ delayMs: 1 })).toBe(true);
    expect(await me!.discard()).toBe(false);
    expect(await queue.counts()).toMatchObject({ waiting: 1, leased: 0 });
    await items.return();
  });

  test('comes again at the time that its consumer names, with its failures counted', async ({
    timed,
  }) => {
    const queue = timed.retryQueue<string>();
    const key = await queue.put('x');
    const items = queue.items(poll);
    for (const numFailures of numbers(4)) {
      const item = await first(items);
      expect(item).toMatchObject({ key, numFailures, payload: 'x' });
      await item.retry({ delayMs: 1_000 * 2 ** numFailures });
      expect(await queue.counts()).toMatchObject({ waiting: 1 });
      moveClock(1_000 * 2 ** numFailures);
    }
    await items.return();
  });

  test('that is discarded is listed among the failures', async ({ timed }) => {
    const queue = timed.retryQueue<number>({ keepFailures: 150 });
    const n = 160;
    await Promise.all(numbers(n).map((i) => queue.put(i, { at: i, key: `item-${i}` })));
    let left = n;
    for await (const item of queue.items({ demand: 10 })) {
      await item.discard(new TypeError(`no ${item.payload}`));
      left -= 1;
      if (left === 0) break;
    }
    const found = [];
    for await (const failure of queue.failures()) found.push(failure);
    expect(found).toMatchObject(
      numbers(150, 10).map((i) => ({
        ...{ key: `item-${i}`, payload: i, numFailures: 1, message: `TypeError: no ${i}` },
      })),
    );
    const newest = [];
    for await (const failure of queue.failures({ order: 'newest', page: 7 })) newest.push(failure);
    expect(newest).toEqual(found.reverse());
    await expect(queue.failures({ page: 0 }).next()).rejects.toThrow(InvalidOptionError);
    expect(await queue.counts()).toMatchObject({ waiting: 0, leased: 0, failures: 150 });
    await queue.drop();
    expect(await queue.counts()).toMatchObject({ failures: 0 });
  });

  test('that is put again under its key is moved, and has no failures any more', async ({
    timed,
  }) => {
    const queue = timed.retryQueue<string>();
    await queue.put('old', { key: 'a', delayMs: 60_000 });
    await queue.put('new', { key: 'a' });
    const items = queue.items();
    const item = await first(items);
    expect(item).toMatchObject({ key: 'a', payload: 'new' });
    await item.done();
    expect(await queue.counts()).toMatchObject({ waiting: 0, leased: 0 });
    await items.return();
  });
});

describe('a stream of items', () => {
  test('takes all that is due, up to the demand, in due order', async ({ timed }) => {
    const queue = timed.retryQueue<number>();
    await Promise.all(numbers(10).map((i) => queue.put(i, { at: 10 - i })));
    const items = queue.items({ demand: 4 });
    const taken = await some(items, 4);
    expect(taken.map(({ payload }) => payload)).toEqual([9, 8, 7, 6]);
    const fifth = first(items);
    const asked = await queue.counts();
    expect(asked).toMatchObject({ waiting: 6, leased: 4 });
    await taken[2]!.done();
    expect((await fifth).payload).toBe(5);
    expect(await queue.counts()).toMatchObject({ waiting: 5, leased: 4 });
    await items.return();
  });

  test('is woken by an item that is put', async ({ timed }) => {
    const [queue, other] = [timed.retryQueue<string>(), timed.retryQueue<string>()];
    await other.put('later', { delayMs: 3_600_000 });
    const items = queue.items();
    const waiting = first(items);
    await other.put('now');
    const item = await waiting;
    expect(item.payload).toBe('now');
    await item.done();
    await items.return();
  });

  test('gives back the items that it has not handed out when it ends', async ({ timed }) => {
    const queue = timed.retryQueue<number>();
    for (const i of numbers(3)) await queue.put(i, { at: i });
    const over = new AbortController();
    for await (const item of queue.items({ demand: 3, signal: over.signal })) {
      over.abort();
      await item.done();
    }
    expect(await queue.counts()).toMatchObject({ waiting: 2, leased: 0 });
  });

  test('renews the lease of an item that was handed out until it is settled', async ({ timed }) => {
    const queue = timed.retryQueue<string>();
    await queue.put('x');
    const items = queue.items({ leaseMs: LEASE_MS });
    const item = await first(items);
    // Beyond the end of the first lease.
    const { next } = await queue.counts();
    await until(async () => Number((await queue.counts()).next) > Number(next) + LEASE_MS);
    expect(item.signal.aborted).toBe(false);
    expect(await item.done()).toBe(true);
    await items.return();
  });

  test('that is left by break renews no more, and says so', async ({ timed }) => {
    const queue = timed.retryQueue<string>();
    await queue.put('x');
    let left: RetryItem<string> | undefined;
    for await (const item of queue.items({ leaseMs: 150 })) {
      left = item;
      break;
    }
    await until(() => left!.signal.aborted);
    expect(left!.signal.reason).toBeInstanceOf(LeaseLostError);
    const items = queue.items(poll);
    const again = await first(items);
    expect(again).toMatchObject({ payload: 'x', numFailures: 0 });
    expect(await left!.done()).toBe(false);
    expect(await again.done()).toBe(true);
    await items.return();
  });

  test('notices that another consumer has taken its item', async ({ timed }) => {
    const [slow, quick] = [timed.retryQueue<string>(), timed.retryQueue<string>()];
    await slow.put('x');
    const [items, others] = [slow.items({ leaseMs: 600 }), quick.items(poll)];
    const item = await first(items);
    let taken: RetryItem<string> | undefined;
    const taking = first(others).then((one) => {
      taken = one;
    });
    // Its holder may renew it once more before the other one looks.
    await until(() => {
      if (!taken) moveClock(601);
      return taken;
    });
    await taking;
    await until(() => item.signal.aborted);
    expect(await item.retry({ delayMs: 0 })).toBe(false);
    expect(await taken!.done()).toBe(true);
    await Promise.all([items.return(), others.return()]);
  });

  test('with a slow RxJS subscriber never has more unsettled items than its demand', async ({
    timed,
  }) => {
    const queue = timed.retryQueue<number>();
    const n = 40;
    await Promise.all(numbers(n).map((i) => queue.put(i)));
    const over = new AbortController();
    const held = { now: 0, most: 0 };
    const seen: number[] = [];
    const { opened: finished, open: finish } = gate();
    from(queue.items({ demand: 5, signal: over.signal }))
      .pipe(
        mergeMap(async (item) => {
          held.now += 1;
          held.most = Math.max(held.most, held.now);
          const { leased } = await queue.counts();
          expect(leased).toBeLessThanOrEqual(5);
          held.now -= 1;
          await item.done();
          seen.push(item.payload);
          if (seen.length === n) over.abort();
        }),
      )
      .subscribe({ complete: finish });
    await finished;
    expect(held.most).toBeGreaterThan(1);
    expect(held.most).toBeLessThanOrEqual(5);
    expect(seen.sort((a, b) => a - b)).toEqual(numbers(n));
  });

  test('beside others gets its share, and each item goes to one of them', async ({ timed }) => {
    const n = 60;
    const queues = numbers(3).map(() => timed.retryQueue<number>());
    await Promise.all(numbers(n).map((i) => queues[0]!.put(i)));
    const over = new AbortController();
    const seen: number[] = [];
    const consume = async (queue: (typeof queues)[number]) => {
      for await (const item of queue.items({ demand: 4, signal: over.signal })) {
        seen.push(item.payload);
        await item.done();
        if (seen.length === n) over.abort();
      }
    };
    await Promise.all(queues.map(consume));
    expect(seen.sort((a, b) => a - b)).toEqual(numbers(n));
  });
});

describe('consume', () => {
  test('settles each item by the outcome of its handler', async ({ timed }) => {
    const queue = timed.retryQueue<string>();
    for (const payload of ['good', 'twice', 'bad']) await queue.put(payload, { key: payload });
    const over = new AbortController();
    const runs: string[] = [];
    const asked: number[] = [];
    const consuming = queue.consume(
      async (payload, item) => {
        runs.push(payload);
        if (payload === 'bad') throw new Error('always');
        if (payload === 'twice' && item.numFailures < 2) throw new Error('at first');
      },
      {
        ...{ ...poll, demand: 2, maxFailures: 3, signal: over.signal },
        retryDelayMs: (numFailures) => {
          asked.push(numFailures);
          return 0;
        },
      },
    );
    await until(async () => {
      const { waiting, leased, failures } = await queue.counts();
      return waiting + leased === 0 && failures === 1;
    });
    over.abort();
    await consuming;
    expect(runs.filter((one) => one === 'good')).toHaveLength(1);
    expect(runs.filter((one) => one === 'twice')).toHaveLength(3);
    expect(runs.filter((one) => one === 'bad')).toHaveLength(3);
    const failure = await first(queue.failures());
    expect(failure).toMatchObject({ key: 'bad', numFailures: 3, message: 'Error: always' });
    expect(asked.sort()).toEqual([1, 1, 2, 2]);
  });

  test('waits for its handlers when it is to end, and keeps their leases', async ({ timed }) => {
    const queue = timed.retryQueue<string>();
    await queue.put('slow');
    const over = new AbortController();
    const { opened, open } = gate();
    let lost: AbortSignal | undefined;
    const consuming = queue.consume(
      async (_, { signal }) => {
        lost = signal;
        await opened;
      },
      { leaseMs: LEASE_MS, signal: over.signal },
    );
    await until(() => lost);
    over.abort();
    const { next } = await queue.counts();
    await until(async () => Number((await queue.counts()).next) > Number(next) + LEASE_MS);
    open();
    await consuming;
    expect(lost!.aborted).toBe(false);
    expect(await queue.counts()).toMatchObject({ waiting: 0, leased: 0 });
  });
});

describe('a close', () => {
  test('tells the handlers, waits for them, and gives back the rest', async ({ timed }) => {
    const [queue, other] = [timed.retryQueue<number>(), timed.retryQueue<number>()];
    for (const i of numbers(3)) await queue.put(i, { at: i });
    const begun = gate<number>();
    const consuming = queue.consume(
      async (payload, { signal }) => {
        begun.open(payload);
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
      { demand: 1 },
    );
    const stream = queue.items({ demand: 2 });
    expect(await begun.opened).toBe(0);
    expect((await first(stream)).payload).toBe(1);
    await queue.close();
    await consuming;
    expect((await stream.next()).done).toBe(true);
    // What was in hand comes with the end of its lease, the other one is there at once.
    expect(await other.counts()).toMatchObject({ waiting: 1, leased: 2 });
    moveClock(30_000);
    const items = other.items({ demand: 3 });
    expect((await some(items, 3)).map(({ payload }) => payload)).toEqual([2, 0, 1]);
    await items.return();
  });
});

describe('a condition', () => {
  /** 10 tokens a second, 5 at most. */
  const bucket = {
    keys: ['bucket'],
    lua: `
      local v = redis.call('HMGET', keys[1], 'tokens', 'at')
      local at = math.max(now, tonumber(v[2]) or now)
      local tokens = math.min(5, (tonumber(v[1]) or 5) + (at - (tonumber(v[2]) or at)) / 100)
      local granted = math.min(wanted, math.floor(tokens))
      redis.call('HSET', keys[1], 'tokens', tokens - granted, 'at', at)
      return granted, 100`,
  };

  test('as a token bucket grants no more than its rate, to all consumers together', async ({
    timed,
  }) => {
    const queues = numbers(2).map(() => timed.retryQueue<number>({ condition: bucket }));
    await Promise.all(numbers(40).map((i) => queues[0]!.put(i, { at: i })));
    const seen: number[] = [];
    const over = new AbortController();
    const consume = async (queue: (typeof queues)[number]) => {
      for await (const item of queue.items({ ...poll, demand: 40, signal: over.signal })) {
        seen.push(item.payload);
        await item.done();
      }
    };
    const start = Date.now();
    const consuming = Promise.all(queues.map(consume));
    await until(() => seen.length >= 5);
    moveClock(400);
    await until(() => seen.length >= 9);
    // What has come is what the bucket had, and what real and moved time have added.
    expect(seen.length).toBeLessThanOrEqual(5 + (400 + Date.now() - start) / 100 + 1);
    moveClock(60_000);
    const before = seen.length;
    await until(() => seen.length >= before + 4);
    over.abort();
    await consuming;
    expect(seen.length).toBeLessThanOrEqual(before + 5 + (Date.now() - start) / 100 + 1);
    expect([...seen].sort((a, b) => a - b)).toEqual(numbers(seen.length));
  });

  test('lets nothing be taken until its key says that the queue is open', async ({ timed }) => {
    // What it calls, nobody else does.
    await mayAlso(nodesOf(timed.connection), '+get');
    const condition = {
      keys: ['open'],
      lua: "return redis.call('GET', keys[1]) == 'yes' and wanted or 0, 20",
    };
    const queue = timed.retryQueue<string>({ condition });
    await queue.put('x');
    const items = queue.items();
    const waiting = first(items);
    await queue.put('y');
    expect(await queue.counts()).toMatchObject({ waiting: 2, leased: 0 });
    await timed.connection.client.set(queue.conditionKey('open'), 'yes');
    expect((await waiting).payload).toBe('x');
    await items.return();
  });

  test('that fails ends the stream with an error, and nothing is taken', async ({ timed }) => {
    const queue = timed.retryQueue<string>({ condition: { lua: "error('no')", keys: [] } });
    await queue.put('x');
    await expect(first(queue.items())).rejects.toThrow(ConditionError);
    await expect(queue.consume(() => {})).rejects.toThrow(ConditionError);
    expect(await queue.counts()).toMatchObject({ waiting: 1, leased: 0 });
  });
});

describe('wrong input', () => {
  test.for([
    ['put', { at: 5, delayMs: 5 }],
    ['put', { at: 'soon' }],
    ['put', { delayMs: -1 }],
    ['put', { key: 'a b' }],
    ['put', { unknown: 1 }],
    ['items', { demand: 0 }],
    ['items', { leaseMs: 99 }],
    ['items', { pollMs: 1.5 }],
    ['items', { signal: true }],
    ['consume', { maxFailures: 0 }],
    ['consume', { retryDelayMs: 5 }],
  ] as const)(
    'of %s, %j is refused before anything is written',
    async ([call, options], { timed }) => {
      const queue = timed.retryQueue();
      const given = options as never;
      const calls = {
        put: () => queue.put('x', given),
        items: async () => queue.items(given),
        consume: () => queue.consume(() => {}, given),
      };
      await expect(calls[call]()).rejects.toThrow(InvalidOptionError);
      expect(await timed.keys()).toEqual([]);
    },
  );

  test('of a payload that is no JSON or too large is refused', async ({ timed }) => {
    const queue = timed.retryQueue({ maxPayloadBytes: 10 });
    await expect(queue.put(undefined)).rejects.toThrow(PayloadError);
    await expect(queue.put('x'.repeat(9))).rejects.toThrow(PayloadError);
    expect(await timed.keys()).toEqual([]);
  });

  test('of a time for the next attempt leaves the item as it is', async ({ timed }) => {
    const queue = timed.retryQueue<string>();
    await queue.put('x');
    const items = queue.items();
    const item = await first(items);
    await expect(item.retry({ delayMs: -1 })).rejects.toThrow(InvalidOptionError);
    await expect(item.retry({} as never)).rejects.toThrow(InvalidOptionError);
    await expect(item.retry(Number.NaN)).rejects.toThrow(InvalidOptionError);
    expect(await item.retry(new Date())).toBe(true);
    await items.return();
  });
});
