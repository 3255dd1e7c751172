import {
  defineTask,
  JsonText,
  jsonText,
  PayloadError,
  Piecework,
  RequestExistsError,
  Worker,
} from 'piecework';
import { describe, expect } from 'vitest';
import { test } from '../support/flow.js';

/** Each is another text once it was parsed and written again. */
const TEXTS = [
  '3889108265204450030',
  '1.10',
  '{"a":1,"a":2}',
  ' [ 1.0,\n "\\u00e9\\ud800" ] ',
  `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
];
const textOf = (value: unknown) => (value instanceof JsonText ? value.text : typeof value);

describe('JSON text', () => {
  test('reaches a handler, the results and the failures byte for byte, where they ask for it', async ({
    flow,
  }) => {
    await using pw = new Piecework({ redis: flow.redis, queue: flow.queue });
    const request = await pw.submit(TEXTS.map(jsonText), { id: flow.id('a'), timing: true });
    const got: string[] = [];
    const worker = flow.worker({
      jsonText: true,
      handler: (payload: JsonText, { index }) => {
        got[index] = textOf(payload);
        if (index === 1) throw new Error('no');
        return payload;
      },
    });
    await worker.start();
    await request.completion();
    expect(got).toEqual(TEXTS);
    const successes = TEXTS.filter((_, index) => index !== 1);
    for (const order of ['index', 'completion'] as const) {
      const results: string[] = [];
      for await (const item of request.results({ order, jsonText: true }))
        if (item.status === 'succeeded') results.push(textOf(item.value));
      expect(results.sort()).toEqual([...successes].sort());
    }
    const failures: string[] = [];
    for await (const { payload } of request.failures({ jsonText: true }))
      failures.push(textOf(payload));
    expect(failures).toEqual(['1.10']);
    const [group] = await request.failureGroups({ jsonText: true });
    expect(textOf(group?.example.payload)).toBe('1.10');
  });

  test('is a parsed value for everybody else, also within another value and for a schema', async ({
    flow,
  }) => {
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) =>
          Array.isArray(value) ? { value } : { issues: [{ message: 'no array' }] },
      },
    };
    // biome-ignore lint/suspicious/noExplicitAny: a payload is a value or its text
    const task = defineTask<any, unknown>('arrays', { payload: schema });
    await using pw = new Piecework({ redis: flow.redis, queue: flow.queue });
    const items = [jsonText('[1.10]'), [jsonText('{"a":1.10}')]];
    await using worker = new Worker({
      redis: flow.redis,
      queue: flow.queue,
      handlers: [task.handler((value) => value)],
    });
    await worker.start();
    const request = await pw.submit(items, { task, id: flow.id('a') });
    await request.completion();
    const results: unknown[] = [];
    for await (const { value } of request.results({ order: 'index' })) results.push(value);
    expect(results).toEqual([[1.1], [{ a: 1.1 }]]);
    await expect(pw.submit([jsonText('{}')], { task })).rejects.toThrow('no array');
  });

  test('names an array of items, so that the same bytes are the same submission', async ({
    flow,
  }) => {
    await using pw = new Piecework({ redis: flow.redis, queue: flow.queue });
    const id = flow.id('a');
    const submit = (...texts: string[]) => pw.submit(texts.map(jsonText), { id });
    expect((await submit('1.10', '2')).created).toBe(true);
    expect((await submit('1.10', '2')).created).toBe(false);
    await expect(submit('1.1', '2')).rejects.toThrow(RequestExistsError);
  });

  test.for(['', '{', '[1,]', 'NaN', '1 2', '"\ud800"'])(
    'is refused when it is not JSON: %j',
    (text) => {
      expect(() => jsonText(text)).toThrow(PayloadError);
    },
  );
});
