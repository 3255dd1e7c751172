import { setTimeout as sleep } from 'node:timers/promises';
import {
  DelayedTasks,
  defineTask,
  InvalidOptionError,
  PayloadError,
  Piecework,
  split,
} from 'piecework';
import { describe, expect } from 'vitest';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { payloadsIn } from '../support/payloads.js';
import { until } from '../support/until.js';

interface Deed {
  readonly n: number;
}

type Issue = { message: string; path: string[] };
type Validated = { value: Deed } | { issues: Issue[] };

/** A schema of numbers as any library makes one, which answers at once or in its own time. */
const schemaOf = (slowly?: (n: unknown) => Promise<unknown>) => ({
  '~standard': {
    version: 1 as const,
    vendor: 'test',
    validate: (value: unknown): Validated | Promise<Validated> => {
      const { n } = value as { n: unknown };
      const validated: Validated =
        typeof n === 'number'
          ? { value: value as Deed }
          : { issues: [{ message: 'not a number', path: ['n'] }] };
      return slowly ? slowly(n).then(() => validated) : validated;
    },
  },
});

/** A schema of `{ at }`, which may be left out and has to be a Date once `coerced`. */
const atOf = (coerced: (at: unknown) => unknown) => ({
  '~standard': {
    version: 1 as const,
    vendor: 'test',
    validate: (value: unknown): { value: { at?: Date } } | { issues: Issue[] } => {
      const { at } = value as { at?: unknown };
      if (at === undefined) return { value: {} };
      const made = coerced(at);
      return made instanceof Date
        ? { value: { at: made } }
        : { issues: [{ message: 'no date', path: ['at'] }] };
    },
  },
});

const schemaOfAnything = {
  '~standard': {
    version: 1 as const,
    vendor: 'test',
    validate: (value: unknown) => ({ value }),
  },
};

function piecework(flow: Flow): Piecework {
  const pw = new Piecework({ redis: flow.redis, queue: flow.queue });
  flow.after(() => pw.close());
  return pw;
}

const deeds = (n: number, from = 0): Deed[] => numbers(n, from).map((one) => ({ n: one }));
const wrong = { n: 'a' } as unknown as Deed;

async function thrownBy(call: Promise<unknown>): Promise<PayloadError> {
  const error = await call.then(
    () => expect.fail('not refused'),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(PayloadError);
  return error as PayloadError;
}

const payloadsOf = (flow: Flow, id: string): Promise<unknown[]> =>
  payloadsIn(flow.connection.client, flow.request(id).keys);

test('a submission that is aborted has the reason of the signal as its cause', async ({ flow }) => {
  const pw = piecework(flow);
  const messageOf = async (reason?: unknown) => {
    const signal = AbortSignal.abort(reason);
    const error: unknown = await pw.submit([1], { signal }).catch((thrown) => thrown);
    expect(error).toMatchObject({ name: 'AbortError', code: 'ABORTED', cause: signal.reason });
    return (error as Error).message;
  };
  expect(await messageOf(new Error('enough'))).toBe('submission: aborted: enough');
  expect(await messageOf('the user left')).toBe('submission: aborted: the user left');
  expect(await messageOf()).toBe('submission: aborted');
});

test('a handle takes its task, or the name of one', async ({ flow }) => {
  const pw = piecework(flow);
  const task = defineTask<number, number>('any');
  const { id } = await pw.submit([1], { task });
  for (const one of [task, 'any', undefined])
    expect(await pw.request(id, { task: one }).status()).toMatchObject({ task: 'any' });
  expect(() => pw.request(id, { task: {} as never })).toThrow(InvalidOptionError);
  expect(() => pw.request(id, { tusk: task } as never)).toThrow(InvalidOptionError);
  await pw.request(id).cancel();
});

describe('an item that is no payload', () => {
  test('of an array is named by its index, before anything is written', async ({ flow }) => {
    const items: unknown[] = numbers(5_000);
    items[4_321] = 1n;
    const error = await thrownBy(piecework(flow).submit(items));
    expect(error.index).toBe(4_321);
    expect(error.message).toMatch(/^item 4321: payload cannot be encoded as JSON: .*BigInt/);
    items[4_321] = undefined;
    expect(await thrownBy(piecework(flow).submit(items))).toMatchObject({
      index: 4_321,
      message: 'item 4321: payload cannot be encoded as JSON: it is undefined',
    });
    items[4_321] = 'x'.repeat(11);
    const small = piecework(flow).submit(items, { maxPayloadBytes: 10 });
    expect(await thrownBy(small)).toMatchObject({
      index: 4_321,
      message: 'item 4321: payload has 13 bytes; allowed: 10 (maxPayloadBytes)',
    });
    expect(await flow.keys()).toEqual([]);
  });

  test.for([
    ['a promise', () => Promise.resolve(1), /it is a promise; await it first/],
    // biome-ignore lint/suspicious/noThenProperty: what is to be refused.
    ['a thenable', () => ({ state: 1, then() {} }), /it is a promise; await it first/],
    ['a Map', () => new Map([[1, 2]]), /it is a Map; spread it into an array/],
    ['a Set', () => new Set([1]), /it is a Set; spread it into an array/],
    ['an iterator', () => [1].values(), /it is an iterable; spread it/],
    ['an async generator', () => (async function* () {})(), /it is an async iterable; gather it/],
    ['an Error', () => new Error('x'), /it is an Error; throw it/],
    ['NaN', () => Number.NaN, /it is NaN; use null or a text/],
    ['-Infinity', () => -Infinity, /it is -Infinity; use null or a text/],
    ['an invalid Date', () => new Date('x'), /it is an invalid Date; use null/],
    ['nested NaN', () => ({ id: 1, n: Number.NaN }), /JSON: \.n is NaN; use null/],
    ['a nested Map', () => ({ a: [null, { m: new Map() }] }), /: \.a\[1\]\.m is a Map; spread it/],
    ['a nested Set', () => [{}, new Set([1])], /: \[1\] is a Set; spread it/],
    ['a nested function', () => ({ id: 1, f: () => 1 }), /: \.f is a function; leave it out/],
    ['a nested symbol', () => ({ 'a b': Symbol('s') }), /: \["a b"\] is a symbol; leave it out/],
    ['a nested Error', () => ({ e: new Error('x') }), /: \.e is an Error; throw it/],
    ['a nested promise', () => ({ p: Promise.resolve(1) }), /: \.p is a promise; await it/],
    ['a nested RegExp', () => ({ r: /x/ }), /: \.r is a RegExp; use its source/],
  ] as const)(
    'as %s, of which nothing would be kept, is refused',
    async ([, item, why], { flow }) => {
      const pw = piecework(flow);
      const error = await thrownBy(pw.submit([0, item()]));
      expect(error.index).toBe(1);
      expect(error.message).toMatch(why);
      expect(await flow.keys()).toEqual([]);
      const open = await pw.open({ id: flow.id('open') });
      expect((await thrownBy(open.append(item()))).message).toMatch(why);
      await open.append({}, null, 0, { toJSON: () => ({}) }, new Date(0), []);
      await open.seal();
      const payloads = await payloadsOf(flow, open.id);
      expect(payloads).toEqual([{}, null, 0, {}, '1970-01-01T00:00:00.000Z', []]);
      await open.cancel();
    },
  );

  test('that its schema refuses in the form of JSON is refused before it is submitted', async ({
    flow,
  }) => {
    const pw = piecework(flow);
    const date = defineTask('date', { payload: atOf((at) => at) });
    const coerced = defineTask('coerced', { payload: atOf((at) => new Date(at as Date)) });
    const anything = defineTask('any', { payload: schemaOfAnything });
    const at = new Date(5);
    const refusal = {
      index: 1,
      message: expect.stringMatching(
        /^item 1: payload\.at: no date; payloads travel as JSON, .* z\.coerce\.date\(\)/,
      ),
    };
    expect(await thrownBy(pw.submit([{}, { at }], { task: date }))).toMatchObject(refusal);
    expect(await thrownBy(pw.submit([{ at: new Map() }], { task: anything }))).toMatchObject({
      message: expect.stringMatching(/^item 0: payload cannot .* \.at is a Map/),
    });
    expect(await flow.keys()).toEqual([]);
    const open = await pw.open({ task: date, id: flow.id('open') });
    expect(await thrownBy(open.append({}, { at }))).toMatchObject(refusal);
    await open.append({});
    await open.cancel();
    const request = await pw.submit([{ at }], { task: coerced, id: flow.id('coerced') });
    const handlers = [coerced.handler((payload) => payload.at?.getTime())];
    await flow.worker({ handlers }).start();
    await request.completion();
    expect((await flow.results(request.id)).get(0)).toBe(5);
  });

  test('is accepted if JSON keeps all of it, whatever its type', async ({ flow }) => {
    const pw = piecework(flow);
    class Empty {}
    const inherited = Object.create({ method: () => 1 });
    let deep: unknown = 'bottom';
    for (let i = 0; i < 1_000; i += 1) deep = { deep };
    const fine = [
      ...[
        { a: {}, b: null, c: [], d: [null, {}], e: undefined },
        { at: new Date(0) },
        ['null', '{}'],
      ],
      ...[{ empty: new Empty() }, { inherited }, { bytes: new Uint8Array() }, [undefined], deep],
    ];
    const request = await pw.submit(fine, { id: flow.id('fine') });
    expect(await payloadsOf(flow, request.id)).toEqual(JSON.parse(JSON.stringify(fine)));
    await request.cancel();
  });

  test('is no result either, and the error says what to do', async ({ flow }) => {
    const pw = piecework(flow);
    const results = [new Map([[1, 2]]), Number.NaN, Promise.resolve('awaited')];
    await flow.worker({ handler: (n: number) => results[n] as never }).start();
    const request = await pw.submit(numbers(3), { id: flow.id('results') });
    await request.completion();
    const said: unknown[] = [];
    for await (const { error } of request.failures()) said.push(`${error.name}: ${error.message}`);
    expect(said).toEqual([
      expect.stringMatching(/^PayloadError: result cannot .* it is a Map; spread it/),
      expect.stringMatching(/^PayloadError: result cannot .* it is NaN/),
    ]);
    expect((await flow.results(request.id)).get(2)).toBe('awaited');
  });

  test('of a stream is named by its index, and the request is cancelled', async ({ flow }) => {
    async function* items() {
      yield* numbers(1_200);
      yield 1n;
    }
    const id = flow.id('stream');
    expect((await thrownBy(piecework(flow).submit(items(), { id }))).index).toBe(1_200);
    await flow.complete(id);
    expect(await flow.request(id).state()).toMatchObject({ outcome: 'cancelled' });
  });

  test('by the schema of the task is named by its index, too', async ({ flow }) => {
    const task = defineTask('deed', { payload: schemaOf() });
    const items = [...deeds(3), wrong];
    const expected = { index: 3, message: 'item 3: payload.n: not a number' };
    expect(await thrownBy(piecework(flow).submit(items, { task }))).toMatchObject(expected);
    async function* stream() {
      yield* items;
    }
    const id = flow.id('stream');
    expect(await thrownBy(piecework(flow).submit(stream(), { task, id }))).toMatchObject(expected);
    expect(await flow.complete(id)).toMatchObject({ outcome: 'cancelled' });
  });

  test('of a file is named by its line, as before', async ({ flow }) => {
    const { Readable } = await import('node:stream');
    const lines = split.ndjson(Readable.from(['1\n2\n{\n']));
    const error = await thrownBy(piecework(flow).submit(lines));
    expect(error.message).toMatch(/^line 3 is not JSON/);
    expect(error.index).toBeUndefined();
    for await (const { id } of piecework(flow).admin.list({ state: 'all' }))
      await flow.complete(id);
  });

  test('of a task with arguments is called an argument', async ({ flow }) => {
    const tasks = new DelayedTasks({ redis: flow.redis });
    flow.after(() => tasks.close());
    const error = await thrownBy(tasks.executeLater(flow.queue, 'mail', [1n]));
    expect(error.message).toMatch(/^payload cannot be encoded as JSON/);
    expect(await flow.keys()).toEqual([]);
  });
});

describe('a task', () => {
  test('refuses what is no task, or has no items to check', async ({ flow }) => {
    const pw = new Piecework({ redis: flow.redis, queue: flow.queue });
    flow.after(() => pw.close());
    for (const task of [{}, { handler: () => {} }, Promise.resolve(1)])
      await expect(pw.submit([1], { task } as never)).rejects.toMatchObject({ field: 'task' });
    const task = defineTask('checked', { payload: schemaOf() });
    const items = { items: [1] };
    await expect(pw.submit(items as never, { task })).rejects.toMatchObject({ field: 'items' });
  });

  test('refuses an option that it does not know, and a schema that is none', () => {
    const refused = (options: unknown) => () => defineTask('deed', options as never);
    const schema = schemaOf();
    for (const [options, says] of [
      [{ schema }, /^schema: no such option; options: payload$/],
      [{ payoad: schema }, /^payoad: no such option; did you mean payload\? options: payload$/],
      [schema, /no such option; options: payload$/],
      [{ payload: { parse: () => 1 } }, /^payload: .*; allowed: a schema that speaks Standard/],
      [{ payload: null }, /^payload: null is not allowed/],
      [null, /^options: null is not allowed; allowed: an object$/],
    ] as const) {
      expect(refused(options)).toThrow(InvalidOptionError);
      expect(refused(options)).toThrow(says);
    }
    const callable = Object.assign(() => {}, schema);
    for (const good of [{}, { payload: undefined }, { payload: callable }])
      expect(refused(good)).not.toThrow();
  });
});

describe('an open request of a task', () => {
  test('checks appended items, names the wrong one, and takes the others', async ({ flow }) => {
    const task = defineTask('deed', { payload: schemaOf() });
    const open = await piecework(flow).open({ task, id: flow.id('open') });
    await open.append(...deeds(2));
    expect(await thrownBy(open.append({ n: 2 }, wrong))).toMatchObject({
      index: 1,
      message: 'item 1: payload.n: not a number',
    });
    await open.append(...deeds(2, 3));
    await open.seal();
    expect(await payloadsOf(flow, open.id)).toEqual([...deeds(2), ...deeds(2, 3)]);
    await piecework(flow).request(open.id).cancel();
    await flow.complete(open.id);
  });

  test('keeps the order if checks are asynchronous, and seals after them', async ({ flow }) => {
    const first = gate();
    const slowly = async (n: unknown) => {
      await (n === 0 ? first.opened : sleep(0));
    };
    const task = defineTask('deed', { payload: schemaOf(slowly) });
    const open = await piecework(flow).open({ task, id: flow.id('open') });
    const appending = [open.append(...deeds(1)), open.append(...deeds(2, 1))];
    const refused = thrownBy(open.append(wrong));
    const last = open.append({ n: 3 });
    const sealing = open.seal();
    await refused;
    expect(open.appended).toBe(0);
    first.open();
    await Promise.all([...appending, last, sealing]);
    expect(await payloadsOf(flow, open.id)).toEqual(deeds(4));
    await piecework(flow).request(open.id).cancel();
    await flow.complete(open.id);
  });
});

describe('a submission says whether it made the request', () => {
  test('for an id, also when several ask at the same time', async ({ flow }) => {
    const submit = (items: unknown[], id: string) => piecework(flow).submit(items, { id });
    // What fits into one round trip, and what does not.
    for (const [name, size] of [
      ['small', 5],
      ['large', 1_200],
    ] as const) {
      const id = flow.id(name);
      const crowd = await Promise.all(numbers(6).map(() => submit(numbers(size), id)));
      expect(crowd.filter(({ created }) => created)).toHaveLength(1);
      expect((await submit(numbers(size), id)).created).toBe(false);
      await piecework(flow).request(id).drop();
      await until(async () => !(await flow.queueCommands.whereabouts(id)).open);
      expect((await submit(numbers(size), id)).created).toBe(true);
    }
    expect((await piecework(flow).submit([1])).created).toBe(true);
  });

  test('for a key of deduplication', async ({ flow }) => {
    const key = `${flow.queue}.key`;
    flow.after(() => flow.connection.client.unlink(flow.queueCommands.keys.dedupe(key)));
    const submit = () => piecework(flow).submit([1, 2], { dedupe: { key } });
    const crowd = await Promise.all(numbers(6).map(submit));
    expect(crowd.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(crowd.map(({ id }) => id)).size).toBe(1);
    expect((await submit()).created).toBe(false);
  });

  test('for a stream, and for a request that is opened', async ({ flow }) => {
    const id = flow.id('stream');
    async function* items() {
      yield* numbers(3);
    }
    const submit = () => piecework(flow).submit(items(), { id });
    expect((await submit()).created).toBe(true);
    expect((await submit()).created).toBe(false);
    const open = () => piecework(flow).open({ id: flow.id('open') });
    expect((await open()).handle.created).toBe(true);
    const joined = await open();
    expect([joined.handle.created, joined.joined]).toEqual([false, true]);
    await joined.cancel();
  });
});
