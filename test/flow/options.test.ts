import { Producer, producerOptions, requestOptions, split } from '@piecework/producer';
import { InvalidOptionError, isAllowed, type OptionTable } from '@piecework/protocol';
import { Worker, workerOptions } from '@piecework/worker';
import { describe, expect } from 'vitest';
import { numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

/*
 * Wrong values for every option, generated from the option tables: of these, each option gets those
 * that its own schema refuses.
 */

const circular: Record<string, unknown> = {};
circular.self = circular;

const values: [string, unknown][] = [
  ['null', null],
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
  ['-1', -1],
  ['0', 0],
  ['1.5', 1.5],
  ['100', 100],
  ['2^53', 2 ** 53],
  ['300 million', 300_000_000],
  ['1e12', 1e12],
  ['a BigInt', 5n],
  ['a number as text', '5'],
  ['an empty text', ''],
  ['a text with a blank', 'a b'],
  ['a text with braces', 'a{b}'],
  ['a text with a line end', 'a\n'],
  ['a text with an umlaut', 'ä'],
  ['a text of 129 letters', 'x'.repeat(129)],
  ['true', true],
  ['false', false],
  ['an empty object', {}],
  ['an object that contains itself', circular],
  ['an object of 10 KB', { text: 'x'.repeat(10_000) }],
  ['an empty array', []],
  ['an array of text', ['a']],
  ['handlers without a function', [{ task: 'a', run: 1 }]],
  ['a function', () => 1],
  ['a symbol', Symbol('s')],
  ['a Date', new Date(0)],
];

function wrongFor(table: OptionTable): [string, string, unknown][] {
  return Object.entries(table).flatMap(([name, spec]) =>
    values
      .filter(([, value]) => !isAllowed(value, spec))
      .map(([what, value]): [string, string, unknown] => [name, what, value]),
  );
}

/** Runs `call`, which has to be refused for `field`. */
async function expectRefused(call: () => unknown, field: string, allowed?: string): Promise<void> {
  const error = await (async () => call())().then(
    () => 'not refused',
    (thrown) => thrown,
  );
  expect(error).toBeInstanceOf(InvalidOptionError);
  expect(error).toMatchObject({ code: 'INVALID_OPTION', field, retryable: false });
  if (allowed !== undefined) expect(error.allowed).toBe(allowed);
  expect(error.message).toContain(field);
  expect(error.message).toContain(error.allowed);
  expect(error.message.length).toBeLessThan(1_000);
}

describe('a wrong value', () => {
  test('is shown with its functions', async ({ flow }) => {
    const worker = (handlers: unknown) => () => flow.worker({ handlers } as never);
    const message = (shown: string) =>
      `handlers: ${shown} is not allowed; allowed: [defineTask(name).handler(fn), …], an array; one function for all tasks is the option \`handler\``;
    expect(worker({ a: () => 1 })).toThrow(message('{"a":a function}'));
    expect(worker([() => 1])).toThrow(message('[a function]'));
  });

  test('is known for every option', () => {
    for (const table of [requestOptions, producerOptions, workerOptions]) {
      const named = new Set(wrongFor(table).map(([name]) => name));
      expect([...named].sort()).toEqual(Object.keys(table).sort());
    }
  });

  test('of a request is refused, and nothing is written', async ({ flow }) => {
    const producer = flow.producer();
    for (const [name, , value] of wrongFor(requestOptions)) {
      const options = { [name]: value } as never;
      const { allowed } = requestOptions[name] as OptionTable[string];
      await expectRefused(() => producer.submit([1, 2], options), name, allowed);
      await expectRefused(() => producer.submit([], options), name, allowed);
      await expectRefused(() => producer.open(options), name, allowed);
    }
    expect(await flow.keys()).toEqual([]);
  });

  test('of a producer is refused', async ({ flow }) => {
    const { redis } = flow;
    for (const [name, , value] of wrongFor(producerOptions)) {
      await expectRefused(() => new Producer({ redis, [name]: value } as never), name);
    }
    expect(await flow.keys()).toEqual([]);
  });

  test('of a worker is refused', async ({ flow }) => {
    const { redis } = flow;
    const handler = () => 1;
    for (const [name, , value] of wrongFor(workerOptions)) {
      const options =
        name === 'handlers' ? { redis, handlers: value } : { redis, handler, [name]: value };
      await expectRefused(() => new Worker(options as never), name);
    }
    expect(await flow.keys()).toEqual([]);
  });

  test('of close is refused, and the worker continues', async ({ flow }) => {
    const worker = flow.worker({ handler: (n: number) => n });
    await worker.start();
    for (const timeoutMs of [-1, 1.5, Number.NaN, '5', null]) {
      await expectRefused(() => worker.close({ timeoutMs } as never), 'timeoutMs');
    }
    const { id } = await flow.producer().submit(numbers(3));
    await flow.complete(id);
  });
});

describe('where Redis is', () => {
  const ofCluster = (options: object) => ({ nodes: [{ host: 'localhost', port: 1 }], options });
  test.for<[string, unknown, string]>([
    ['a number', 5, 'redis'],
    ['an array', [], 'redis'],
    ['a text that is no URL', 'localhost:1234', 'redis'],
    ['another kind of URL', 'http://localhost', 'redis'],
    ['no nodes', { nodes: [] }, 'redis.nodes'],
    ['nodes that are no array', { nodes: 'a:1' }, 'redis.nodes'],
    ['a key prefix', { host: 'localhost', keyPrefix: 'x' }, 'redis.keyPrefix'],
    ['a cluster with a key prefix', ofCluster({ keyPrefix: 'x' }), 'redis.keyPrefix'],
    [
      'one with a key prefix for its nodes',
      ofCluster({ redisOptions: { keyPrefix: 'x' } }),
      'redis.keyPrefix',
    ],
    [
      'one whose replicas are read from',
      ofCluster({ scaleReads: 'slave' }),
      'redis.options.scaleReads',
    ],
  ])('is not %s', async ([, redis, field]) => {
    await expectRefused(() => new Producer({ redis } as never), field);
    await expectRefused(() => new Worker({ redis, handler: () => 1 } as never), field);
  });

  test('is refused before anything is connected when another option is wrong', async ({ flow }) => {
    const count = async () =>
      String(await flow.connection.client.client('LIST')).split('\n').length;
    const before = await count();
    const run = () => 1;
    const both = { redis: flow.redis, handler: run, handlers: [{ task: 'a', run }] };
    await expectRefused(() => new Worker(both), 'handler');
    await until(async () => (await count()) <= before);
  });
});

describe('an unknown or contradictory option', () => {
  test('is refused with the names that there are', async ({ flow }) => {
    const { redis } = flow;
    const producer = flow.producer();
    const handler = () => 1;
    for (const name of ['prioritty', 'constructor', '__proto__x', 'toString', '']) {
      await expectRefused(() => producer.submit([1], { [name]: 1 } as never), name);
      await expectRefused(() => producer.open({ [name]: undefined } as never), name);
      await expectRefused(() => new Producer({ redis, [name]: 1 } as never), name);
      await expectRefused(() => new Worker({ redis, handler, [name]: 1 } as never), name);
    }
    const error = (await producer
      .submit([], { limmit: 1 } as never)
      .catch((e) => e)) as InvalidOptionError;
    for (const name of Object.keys(requestOptions)) expect(error.allowed).toContain(name);
    for (const options of [null, 5, 'text', [], () => 1]) {
      await expectRefused(() => producer.submit([1], options as never), 'options');
    }
    expect(await flow.keys()).toEqual([]);
  });

  test('of handlers is refused', async ({ flow }) => {
    const { redis } = flow;
    const run = () => 1;
    // Without one its sub-requests are pulled, and nobody does.
    await expectRefused(() => flow.worker({}).start(), 'handler');
    await expectRefused(
      () => new Worker({ redis, handler: run, handlers: [{ task: 'a', run }] }),
      'handler',
    );
    for (const task of ['', 'a b', 'ä', 'x'.repeat(129)]) {
      await expectRefused(() => new Worker({ redis, handlers: [{ task, run }] }), 'handlers.task');
    }
    const twice = [
      { task: 'a', run },
      { task: 'a', run },
    ];
    await expectRefused(() => new Worker({ redis, handlers: twice }), 'handlers');
  });

  test('of a splitter is refused', async () => {
    const chunks = split.chunks([] as never, 0)[Symbol.asyncIterator]();
    await expectRefused(() => chunks.next(), 'size');
  });
});

test('the bounds themselves are allowed', async ({ flow }) => {
  const producer = flow.producer();
  const id = flow.id('x').padEnd(128, 'x');
  for (const options of [
    { id, priority: 0, limit: 1, window: 0, retentionMs: 1_000, producerLeaseMs: 1_000 },
    {
      id: flow.id('A-z_0.9:'),
      priority: 99,
      limit: 1_000_000,
      window: 1_000_000_000,
      metadata: null,
    },
    { id: flow.id('m'), metadata: 'x'.repeat(8_190), maxPayloadBytes: 1, task: 'T' },
  ]) {
    await producer.submit([1], options);
    expect(await flow.request(options.id).state()).toMatchObject({ status: 'sealed', total: 1 });
  }
});
