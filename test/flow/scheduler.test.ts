import { AbortError, ClosedError, InvalidOptionError, PayloadError } from '@piecework/protocol';
import { describe, expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { FaultyClients } from '../support/faulty-client.js';
import { testRedis } from '../support/redis.js';
import { test } from '../support/timed.js';
import { until } from '../support/until.js';

useTestClock();

const LOCK_MS = 5_000;
const lock = { lockMs: LOCK_MS };

describe('an object', () => {
  test('is due at its time, and goes to one taker', async ({ timed }) => {
    const [a, b] = [timed.scheduler<string>(), timed.scheduler<string>()];
    const at = Date.now() + 60_000;
    await a.enqueue('one', at);
    await a.enqueue('two', new Date(at + 5));
    expect(await a.takeDue(lock)).toEqual([]);
    moveClock(61_000);
    const [due] = await b.takeDue(lock);
    expect(due).toMatchObject({ object: 'one', at });
    expect(due!.lockedUntil).toBeGreaterThanOrEqual(at + LOCK_MS);
    expect(await a.takeDue({ ...lock, count: 5 })).toMatchObject([{ object: 'two', at: at + 5 }]);
    expect(await a.counts()).toMatchObject({ waiting: 0, locked: 2 });
    expect(await b.remove('one')).toBe(true);
    expect(await a.remove('two')).toBe(true);
    expect(await a.counts()).toEqual({ waiting: 0, locked: 0, next: undefined });
  });

  test('is known by its content, whatever the order of its fields', async ({ timed }) => {
    const scheduler = timed.scheduler();
    await scheduler.enqueue({ a: 1, b: [{ c: null, d: 'x' }] }, 5);
    await scheduler.enqueue({ b: [{ d: 'x', c: null }], a: 1 }, 7);
    expect(await scheduler.takeDue({ count: 9 })).toMatchObject([
      { object: { a: 1, b: [{ c: null, d: 'x' }] }, at: 7 },
    ]);
    expect(await scheduler.remove({ b: [{ d: 'x', c: null }], a: 1 })).toBe(true);
  });

  test('goes to another taker when its lock ends, unless it was removed', async ({ timed }) => {
    const [a, b] = [timed.scheduler(), timed.scheduler()];
    await a.enqueue('x', 1);
    await a.takeDue(lock);
    expect(await b.takeDue(lock)).toEqual([]);
    moveClock(LOCK_MS);
    expect(await b.takeDue(lock)).toMatchObject([{ object: 'x', at: 1 }]);
    expect(await a.remove('x')).toBe(false);
    expect(await b.remove('x')).toBe(true);
  });

  test('is removed late by its taker, if nobody else has taken it', async ({ timed }) => {
    const scheduler = timed.scheduler();
    await scheduler.enqueue('x', 1);
    await scheduler.takeDue(lock);
    moveClock(LOCK_MS);
    expect(await scheduler.remove('x')).toBe(true);
    expect(await scheduler.takeDue(lock)).toEqual([]);
  });

  test('that another has locked is moved, and neither lost nor locked twice', async ({ timed }) => {
    const [a, b] = [timed.scheduler(), timed.scheduler()];
    await a.enqueue('x', 1);
    await a.takeDue(lock);
    await b.enqueue('x', 2);
    expect(await b.takeDue(lock)).toEqual([]);
    expect(await a.remove('x')).toBe(true);
    expect(await b.takeDue(lock)).toMatchObject([{ object: 'x', at: 2 }]);
  });

  test('that is enqueued by its taker is free at its new time', async ({ timed }) => {
    const [a, b] = [timed.scheduler(), timed.scheduler()];
    await a.enqueue('x', 1);
    await a.takeDue(lock);
    await a.enqueue('x', 2);
    expect(await b.takeDue(lock)).toMatchObject([{ object: 'x', at: 2 }]);
    // What it does not hold any more, it removes whoever has it.
    expect(await a.remove('x')).toBe(true);
    expect(await b.remove('x')).toBe(true);
    expect(await b.remove('x')).toBe(false);
  });

  test('leaves no key behind when its last occurrence is removed', async ({ timed }) => {
    const scheduler = timed.scheduler();
    await scheduler.enqueue('x', 1);
    await scheduler.takeDue(lock);
    await scheduler.remove('x');
    expect((await timed.keys()).filter((key) => !key.includes(':caller:'))).toEqual([]);
  });
});

describe('a taker that waits', () => {
  test('is woken by an object that is due earlier', async ({ timed }) => {
    const [waiter, other] = [timed.scheduler(), timed.scheduler()];
    await other.enqueue('later', Date.now() + 3_600_000);
    const waiting = waiter.takeDue({ ...lock, waitMs: 50_000 });
    await until(async () => (await waiter.counts()).next !== undefined);
    await other.enqueue('now', 1);
    expect(await waiting).toMatchObject([{ object: 'now' }]);
    await waiter.remove('now');
  });

  test('sleeps until the next time, and gets it then, never before', async ({ timed }) => {
    const scheduler = timed.scheduler<number>();
    const start = Date.now();
    for (const ms of [30, 90, 150]) await scheduler.enqueue(ms, start + ms);
    for (const ms of [30, 90, 150]) {
      const [due] = await scheduler.takeDue({ ...lock, waitMs: 50_000 });
      expect(due).toMatchObject({ object: ms, at: start + ms });
      // The lock began when it was taken.
      expect(due!.lockedUntil - LOCK_MS).toBeGreaterThanOrEqual(start + ms);
      await scheduler.remove(ms);
    }
  });

  test('asks when something is due, and hardly more often', { tags: ['one-server'] }, async ({
    timed,
  }) => {
    const counted = new FaultyClients();
    timed.after(() => counted.end());
    const redis = await counted.open((await testRedis()).url);
    const scheduler = timed.scheduler<number>({ redis });
    const start = Date.now();
    const times = [300, 500, 700, 900];
    for (const ms of times) await timed.scheduler<number>().enqueue(ms, start + ms);
    const seen: number[] = [];
    for await (const { object } of scheduler.due({ ...lock, demand: times.length })) {
      seen.push(object);
      if (seen.length === times.length) break;
    }
    expect(seen).toEqual(times);
    // A look for each that comes, one before, and one when the subscription stands.
    expect(counted.log.filter((line) => /evalsha/.test(line)).length).toBeLessThanOrEqual(7);
    expect(counted.calls).toBeLessThanOrEqual(14);
  });

  test('gets nothing when nothing was due in time', async ({ timed }) => {
    expect(await timed.scheduler().takeDue({ waitMs: 20 })).toEqual([]);
  });

  test('is ended by its signal, and by the close', async ({ timed }) => {
    const scheduler = timed.scheduler();
    const over = new AbortController();
    const waits = [
      scheduler.takeDue({ waitMs: 50_000, signal: over.signal }),
      scheduler.takeDue({ waitMs: 50_000 }),
    ];
    const told = Promise.all([
      expect(waits[0]).rejects.toThrow(AbortError),
      expect(waits[1]).rejects.toThrow(ClosedError),
    ]);
    over.abort();
    await waits[0]?.catch(() => {});
    await scheduler.close();
    await told;
    await expect(scheduler.enqueue('x', 1)).rejects.toThrow(ClosedError);
    await expect(scheduler.counts()).rejects.toThrow(ClosedError);
    expect(() => scheduler.due()).toThrow(ClosedError);
  });
});

describe('the stream of what is due', () => {
  test('yields objects in due order, and has no more than its demand locked', async ({ timed }) => {
    const scheduler = timed.scheduler<number>();
    const n = 20;
    for (let i = 0; i < n; i += 1) await scheduler.enqueue(i, 100 - i);
    const seen: number[] = [];
    for await (const { object } of scheduler.due({ ...lock, demand: 3 })) {
      expect((await scheduler.counts()).locked).toBeLessThanOrEqual(3);
      seen.push(object);
      await scheduler.remove(object);
      if (seen.length === n) break;
    }
    expect(seen).toEqual(Array.from({ length: n }, (_, i) => n - 1 - i));
  });

  test('gives back the objects that it has not handed out when it is left', async ({ timed }) => {
    const scheduler = timed.scheduler<number>();
    for (const i of [1, 2, 3]) await scheduler.enqueue(i, i);
    for await (const { object } of scheduler.due({ ...lock, demand: 3 })) {
      expect(object).toBe(1);
      break;
    }
    expect(await scheduler.counts()).toMatchObject({ waiting: 2, locked: 1 });
  });

  test('ends with its signal', async ({ timed }) => {
    const scheduler = timed.scheduler<number>();
    const over = new AbortController();
    await scheduler.enqueue(1, 1);
    const seen: number[] = [];
    for await (const { object } of scheduler.due({ signal: over.signal })) {
      seen.push(object);
      await scheduler.remove(object);
      over.abort();
    }
    expect(seen).toEqual([1]);
  });
});

describe('wrong input', () => {
  test.for([
    ['enqueue', 'at', 'soon'],
    ['enqueue', 'at', 1.5],
    ['enqueue', 'at', -1],
    ['enqueue', 'at', new Date('no date')],
    ['takeDue', 'lockMs', 0],
    ['takeDue', 'count', 1_001],
    ['takeDue', 'waitMs', -1],
    ['takeDue', 'signal', 'now'],
    ['takeDue', 'unknown', 1],
    ['due', 'demand', 0],
    ['due', 'pollMs', 0],
  ] as const)('of %s, %s %s is refused before anything is written', async (row, { timed }) => {
    const [call, field, value] = row;
    const scheduler = timed.scheduler();
    const asked = { [field]: value } as never;
    const calls = {
      enqueue: () => scheduler.enqueue('x', value as never),
      takeDue: () => scheduler.takeDue(asked),
      due: async () => scheduler.due(asked),
    };
    await expect(calls[call]()).rejects.toThrow(InvalidOptionError);
    expect(await timed.keys()).toEqual([]);
  });

  test('what is no JSON, or too large, is refused', async ({ timed }) => {
    const scheduler = timed.scheduler({ maxObjectBytes: 10 });
    await expect(scheduler.enqueue(undefined, 1)).rejects.toThrow(PayloadError);
    await expect(scheduler.enqueue('x'.repeat(9), 1)).rejects.toThrow(PayloadError);
    await expect(scheduler.enqueue('é'.repeat(5), 1)).rejects.toThrow(/maxObjectBytes/);
    expect(await timed.keys()).toEqual([]);
  });

  test.for([
    ['name', 'a b'],
    ['condition', { lua: 'return 1' }],
    ['condition', 'return 1'],
    ['onError', 1],
    ['unavailableMs', -1],
    ['maxObjectBytes', 0],
    ['keepFailures', 3],
  ] as const)('a Scheduler with %s %s is refused', async ([field, value], { timed }) => {
    expect(() => timed.scheduler({ [field]: value })).toThrow(InvalidOptionError);
  });
});
