import { createRequire } from 'node:module';
import { Writable } from 'node:stream';
import { Notifier } from '@piecework/notifier';
import {
  encodeError,
  InvalidOptionError,
  type KeptError,
  PayloadError,
  SourceError,
} from '@piecework/protocol';
import { RetryQueue } from '@piecework/queues';
import type { Worker, WorkerOptions } from '@piecework/worker';
import fc from 'fast-check';

import { Admin, Piecework } from 'piecework';

import { describe, expect } from 'vitest';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { hostileResults, hostileThrows, revoked } from '../support/hostile.js';
import { test as timedTest } from '../support/timed.js';
import { until } from '../support/until.js';

/*
 * What code of the user throws and returns, and what throws when it is read: it fails what it belongs
 * to, in words, and nothing else. A promise that nobody awaits and that rejects fails the run of the tests.
 */

const SLOTS = 4;
const THROWS = Object.values(hostileThrows);
const RESULTS = Object.values(hostileResults);

/** The one of the workers. */
const { pino } = createRequire(new URL('../../packages/worker/package.json', import.meta.url))(
  'pino',
) as { pino: (options: object, to: Writable) => NonNullable<WorkerOptions['logger']> };

/** A logger of a program, which reads errors. */
function realLogger() {
  const lines: string[] = [];
  const write = (chunk: Buffer, _: string, done: () => void) => {
    lines.push(String(chunk));
    done();
  };
  return { lines, logger: pino({ level: 'warn' }, new Writable({ write })) };
}

/** Serves the task `hostile`, and ordinary work that needs all slots at once. */
async function started(
  flow: Flow,
  hostile: (index: number) => unknown,
  options: Partial<WorkerOptions> = {},
): Promise<Worker> {
  const all = gate();
  let together = 0;
  const ordinary = async (n: number) => {
    together += 1;
    if (together === SLOTS) all.open();
    await all.opened;
    return n;
  };
  const handlers = [
    { task: 'hostile', run: hostile },
    { task: 'ordinary', run: ordinary },
  ];
  const worker = flow.worker({ concurrency: SLOTS, handlers, ...options });
  return worker.start();
}

async function expectAllSlots(flow: Flow, worker: Worker): Promise<void> {
  await until(() => worker.running === 0);
  const { id } = await flow.producer().submit(numbers(SLOTS), { task: 'ordinary', limit: SLOTS });
  expect(await flow.complete(id)).toMatchObject({ succeeded: SLOTS });
}

async function expectReadable(flow: Flow, id: string, count: number): Promise<void> {
  for (const text of await flow.request(id).failures(numbers(count))) {
    const { name, message } = JSON.parse(String(text)) as KeptError;
    expect([name, message]).toEqual([expect.stringMatching(/./), expect.stringMatching(/./)]);
    expect(String(text).length).toBeLessThan(12_000);
  }
}

describe('a handler', () => {
  test('may throw and reject with anything', async ({ flow }) => {
    const worker = await started(flow, (i) => {
      const thrown = THROWS[i >> 1]!();
      if (i % 2 === 0) throw thrown;
      return Promise.reject(thrown);
    });
    const count = 2 * THROWS.length;
    const { id } = await flow.producer().submit(numbers(count), { task: 'hostile', limit: SLOTS });
    expect(await flow.complete(id)).toMatchObject({ failed: count });
    await expectReadable(flow, id, count);
    await expectAllSlots(flow, worker);
  });

  test('that throws is reported with the causes of the error, or the fields of a thrown object', async ({
    flow,
  }) => {
    const circle: Error = new Error('round');
    circle.cause = new Error('and round', { cause: circle });
    let deep = new Error('0');
    for (let i = 1; i < 100; i += 1) deep = new Error(`<${i}>`, { cause: deep });
    const refused = (port: number) => new Error(`connect ECONNREFUSED 127.0.0.1:${port}`);
    const cases: [thrown: unknown, kept: Partial<KeptError>][] = [
      [
        new TypeError('fetch failed', { cause: refused(1) }),
        { name: 'TypeError', message: 'fetch failed: connect ECONNREFUSED 127.0.0.1:1' },
      ],
      [
        new TypeError('fetch failed', { cause: new AggregateError([refused(2), refused(3)]) }),
        { message: 'fetch failed: connect ECONNREFUSED 127.0.0.1:2' },
      ],
      [new AggregateError([refused(4)], 'all'), { message: `all: ${refused(4).message}` }],
      [new Error('no: why', { cause: new Error('why') }), { message: 'no: why' }],
      [new Error('no', { cause: 'a text' }), { message: 'no: a text' }],
      [new Error('no', { cause: { code: 'EPIPE' } }), { message: 'no: EPIPE' }],
      [circle, { message: 'round: and round' }],
      [deep, { message: '<99>: <98>: <97>: <96>: <95>: <94>' }],
      [
        { message: 'odd', name: 'OddError', code: 'ODD', stack: 1 },
        { name: 'OddError', message: 'odd', code: 'ODD' },
      ],
      [
        { message: 'odd', name: 1, code: 2 },
        { name: 'Error', message: 'odd' },
      ],
      [Object.assign(new Error('gone'), { code: 'ENOENT' }), { message: 'gone', code: 'ENOENT' }],
      [{ code: 5 }, { name: 'Error', message: '{"code":5}' }],
      [
        { code: 'E5', at: [1] },
        { message: '{"code":"E5","at":[1]}', code: 'E5' },
      ],
      [[{ a: 1 }], { message: '[{"a":1}]' }],
      [{ toString: () => 'said' }, { message: 'said' }],
      [{ long: 'x'.repeat(5_000) }, { message: expect.stringMatching(/^{"long":"x{1000}/) }],
      ...THROWS.map((hostile): [unknown, Partial<KeptError>] => [
        new Error('of another', { cause: hostile() }),
        { message: expect.stringMatching(/^of another/) },
      ]),
    ];
    const admin = new Admin({ redis: flow.redis, queue: flow.queue });
    flow.after(() => admin.close());
    const worker = await started(flow, (i) => Promise.reject(cases[i]![0]));
    const { id } = await flow.producer().submit(numbers(cases.length), { task: 'hostile' });
    await flow.complete(id);
    const texts = await flow.request(id).failures(numbers(cases.length));
    const kept = texts.map((text) => JSON.parse(String(text)) as KeptError);
    expect(kept).toMatchObject(cases.map(([, expected]) => expected));
    for (const { message } of kept) expect(message.length).toBeLessThanOrEqual(1_024);
    await until(async () => (await admin.errors()).length >= Math.min(100, cases.length));
    const noted = (await admin.errors()).map(({ message }) => message);
    expect(noted).toContain('fetch failed: connect ECONNREFUSED 127.0.0.1:1');
    await expectAllSlots(flow, worker);
  });

  test('may answer anything', async ({ flow }) => {
    const worker = await started(flow, (i) => RESULTS[i]!());
    const count = RESULTS.length;
    const { id } = await flow.producer().submit(numbers(count), { task: 'hostile', limit: SLOTS });
    expect(await flow.complete(id)).toMatchObject({ failed: count });
    await expectReadable(flow, id, count);
    await expectAllSlots(flow, worker);
  });

  test('gets an error for a checkpoint that is not JSON', async ({ flow }) => {
    const refused: unknown[] = [];
    const { id } = await flow.producer().submit(numbers(RESULTS.length));
    const handler = (i: number, context: { checkpoint: (value: unknown) => void }) => {
      try {
        context.checkpoint(RESULTS[i]!());
      } catch (error) {
        refused.push(error);
      }
    };
    await flow.worker({ handler }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: RESULTS.length });
    // Those that hold promises are JSON.
    expect(refused.length).toBeGreaterThan(3);
    for (const error of refused) expect(error).toBeInstanceOf(PayloadError);
  });
});

test('a consumer that pulls may fail and succeed with anything', async ({ flow }) => {
  const worker = flow.worker({ concurrency: SLOTS });
  const count = THROWS.length + RESULTS.length;
  const { id } = await flow.producer().submit(numbers(count), { limit: SLOTS });
  for await (const s of worker.subRequests<number>()) {
    if (s.payload < THROWS.length) s.fail(THROWS[s.payload]!());
    else s.succeed(RESULTS[s.payload - THROWS.length]!());
    if (s.payload === count - 1) break;
  }
  // One of the promises can be read as often as it takes here.
  expect(await flow.complete(id)).toMatchObject({ failed: count - 1, succeeded: 1 });
  await expectReadable(flow, id, THROWS.length);
});

test.for(['throws', 'answers a promise that rejects with'])(
  'a function of backoff %s anything: the delay of the request is used',
  async (how, { flow }) => {
    const { lines, logger } = realLogger();
    const backoff = (_: number, __: unknown, { index }: { index: number }) => {
      const thrown = THROWS[index]!();
      if (how === 'throws') throw thrown;
      return Promise.reject(thrown) as never;
    };
    const throwing = () => {
      throw new Error('as usual');
    };
    const worker = await started(flow, throwing, { backoff, logger });
    const count = THROWS.length;
    const { id } = await flow.producer().submit(numbers(count), {
      ...{ task: 'hostile', limit: SLOTS, attempts: 2 },
      backoff: { type: 'custom', delayMs: 1 },
    });
    expect(await flow.complete(id)).toMatchObject({ failed: count });
    await expectAllSlots(flow, worker);
    expect(lines.filter((line) => line.includes('the backoff function'))).toHaveLength(1);
  },
);

test('a listener of the worker may throw and reject with anything', async ({ flow }) => {
  const { lines, logger } = realLogger();
  const worker = await started(flow, (i) => i, { logger });
  worker.on('settled', ({ index }) => {
    if (index < THROWS.length) throw THROWS[index]!();
  });
  worker.on('settled', (async ({ index }: { index: number }) => {
    if (index < THROWS.length) throw THROWS[index]!();
  }) as never);
  const count = THROWS.length;
  const { id } = await flow.producer().submit(numbers(count), { task: 'hostile', limit: SLOTS });
  expect(await flow.complete(id)).toMatchObject({ succeeded: count });
  const calls = () => lines.filter((line) => line.includes('a listener failed')).length;
  // Both, for each of `SLOTS` ordinary ones as well, would be more.
  await until(() => calls() === 2 * count);
  await expectAllSlots(flow, worker);
});

test('an item source may throw anything: the request is cancelled', async ({ flow }) => {
  const producer = flow.producer();
  for (const [kind, make] of Object.entries(hostileThrows)) {
    const ids = ['throws', 'rejects', 'value'].map((how) =>
      flow.id(`${how}.${THROWS.indexOf(make)}`),
    );
    const [throws, rejects, value] = ids as [string, string, string];
    const thrown = make();
    const sync = (function* () {
      yield 1;
      throw thrown;
    })();
    const late = (async function* () {
      yield 1;
      throw thrown;
    })();
    const faulty = {
      [Symbol.iterator]() {
        let n = 0;
        const next = () => ({
          done: false,
          get value() {
            n += 1;
            if (n > 1) throw thrown;
            return n;
          },
        });
        return { next };
      },
    };
    const failing = [
      producer.submit(sync, { id: throws }),
      producer.submit(late, { id: rejects }),
      producer.submit(faulty as never, { id: value }),
    ];
    for (const submitted of await Promise.allSettled(failing))
      expect(submitted, kind).toMatchObject({ reason: expect.any(SourceError) });
    for (const id of ids) expect(await flow.complete(id)).toMatchObject({ outcome: 'cancelled' });
  }
});

test('a source that throws when its iterator is requested is refused, and nothing is written', async ({
  flow,
}) => {
  const producer = flow.producer();
  for (const [kind, make] of Object.entries(hostileThrows)) {
    const id = flow.id(`iterator.${THROWS.indexOf(make)}`);
    const fails = () => {
      throw make();
    };
    const sources = [
      { [Symbol.iterator]: fails },
      { [Symbol.asyncIterator]: fails },
      Object.defineProperty({}, Symbol.iterator, { get: fails }),
      { [Symbol.iterator]: () => null },
      revoked(),
    ];
    for (const source of sources) {
      const error = await producer.submit(source as never, { id }).catch((it: unknown) => it);
      expect(error, kind).toBeInstanceOf(InvalidOptionError);
    }
    expect(await flow.connection.client.exists(flow.request(id).keys.request), kind).toBe(0);
  }
});

test('an iterator whose results throw when they are read cancels the request', async ({ flow }) => {
  const producer = flow.producer();
  const answers = [() => revoked(), () => Promise.resolve(revoked())];
  for (const [i, second] of answers.entries()) {
    const id = flow.id(`answers.${i}`);
    let n = 0;
    const next = () => (n++ === 0 ? { done: false, value: 1 } : second());
    const source = { [Symbol.iterator]: () => ({ next }) };
    const error = await producer.submit(source as never, { id }).catch((it: unknown) => it);
    expect(error).toBeInstanceOf(SourceError);
    expect(await flow.complete(id)).toMatchObject({ outcome: 'cancelled' });
  }
});

test('options that throw when they are read are refused', async ({ flow }) => {
  const get = () => {
    throw new Error('hands off');
  };
  const options: object[] = [
    null as never,
    'x' as never,
    [],
    revoked(),
    revoked([]),
    Object.defineProperty({}, 'id', { enumerable: true, get }),
  ];
  const producer = flow.producer();
  await using pw = new Piecework({ redis: flow.redis, queue: flow.queue });
  const queue = new RetryQueue<number>({ redis: flow.redis, name: flow.queue });
  flow.after(() => queue.close());
  for (const given of options) {
    const refused = [
      producer.submit([1], given),
      producer.open(given),
      pw.submit([1], given),
      pw.open(given),
      (async () => new Notifier(given as never))(),
      (async () => new RetryQueue(given as never))(),
      queue.put(1, given),
    ];
    for (const one of await Promise.allSettled(refused))
      expect(one).toMatchObject({ reason: expect.any(InvalidOptionError) });
  }
});

test('an item that is not JSON is refused, and the request is cancelled', async ({ flow }) => {
  const producer = flow.producer();
  for (const [kind, make] of Object.entries(hostileThrows)) {
    const thrown = make();
    const item = {
      toJSON() {
        throw thrown;
      },
    };
    const id = flow.id(`item.${THROWS.indexOf(make)}`);
    const stream = [1, item].values();
    const error = await producer.submit(stream, { id }).catch((it: unknown) => it);
    expect(error, kind).toBeInstanceOf(PayloadError);
    expect(await flow.complete(id)).toMatchObject({ outcome: 'cancelled' });
  }
});

test('a listener of a notifier may throw anything: waiting callers get their completion', async ({
  flow,
}) => {
  const { client } = flow.connection;
  const id = flow.id('awaited');
  const { request } = flow.request(id).keys;
  let calls = 0;
  const onError = () => {
    calls += 1;
    throw THROWS[calls % THROWS.length]!();
  };
  // No sweep comes to help.
  const notifier = new Notifier({
    redis: flow.redis,
    queue: flow.queue,
    sweepMs: 600_000,
    onError,
  });
  flow.after(() => notifier.close());
  // Its state cannot be read until it is put back, in one step: there is no moment without it.
  const kept = `${request}:kept`;
  await flow.producer().submit([], { id });
  await client.rename(request, kept);
  await client.sadd(request, 'no hash');
  const completion = notifier.completion(id);
  completion.catch(() => {});
  await until(() => calls >= 2);
  await client.rename(kept, request);
  expect(await completion).toMatchObject({ status: 'succeeded' });
});

describe('a retry queue', () => {
  timedTest('discards with anything', async ({ timed }) => {
    const queue = timed.retryQueue<number>();
    for (const i of numbers(2 * THROWS.length)) await queue.put(i);
    const stop = new AbortController();
    const consuming = queue.consume(
      (i) => {
        const thrown = THROWS[i >> 1]!();
        if (i % 2 === 0) throw thrown;
        return Promise.reject(thrown);
      },
      { maxFailures: 1, demand: SLOTS, signal: stop.signal },
    );
    await until(async () => (await queue.counts()).failures === 2 * THROWS.length);
    stop.abort();
    await consuming;
    for await (const { message } of queue.failures()) expect(message).toMatch(/./);
  });

  timedTest('takes the default when its function of delay answers no time', async ({ timed }) => {
    const queue = timed.retryQueue<number>();
    for (const i of numbers(THROWS.length)) await queue.put(i);
    const stop = new AbortController();
    let runs = 0;
    const consuming = queue.consume(
      () => {
        runs += 1;
        throw new Error('as usual');
      },
      {
        ...{ demand: SLOTS, signal: stop.signal },
        retryDelayMs: () => Promise.reject(THROWS[runs % THROWS.length]!()) as never,
      },
    );
    await until(() => runs >= THROWS.length);
    stop.abort();
    await consuming;
  });
});

/** Makes anything, some of whose parts throw when they are read, as fast-check would. */
const hostile: fc.Arbitrary<() => unknown> = fc
  .record({
    target: fc.constantFrom(
      () => new Error('as usual'),
      () => ({}),
      () => () => {},
      () => Object.create(null),
    ),
    // The stack first: Node puts it into words when it is replaced.
    getters: fc.subarray(['stack', 'name', 'message', 'cause', 'toString', 'toJSON', 'then']),
    traps: fc.subarray(['get', 'has', 'getPrototypeOf', 'ownKeys', 'getOwnPropertyDescriptor']),
    thrown: fc.anything(),
  })
  .map(({ target, getters, traps, thrown }) => {
    const fault = () => {
      throw thrown;
    };
    const object = target();
    for (const name of getters) Object.defineProperty(object, name, { get: fault });
    const proxy = new Proxy(object, Object.fromEntries(traps.map((trap) => [trap, fault])));
    return () => proxy;
  });

test('whatever is thrown is kept as an error of bounded length', () => {
  fc.assert(
    fc.property(hostile, (thrown) => {
      const { name, message, stack = '' } = JSON.parse(encodeError(thrown())) as KeptError;
      expect([typeof name, typeof message, typeof stack]).toEqual(['string', 'string', 'string']);
      expect(name.length).toBeLessThanOrEqual(128);
      expect(message.length).toBeLessThanOrEqual(1_024);
      expect(stack.length).toBeLessThanOrEqual(4_096);
    }),
  );
});
