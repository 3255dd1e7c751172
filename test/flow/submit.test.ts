import { Readable } from 'node:stream';
import type { RequestOptions } from '@piecework/producer';
import {
  AbortError,
  PayloadError,
  RequestExistsError,
  SealedError,
  SourceError,
} from '@piecework/protocol';
import { describe, expect } from 'vitest';
import { type Flow, gate, mastersOf, numbers, test } from '../support/flow.js';
import { payloadsIn } from '../support/payloads.js';
import { interceptScripts } from '../support/script-calls.js';
import { until } from '../support/until.js';

/** What a request holds, in the order of its indexes; nobody may have worked on it. */
const payloadsOf = (flow: Flow, id: string): Promise<unknown[]> =>
  payloadsIn(flow.connection.client, flow.request(id).keys);

async function statusOf(flow: Flow, id: string): Promise<string | undefined> {
  return (await flow.request(id).state())?.status;
}

function* counting(to: number) {
  for (let i = 0; i < to; i += 1) yield i;
}
async function* countingSlowly(to: number) {
  for (let i = 0; i < to; i += 1) {
    if (i % 100 === 0) await new Promise(setImmediate);
    yield i;
  }
}

describe('submit', () => {
  test.for<[string, (n: number) => Parameters<ReturnType<Flow['producer']>['submit']>[0]]>([
    ['an array', (n) => numbers(n)],
    ['a Set', (n) => new Set(numbers(n))],
    ['a generator', counting],
    ['an async generator', countingSlowly],
    ['a web ReadableStream', (n) => ReadableStream.from(counting(n)) as ReadableStream<number>],
    ['a Node stream', (n) => Readable.from(counting(n))],
  ])('takes %s, in its order', async ([, source], { flow }) => {
    const submitted = await flow.producer().submit(source(1_234), {});
    expect(submitted.total).toBe(1_234);
    expect(await payloadsOf(flow, submitted.id)).toEqual(numbers(1_234));
    expect(await flow.request(submitted.id).state()).toMatchObject({
      status: 'sealed',
      total: 1_234,
      generation: submitted.generation,
    });
  });

  test.for<[string, () => Iterable<unknown> | AsyncIterable<unknown>]>([
    ['an empty array', () => []],
    ['an empty async source', () => countingSlowly(0)],
  ])('completes %s at once, without a worker', async ([, source], { flow }) => {
    const { id, total } = await flow.producer().submit(source());
    expect(total).toBe(0);
    expect(await flow.request(id).state()).toMatchObject({
      status: 'complete',
      outcome: 'succeeded',
    });
    expect(await flow.queueCommands.whereabouts(id)).toEqual({ endedAt: expect.any(Number) });
  });

  test('refuses what cannot be iterated, and writes nothing', async ({ flow }) => {
    for (const items of ['text', 5, null, undefined, {}, () => []]) {
      await expect(flow.producer().submit(items as never)).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        field: 'items',
      });
    }
    expect(await flow.keys()).toEqual([]);
  });

  test('takes an array of more text than a producer buffers, and recognises a repetition of it', async ({
    flow,
  }) => {
    const items = numbers(40).map((i) => `${i} ${'x'.repeat(1_000_000)}`);
    const submitted = await flow.producer().submit(items, { id: flow.id('large') });
    expect(await flow.producer().submit(items, { id: submitted.id })).toEqual({
      ...submitted,
      created: false,
    });
    const payloads = await payloadsOf(flow, submitted.id);
    expect(payloads.map((payload) => Number.parseInt(String(payload), 10))).toEqual(numbers(40));
    expect(payloads.at(-1)).toBe(items.at(-1));
  });

  test('sends big payloads in chunks of their own', async ({ flow }) => {
    const big = 'x'.repeat(400_000);
    const { id } = await flow.producer().submit(numbers(12).map((n) => `${n} ${big}`));
    expect(await payloadsOf(flow, id)).toEqual(numbers(12).map((n) => `${n} ${big}`));
  });
});

describe('the window', () => {
  test('bounds the unsettled sub-requests, also behind a slow one', async ({ flow }) => {
    const straggler = gate();
    const worker = flow.worker({
      concurrency: 5,
      handler: async (payload: number) => {
        if (payload === 3) await straggler.opened;
        return payload;
      },
    });
    await worker.start();
    const id = flow.id('window');
    const seen: number[] = [];
    const window = 20;
    const watch = setInterval(async () => {
      const state = await flow.request(id).state();
      if (state) seen.push(state.total - state.succeeded);
    }, 1);
    flow.after(() => clearInterval(watch));
    const submitting = flow.producer().submit(counting(2_000), { id, window, limit: 5 });
    await submitting;
    // All but the straggler and what the window holds is done, though number 3 is not.
    await until(async () => (await flow.request(id).state())?.succeeded === 1_999);
    straggler.open();
    await flow.complete(id);
    expect(Math.max(...seen)).toBeLessThanOrEqual(window);
    expect(Math.max(...seen)).toBeGreaterThan(window / 2);
    expect((await flow.results(id)).size).toBe(2_000);
  });

  test('makes the source wait, which costs next to nothing', { tags: 'own-server' }, async ({
    flow,
  }) => {
    let read = 0;
    const source = function* () {
      for (; read < 1_000; read += 1) yield { n: read, ballast: 'x'.repeat(10_000) };
    };
    const id = flow.id('waiting');
    const submitting = flow.producer().submit(source(), { id, window: 40 });
    await until(async () => (await flow.request(id).state())?.total === 40);
    const calls = async (times: number) => {
      const before = await traffic(flow);
      await until(async () => (await traffic(flow)).calls >= before.calls + times, {
        what: `${times} calls while the producer waits`,
      });
      return before;
    };
    // The chunk that finds no room may still be on its way.
    await until(async () => {
      const { bytes } = await calls(5);
      return (await traffic(flow)).bytes - bytes < 50_000;
    });
    const before = await calls(20);
    const after = await traffic(flow);
    // It asks for room by a small call; it does not send its chunk of 100 KB again and again. (A
    // server that sees the script for the first time is sent its text, and replicas talk too.)
    expect((after.bytes - before.bytes) / (after.calls - before.calls)).toBeLessThan(10_000);
    expect(read).toBeLessThan(40 + 5 * 10 + 1);
    await flow.worker({ handler: () => 'done', concurrency: 20 }).start();
    await submitting;
    await flow.complete(id);
  });

  test('gives up waiting when the signal aborts', async ({ flow }) => {
    const controller = new AbortController();
    const id = flow.id('given-up');
    const options = { id, window: 8, signal: controller.signal };
    const submitting = flow.producer().submit(counting(1_000), options);
    await until(async () => (await flow.request(id).state())?.total === 8);
    controller.abort();
    await expect(submitting).rejects.toBeInstanceOf(AbortError);
    expect(await flow.complete(id)).toMatchObject({ outcome: 'cancelled', cancelled: 8 });
  });
});

/** Bytes and commands that came in; the questions of this test are among them. */
async function traffic(flow: Flow): Promise<{ bytes: number; calls: number }> {
  const sums = { bytes: 0, calls: 0 };
  for (const master of mastersOf(flow.connection)) {
    const info = await master.info('stats');
    sums.bytes += Number(/total_net_input_bytes:(\d+)/.exec(info)?.[1]);
    sums.calls += Number(/total_commands_processed:(\d+)/.exec(info)?.[1]);
  }
  return sums;
}

describe('a source that fails', () => {
  const boom = new Error('boom');

  test('at its first item leaves nothing behind', async ({ flow }) => {
    const source = {
      [Symbol.iterator]: () => ({
        next: () => {
          throw boom;
        },
      }),
    };
    await expect(flow.producer().submit(source as Iterable<number>)).rejects.toBe(boom);
    expect(await flow.keys()).toEqual([]);
  });

  test('half-way has the request cancelled', async ({ flow }) => {
    const id = flow.id('half-way');
    const source = async function* () {
      yield* counting(750);
      throw boom;
    };
    const error = await flow
      .producer()
      .submit(source(), { id })
      .catch((thrown) => thrown);
    expect(error).toBeInstanceOf(SourceError);
    expect(error).toMatchObject({ requestId: id, cause: boom, code: 'SOURCE' });
    expect(error.message).toBe(
      `the item source failed: ${boom.message}; request ${id} was cancelled`,
    );
    expect(await flow.complete(id)).toMatchObject({ outcome: 'cancelled', succeeded: 0 });
  });

  test("half-way with 'leaveOpen' keeps what was read, and other producers can continue", async ({
    flow,
  }) => {
    const source = function* () {
      yield* counting(10);
      throw boom;
    };
    const options: RequestOptions = { id: flow.id('left-open'), onSourceError: 'leaveOpen' };
    await expect(flow.producer().submit(source(), options)).rejects.toBeInstanceOf(SourceError);
    expect(await flow.request(flow.id('left-open')).state()).toMatchObject({
      status: 'open',
      total: 10,
    });
    const open = await flow.producer().open(options);
    await open.append(10);
    await open.seal();
    expect(await payloadsOf(flow, flow.id('left-open'))).toEqual(numbers(11));
  });

  test('is closed when it is not read to its end', async ({ flow }) => {
    const returned: string[] = [];
    const source = function* (name: string, items: unknown[]) {
      try {
        yield* items;
      } finally {
        returned.push(name);
      }
    };
    const first = await flow.producer().submit([1], { id: flow.id('taken') });
    const producer = flow.producer();
    await expect(
      producer.submit(source('exists', [1, 2]), { id: flow.id('taken'), limit: 3 }),
    ).rejects.toThrow();
    expect(await producer.submit(source('is in', [1, 2]), { id: flow.id('taken') })).toEqual({
      ...first,
      created: false,
    });
    await expect(producer.submit(source('bad first', [undefined, 2]))).rejects.toThrow();
    await expect(producer.submit(source('bad second', [1, undefined, 3]))).rejects.toThrow();
    expect(returned).toEqual(['exists', 'is in', 'bad first', 'bad second']);
  });
});

describe('a payload that cannot be sent', () => {
  const circular: unknown[] = [];
  circular.push(circular);
  const cases: [string, unknown][] = [
    ['a BigInt', 1n],
    ['undefined', undefined],
    ['a function', () => 1],
    ['a circular value', circular],
    ['one that is too large', 'ä'.repeat(600)],
  ];

  test.for(cases)(
    '%s in an array is refused before anything is written',
    async ([, bad], { flow }) => {
      const submitting = flow.producer().submit([1, 2, bad, 4], { maxPayloadBytes: 1_000 });
      await expect(submitting).rejects.toBeInstanceOf(PayloadError);
      expect(await flow.keys()).toEqual([]);
    },
  );

  test.for(cases)(
    '%s half-way in a stream has the request cancelled',
    async ([, bad], { flow }) => {
      const source = async function* () {
        yield* counting(3);
        yield bad;
      };
      const options = { id: flow.id('bad'), maxPayloadBytes: 1_000 };
      await expect(flow.producer().submit(source(), options)).rejects.toBeInstanceOf(PayloadError);
      expect(await flow.complete(flow.id('bad'))).toMatchObject({ outcome: 'cancelled' });
    },
  );

  test('is measured in bytes, and the bound itself is allowed', async ({ flow }) => {
    // Two quotation marks and 499 letters of two bytes.
    const { id } = await flow.producer().submit(['ä'.repeat(499)], { maxPayloadBytes: 1_000 });
    expect(await payloadsOf(flow, id)).toEqual(['ä'.repeat(499)]);
  });
});

describe('an id that is taken', () => {
  test('by a request that is open', async ({ flow }) => {
    const producer = flow.producer();
    await producer.submit([1, 2], { id: flow.id('taken') });
    const error = await producer.submit([3], { id: flow.id('taken') }).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(RequestExistsError);
    expect(error).toMatchObject({ requestId: flow.id('taken'), status: 'sealed' });
    expect(await payloadsOf(flow, flow.id('taken'))).toEqual([1, 2]);
  });

  test('by one that is complete and kept', async ({ flow }) => {
    const producer = flow.producer();
    await producer.submit([], { id: flow.id('kept') });
    await expect(producer.submit([3], { id: flow.id('kept') })).rejects.toMatchObject({
      status: 'complete',
    });
    expect(await flow.request(flow.id('kept')).state()).toMatchObject({
      total: 0,
      outcome: 'succeeded',
    });
    expect((await flow.queueCommands.whereabouts('kept')).open).toBeUndefined();
  });

  test('is free again once it was dropped', async ({ flow }) => {
    const producer = flow.producer();
    const first = await producer.submit([1], { id: flow.id('again') });
    const dropped = await flow.request(flow.id('again')).drop();
    expect(dropped).toMatchObject({ verdict: 'dropped', generation: first.generation });
    await flow.queueCommands.finish(flow.id('again'), first.generation, 'dropped');
    const second = await producer.submit([2], { id: flow.id('again') });
    expect(second.generation).toBeGreaterThan(first.generation);
    expect(await payloadsOf(flow, flow.id('again'))).toEqual([2]);
  });

  test('goes to one of many who submit it at once', async ({ flow }) => {
    const producers = numbers(8).map(() => flow.producer());
    const all = await Promise.allSettled(
      producers.map((producer, n) =>
        producer.submit(numbers(600, n * 1_000), { id: flow.id('race') }),
      ),
    );
    const winners = all.flatMap((one, n) => (one.status === 'fulfilled' ? [n] : []));
    expect(winners).toHaveLength(1);
    for (const one of all) {
      if (one.status === 'rejected') expect(one.reason).toBeInstanceOf(RequestExistsError);
    }
    expect(await payloadsOf(flow, flow.id('race'))).toEqual(
      numbers(600, (winners[0] ?? 0) * 1_000),
    );
  });
});

describe('the signal', () => {
  test('that is aborted before has nothing written', async ({ flow }) => {
    const signal = AbortSignal.abort(new Error('too late'));
    await expect(flow.producer().submit([1, 2], { signal })).rejects.toBeInstanceOf(AbortError);
    await expect(flow.producer().submit([], { signal })).rejects.toBeInstanceOf(AbortError);
    expect(await flow.keys()).toEqual([]);
  });

  test('that aborts before a small array is sent has nothing written', async ({ flow }) => {
    const producer = flow.producer({ redis: flow.connection });
    const controller = new AbortController();
    const { signal } = controller;
    const submitting = ['one', 'two'].map((id) =>
      producer.submit([1, 2], { id: flow.id(id), signal }),
    );
    controller.abort();
    for (const one of submitting) await expect(one).rejects.toBeInstanceOf(AbortError);
    expect(await flow.keys()).toEqual([]);
  });

  test('that aborts half-way has the request cancelled and the source closed', async ({ flow }) => {
    const controller = new AbortController();
    let closed = false;
    const source = async function* () {
      try {
        for (let i = 0; ; i += 1) {
          if (i === 600) controller.abort();
          yield i;
        }
      } finally {
        closed = true;
      }
    };
    const submitting = flow
      .producer()
      .submit(source(), { id: flow.id('off'), signal: controller.signal });
    await expect(submitting).rejects.toBeInstanceOf(AbortError);
    await until(() => closed);
    expect(await flow.complete(flow.id('off'))).toMatchObject({ outcome: 'cancelled' });
  });

  test('ends a submission whose source never answers again', async ({ flow }) => {
    const controller = new AbortController();
    const source = async function* () {
      yield 1;
      await new Promise(() => {});
    };
    const options = {
      id: flow.id('silent'),
      signal: controller.signal,
      onSourceError: 'leaveOpen',
    } as const;
    const submitting = flow.producer().submit(source(), options);
    await until(async () => (await statusOf(flow, flow.id('silent'))) === 'open');
    controller.abort();
    await expect(submitting).rejects.toBeInstanceOf(AbortError);
    expect(await statusOf(flow, flow.id('silent'))).toBe('open');
  });
});

describe('chunks', () => {
  test('that are sent twice add nothing twice', async ({ flow }) => {
    const restore = sendTwice(flow);
    try {
      const shared = flow.producer({ redis: flow.connection });
      const { id, total } = await shared.submit(counting(5_300));
      expect(total).toBe(5_300);
      restore();
      expect(await payloadsOf(flow, id)).toEqual(numbers(5_300));
      await flow.worker({ concurrency: 50, handler: (n: number) => n }).start();
      expect(await flow.complete(id)).toMatchObject({ succeeded: 5_300, total: 5_300 });
      expect((await flow.results(id)).size).toBe(5_300);
    } finally {
      restore();
    }
  });

  test('are refused after a cancel, and the submission throws that', async ({ flow }) => {
    const held = gate();
    const source = async function* () {
      yield* counting(600);
      await held.opened;
      yield* counting(10);
    };
    const submitting = flow.producer().submit(source(), { id: flow.id('cancelled') });
    const generation = await until(async () => {
      const state = await flow.request(flow.id('cancelled')).state();
      return state?.total === 500 && state.generation;
    });
    const cancelled = await flow.request(flow.id('cancelled')).cancel(generation);
    expect(cancelled.verdict).toBe('complete');
    await flow.queueCommands.finish(flow.id('cancelled'), generation, 'cancelled');
    held.open();
    await expect(submitting).rejects.toBeInstanceOf(SealedError);
    expect(await flow.request(flow.id('cancelled')).state()).toMatchObject({
      outcome: 'cancelled',
    });
  });

  test('that Redis refuses fail the submission, which can be repeated', async ({ flow }) => {
    const { client } = flow.connection;
    const end = interceptScripts(client, async (call, send) => {
      // The only script here whose three keys end with what is due is append.
      if (call[1] === '3' && call[4] === flow.request(flow.id('full')).keys.due) {
        throw new Error("OOM command not allowed when used memory > 'maxmemory'");
      }
      return send();
    });
    const producer = flow.producer({ redis: flow.connection });
    // Too small a window to send all at once.
    const options = { id: flow.id('full'), unavailableMs: 100, window: 11 };
    await expect(producer.submit([1, 2, 3], options)).rejects.toMatchObject({ code: 'FULL' });
    end();
    expect(await statusOf(flow, flow.id('full'))).toBe('open');
    expect(await producer.submit([1, 2, 3], options)).toMatchObject({ total: 3 });
    expect(await payloadsOf(flow, flow.id('full'))).toEqual([1, 2, 3]);
  });
});

/** Has every script call of the shared connection arrive twice. Answers how to end that. */
function sendTwice(flow: Flow): () => void {
  return interceptScripts(flow.connection.client, async (_, send) => {
    const [reply] = await Promise.all([send(), send()]);
    return reply;
  });
}
