/**
 * The events of a request and of a queue, for whoever asks for them: bounded, and continued by a cursor.
 */
import type { Redis } from 'ioredis';
import {
  AbortError,
  DroppedError,
  InvalidOptionError,
  Piecework,
  type QueueEvent,
  type QueueEventsOptions,
  type RequestEvent,
  type RequestHandle,
} from 'piecework';
import { describe, expect } from 'vitest';
import { type Flow, gate, numbers, test } from '../support/flow.js';

function pieceworkOf(flow: Flow): Piecework {
  const pw = new Piecework({ redis: flow.redis, queue: flow.queue });
  flow.after(() => pw.close());
  return pw;
}

const SPARSE = { progressMs: 0 } as const;

async function all(events: AsyncIterable<RequestEvent>): Promise<RequestEvent[]> {
  const list: RequestEvent[] = [];
  for await (const event of events) list.push(event);
  return list;
}

const inShort = (events: readonly RequestEvent[]) =>
  events.map((event) => `${event.type} ${'index' in event ? event.index : ''}`.trim());

/** Reads events of another process, so to say, behind `cursor`. */
const behind = (flow: Flow, request: RequestHandle, cursor: string) =>
  all(
    pieceworkOf(flow)
      .request(request.id)
      .events({ ...SPARSE, cursor }),
  );

describe('the events of a request', () => {
  // With progress reports, without, and without outcomes: each waits in another place.
  test.for([{ progressMs: 100 }, SPARSE, { outcomes: false }])(
    'end for the reason of the caller, as any other wait: %j',
    async (options, { flow }) => {
      const pw = pieceworkOf(flow);
      const request = await pw.submit([1]);
      // Ended by `end`, once it waits: reports of progress come before that.
      const thrown = async (more: object, end = () => {}) => {
        if (options === SPARSE) setImmediate(end);
        try {
          for await (const _ of request.events({ ...options, ...more })) end();
        } catch (error) {
          return error;
        }
        return undefined;
      };
      const what = `events of ${request.id}`;
      expect(await thrown({ timeoutMs: 300 })).toMatchObject({
        code: 'TIMEOUT',
        message: expect.stringContaining(what),
      });
      const own = new AbortController();
      const mine = new Error('mine');
      expect(await thrown({ signal: own.signal }, () => own.abort(mine))).toMatchObject({
        name: 'AbortError',
        cause: mine,
        message: expect.stringContaining(what),
      });
      expect(await thrown({}, () => void pw.close())).toMatchObject({ code: 'CLOSED' });
    },
  );

  test('are each outcome once, progress between them, and the completion as the last', async ({
    flow,
  }) => {
    const go = gate();
    const handler = async (n: number) => {
      if (n > 0) await go.opened;
      if (n === 2) throw new TypeError('no 2');
      return n * 10;
    };
    await flow.worker({ handler, concurrency: 4, settleDelayMs: 0 }).start();
    const request = await pieceworkOf(flow).submit(numbers(4));
    const seen: RequestEvent[] = [];
    for await (const event of request.events({ progressMs: 10 })) {
      seen.push(event);
      if (event.type === 'progress') go.open();
    }
    const { id: requestId } = request;
    const outcomes = seen.filter(({ type }) => type === 'succeeded' || type === 'failed');
    expect(inShort(outcomes).sort()).toEqual([
      'failed 2',
      'succeeded 0',
      'succeeded 1',
      'succeeded 3',
    ]);
    expect(outcomes[0]).toEqual({
      ...{ type: 'succeeded', requestId, index: 0, value: 0, cursor: expect.any(String) },
    });
    expect(outcomes).toContainEqual(
      expect.objectContaining({ error: expect.objectContaining({ message: 'no 2' }) }),
    );
    const reports = seen.filter((event) => event.type === 'progress');
    expect(reports.length).toBeGreaterThan(0);
    expect(reports[0]).toMatchObject({ requestId, status: 'sealed', counts: { total: 4 } });
    expect(seen.at(-1)).toMatchObject({
      type: 'completed',
      outcome: { status: 'failed', counts: { succeeded: 3, failed: 1 } },
    });
    expect(inShort(seen).indexOf('completed')).toBe(seen.length - 1);
  });

  test('continue behind any cursor, in another process, with nothing missing or twice', async ({
    flow,
  }) => {
    await flow.worker({ handler: (n: number) => n, settleDelayMs: 0 }).start();
    const request = await pieceworkOf(flow).submit(numbers(9));
    const events = await all(request.events(SPARSE));
    expect(events).toHaveLength(10);
    for (const [i, { cursor }] of events.entries())
      expect(await behind(flow, request, cursor)).toEqual(events.slice(i + 1));
  });

  test('continue after the completion with what a redrive does', async ({ flow }) => {
    let fails = true;
    const handler = (n: number) => {
      if (fails && n === 1) throw new Error('not yet');
      return n;
    };
    await flow.worker({ handler }).start();
    const pw = pieceworkOf(flow);
    const request = await pw.submit(numbers(3));
    const first = await all(request.events(SPARSE));
    const { cursor } = first.at(-1) as RequestEvent;
    await flow.complete(request.id);
    expect(await behind(flow, request, cursor)).toEqual([]);
    fails = false;
    const { generation } = await request.redrive();
    const second = await behind(flow, request, cursor);
    expect(inShort(second)).toEqual(['succeeded 1', 'completed']);
    expect(second.at(-1)).toMatchObject({ outcome: { generation, status: 'succeeded' } });
    // From the start, what was redriven has its last outcome only.
    const anew = inShort(await all(pw.request(request.id).events(SPARSE)));
    expect(anew.sort()).toEqual(['completed', 'succeeded 0', 'succeeded 1', 'succeeded 2']);
  });

  test('come once, although every connection is cut again and again', {
    tags: ['one-server', 'own-server'],
  }, async ({ flow }) => {
    const server = flow.connection.client as Redis;
    const ids = async () =>
      [...((await server.client('LIST')) as string).matchAll(/^id=(\d+)/gm)].map(([, id]) => id!);
    const step = gate();
    const handler = async (n: number) => {
      if (n >= 20) await step.opened;
      return n;
    };
    await flow.worker({ handler, settleDelayMs: 0, concurrency: 5 }).start();
    const request = await pieceworkOf(flow).submit(numbers(40));
    const others = new Set(await ids());
    const pw = pieceworkOf(flow);
    const seen: RequestEvent[] = [];
    for await (const event of pw.request(request.id).events({ progressMs: 20 })) {
      seen.push(event);
      if (seen.length > 20) step.open();
      if (seen.length % 9 !== 5) continue;
      for (const id of await ids())
        if (!others.has(id)) await server.client('KILL', 'ID', id).catch(() => {});
    }
    const outcomes = seen.filter(({ type }) => type === 'succeeded');
    expect(new Set(inShort(outcomes)).size).toBe(40);
    expect(outcomes).toHaveLength(40);
    expect(seen.at(-1)?.type).toBe('completed');
  });

  test('end with a DroppedError when the request is dropped', async ({ flow }) => {
    const request = await pieceworkOf(flow).submit(numbers(2));
    const events = request.events({ progressMs: 10 });
    expect((await events.next()).value).toMatchObject({ type: 'progress' });
    await request.drop();
    const reading = all(events);
    await expect(reading).rejects.toThrow(DroppedError);
  });

  test('are progress and completion only, where outcomes are not wanted or not kept', async ({
    flow,
  }) => {
    const handler = (n: number) => {
      if (n === 1) throw new Error('no 1');
      return n;
    };
    await flow.worker({ handler }).start();
    const pw = pieceworkOf(flow);
    const plain = await pw.submit(numbers(2));
    expect(inShort(await all(plain.events({ ...SPARSE, outcomes: false })))).toEqual(['completed']);
    const discarding = await pw.submit(numbers(3), { results: 'discard' });
    expect(inShort(await all(discarding.events(SPARSE)))).toEqual(['failed 1', 'completed']);
  });

  test('leave nothing behind when the consumer leaves or waits no longer', async ({ flow }) => {
    const request = await pieceworkOf(flow).submit(numbers(2));
    for await (const event of request.events({ progressMs: 10 })) {
      expect(event.type).toBe('progress');
      break;
    }
    const signal = AbortSignal.abort('enough');
    await expect(all(request.events({ signal }))).rejects.toThrow(AbortError);
    await expect(all(request.events({ ...SPARSE, timeoutMs: 5 }))).rejects.toMatchObject({
      code: 'TIMEOUT',
    });
    for (const wrong of [{ cursor: 'c1-0.1' }, { cursor: 'e1.c1' }, { progressMs: 5 }])
      expect(() => request.events(wrong)).toThrow(InvalidOptionError);
    await request.drop();
  });
});

/** Takes queue events until `enough`. */
async function some(
  pw: Piecework,
  options: QueueEventsOptions,
  enough: (seen: readonly QueueEvent[]) => boolean,
  begun: () => Promise<unknown> = async () => {},
): Promise<QueueEvent[]> {
  const seen: QueueEvent[] = [];
  const events = pw.events({ everyMs: 100, progressMs: 0, failures: false, ...options });
  const first = events.next();
  await begun();
  for (let next = await first; !next.done; next = await events.next()) {
    seen.push(next.value);
    if (enough(seen)) break;
  }
  await events.return(undefined);
  return seen;
}

const idsOf = (events: readonly QueueEvent[]) =>
  events.flatMap((event) => (event.type === 'completed' ? [event.requestId] : []));

describe('the events of a queue', () => {
  test('are its ends, failed attempts and counts', async ({ flow }) => {
    const handler = (n: number) => {
      if (n === 1) throw new TypeError('no 1');
      return n;
    };
    await flow.worker({ handler }).start();
    const pw = pieceworkOf(flow);
    const kinds = (seen: readonly QueueEvent[]) => new Set(seen.map(({ type }) => type));
    const options = { progressMs: 100, failures: true };
    let id = '';
    const seen = await some(
      pw,
      options,
      (events) => kinds(events).size === 3,
      async () => {
        ({ id } = await pw.submit(numbers(2)));
      },
    );
    expect(seen.find(({ type }) => type === 'completed')).toMatchObject({
      requestId: id,
      outcome: 'failed',
      counts: { total: 2, failed: 1 },
      at: expect.any(Number),
    });
    expect(seen.find(({ type }) => type === 'attemptFailed')).toMatchObject({
      ...{ requestId: id, index: 1, attempt: 1, name: 'TypeError', message: 'no 1' },
    });
    expect(seen.find(({ type }) => type === 'progress')).toMatchObject({ counts: { workers: 1 } });
  });

  test('continue behind a cursor with each end once, and end with their Piecework', async ({
    flow,
  }) => {
    await flow.worker({ handler: (n: number) => n, concurrency: 20 }).start();
    const pw = pieceworkOf(flow);
    const ids: string[] = [];
    const submit = async (n: number) => {
      const requests = await Promise.all(numbers(n).map(() => pw.submit([1])));
      ids.push(...requests.map((request) => request.id));
      await Promise.all(requests.map(({ id }) => flow.complete(id)));
    };
    const before = await some(
      pw,
      {},
      (seen) => seen.length === 30,
      () => submit(30),
    );
    await submit(30);
    const { cursor } = before[11] as QueueEvent;
    const other = pieceworkOf(flow);
    const after = await some(other, { cursor }, (seen) => seen.length === 48);
    expect([...idsOf(before.slice(0, 12)), ...idsOf(after)].sort()).toEqual([...ids].sort());
    expect(after.slice(0, 18)).toEqual(before.slice(12));

    const events = other.events({ progressMs: 100 });
    await events.next();
    const refused = expect(events.next()).rejects.toMatchObject({ code: 'CLOSED' });
    await other.close();
    await refused;
    for (const wrong of ['e0.', 'q1~a,2~b', 'q~'])
      expect(() => pw.events({ cursor: wrong })).toThrow(InvalidOptionError);
  });

  test('say that ends are missing, when the consumer was away for too many', async ({ flow }) => {
    const pw = pieceworkOf(flow);
    const { history } = flow.queueCommands.keys;
    // As if 1,000 requests had ended since.
    const ends = numbers(1_000).flatMap((n) => [5_000 + n, `${flow.queue}.gone-${n}`]);
    await flow.connection.client.zadd(history, ...ends);
    const cursor = `q10~${flow.queue}.old`;
    const [gap] = await some(pw, { cursor }, (seen) => seen.length === 1);
    expect(gap).toMatchObject({ type: 'gap', after: 10, before: 5_000 });
    await flow.connection.client.del(history);
  });
});
