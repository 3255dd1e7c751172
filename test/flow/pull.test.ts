import { ClosedError, InvalidOptionError, UnrecoverableError } from '@piecework/protocol';
import { type HandlerContext, type SubRequest, Worker } from '@piecework/worker';
import { Redis } from 'ioredis';
import { Admin } from 'piecework';
import { concatMap, finalize, from, lastValueFrom, mergeMap, take, tap } from 'rxjs';
import { describe, expect } from 'vitest';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { interceptScripts } from '../support/script-calls.js';
import { until } from '../support/until.js';

/** A consumer of one step at a time: `next` answers nothing when there is no more. */
function consumer<Payload = number>(worker: Worker, options = {}) {
  const iterator = worker.subRequests<Payload>(options)[Symbol.asyncIterator]();
  const next = async () => (await iterator.next()).value as SubRequest<Payload>;
  return { iterator: iterator as Required<typeof iterator>, next };
}

/**
 * Settles one. Where a server does not know `settle`, the read behind it in its pipeline comes first that
 * once, so the books show one more in flight.
 */
async function settleOne(worker: Worker): Promise<void> {
  const s = await consumer(worker).next();
  s.succeed(s.payload);
  await s.settled;
}

/** Looks at the server's books again and again: the most that was in flight. */
async function mostInFlight(flow: Flow, id: string, during: Promise<unknown>): Promise<number> {
  let most = 0;
  let over = false;
  const ended = () => {
    over = true;
  };
  during.then(ended, ended);
  while (!over) most = Math.max(most, (await flow.request(id).inspect())?.inFlight ?? 0);
  await during;
  return most;
}

/** What a consumer holds: given out and not settled. */
class Held {
  #now = new Set<SubRequest>();
  most = 0;

  take(s: SubRequest): void {
    this.#now.add(s);
    this.most = Math.max(this.most, this.#now.size);
  }

  succeed(s: SubRequest): void {
    this.#now.delete(s);
    s.succeed(s.payload);
  }
}

/** Some turns of the event loop, as work that waits for I/O. */
async function turns(n: number): Promise<void> {
  for (let i = 0; i < n; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

describe('a consumer that pulls', () => {
  test('is given every sub-request, one at a time, and no more than it asks for', async ({
    flow,
  }) => {
    const worker = flow.worker({ concurrency: 10 });
    const { id } = await flow.producer().submit(numbers(30), { limit: 30, task: 'census' });
    const seen: number[] = [];
    await settleOne(worker);
    const run = async () => {
      for await (const s of worker.subRequests<number>()) {
        expect(s).toMatchObject({ requestId: id, task: 'census', attempt: 1, crashes: 0 });
        expect(s.payload).toBe(s.index);
        await turns(3);
        s.succeed(s.payload);
        seen.push(s.index);
        if (seen.length === 29) break;
      }
    };
    expect(await mostInFlight(flow, id, run())).toBe(1);
    expect(await flow.complete(id)).toMatchObject({ succeeded: 30, failed: 0 });
    expect(new Set(seen).size).toBe(29);
    expect(await flow.results(id)).toEqual(new Map(numbers(30).map((n) => [n, n])));
  });

  test('holds nothing in advance while it thinks', async ({ flow }) => {
    const worker = flow.worker({ concurrency: 10 });
    const ids = await Promise.all(
      [1, 2].map(async () => (await flow.producer().submit(numbers(5), { limit: 5 })).id),
    );
    const s = await consumer(worker).next();
    const booked = async () => {
      const all = await Promise.all(ids.map((id) => flow.request(id).inspect()));
      return all.map((seen) => [seen?.inFlight, Number(seen?.state.granted)]);
    };
    // Others find all that is left.
    const other = flow.worker({ handler: (n: number) => n });
    await other.start();
    await flow.complete(ids.find((id) => id !== s.requestId) as string);
    await until(async () => (await flow.request(s.requestId).state())?.succeeded === 4);
    // The other one gives its permits back in the call after, if not in the one that settles.
    const left = async () => (await booked()).sort().join(' ');
    await until(async () => (await left()) === '0,0 1,1');
    s.succeed();
    expect(await flow.complete(s.requestId)).toMatchObject({ succeeded: 5 });
  });

  test('that fails one gets it again, for as many attempts as there are', async ({ flow }) => {
    const worker = flow.worker({ concurrency: 1 });
    const { id } = await flow.producer().submit(numbers(3), { attempts: 3 });
    const attempts: string[] = [];
    const run = (async () => {
      for await (const s of worker.subRequests<number>()) {
        attempts.push(`${s.index} ${s.attempt} ${JSON.stringify(s.checkpointed)}`);
        s.checkpoint({ attempt: s.attempt });
        if (s.index === 0) s.fail(new Error('always'));
        else if (s.index === 1) s.fail(new UnrecoverableError('never'));
        else if (s.attempt === 1) s.fail('at first');
        else s.succeed();
      }
    })();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1, failed: 2 });
    expect(attempts.sort()).toEqual([
      '0 1 undefined',
      '0 2 {"attempt":1}',
      '0 3 {"attempt":2}',
      '1 1 undefined',
      '2 1 undefined',
      '2 2 {"attempt":1}',
    ]);
    await worker.close();
    await run;
  });

  test('may hold the request back, which costs no attempt', async ({ flow }) => {
    const worker = flow.worker({ concurrency: 1 });
    const { id } = await flow.producer().submit([1]);
    const { next } = consumer(worker);
    const first = await next();
    expect(first.fail(first.holdRequest(1))).toBe(true);
    expect(await first.settled).toBe('returned');
    const again = await next();
    expect(again).toMatchObject({ requestId: id, index: 0, attempt: 1 });
    again.succeed();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
  });

  test('settles once: every other call is ignored', async ({ flow }) => {
    const worker = flow.worker({});
    const { id } = await flow.producer().submit(numbers(2), { limit: 2 });
    const { next } = consumer(worker);
    const [a, b] = [await next(), await next()];
    const { succeed, fail } = a;
    expect([succeed('first'), succeed('second'), fail(new Error('third'))]).toEqual([
      true,
      false,
      false,
    ]);
    expect([b.fail(new Error('first')), b.succeed('second')]).toEqual([true, false]);
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1, failed: 1 });
    expect(await flow.results(id)).toEqual(
      new Map<number, unknown>([
        [a.index, 'first'],
        [b.index, { failed: true }],
      ]),
    );
  });

  test('can wait until the server has taken what it reported', async ({ flow }) => {
    const worker = flow.worker({});
    const { id } = await flow.producer().submit(numbers(2), { limit: 2 });
    const { next } = consumer(worker);
    const [a, b] = [await next(), await next()];
    a.succeed();
    expect(await a.settled).toBe('reported');
    expect(await flow.request(id).state()).toMatchObject({ succeeded: 1, failed: 0 });
    // A result that nobody can keep is a failure, as in a handler.
    b.succeed(1n);
    expect(await b.settled).toBe('reported');
    expect(await flow.request(id).state()).toMatchObject({ succeeded: 1, failed: 1 });
    expect(await a.settled).toBe('reported');
  });

  test('keeps its lease while it thinks', async ({ flow }) => {
    // Long enough to be kept on a machine that stands still for a second.
    const leaseMs = 2_400;
    const worker = flow.worker({ leaseMs });
    const { id } = await flow.producer().submit([1]);
    const s = await consumer(worker).next();
    const lease = async () =>
      Number((await flow.request(id).inspect())?.state[`lease:${worker.id}`]);
    const first = await lease();
    expect(first).toBeGreaterThan(0);
    await until(async () => (await lease()) > first + leaseMs);
    expect(s.signal.aborted).toBe(false);
    s.succeed('late');
    await flow.complete(id);
    expect(await flow.results(id)).toEqual(new Map([[0, 'late']]));
  });

  test('is notified when its attempt exceeds its time, and occupies its slot until it settles', async ({
    flow,
  }) => {
    const worker = flow.worker({ concurrency: 1 });
    const { id } = await flow.producer().submit([1], { attempts: 2, attemptTimeoutMs: 500 });
    const { next } = consumer(worker);
    const first = await next();
    await until(() => first.signal.aborted);
    expect(first.signal.reason).toMatchObject({ name: 'TimeoutError' });
    expect(await first.settled).toBe('reported');
    const asked = next();
    let came = false;
    void asked.then(() => {
      came = true;
    });
    await turns(20);
    expect(came).toBe(false);
    expect(first.succeed('too late')).toBe(true);
    const second = await asked;
    expect(second.attempt).toBe(2);
    second.succeed('in time');
    await flow.complete(id);
    expect(await flow.results(id)).toEqual(new Map([[0, 'in time']]));
  });

  test('is notified that the request is cancelled, and may still succeed', async ({ flow }) => {
    const worker = flow.worker({ concurrency: 2 });
    const { id } = await flow.producer().submit(numbers(4), { limit: 4 });
    const { next } = consumer(worker);
    const [a, b] = [await next(), await next()];
    const admin = new Admin({ redis: flow.redis, queue: flow.queue });
    flow.after(() => admin.close());
    await admin.cancel(id);
    await until(() => a.signal.aborted && b.signal.aborted);
    a.succeed();
    b.fail(b.signal.reason);
    expect([await a.settled, await b.settled]).toEqual(['reported', 'returned']);
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1, cancelled: 3, failed: 0 });
  });

  test('is notified when the request is gone', async ({ flow }) => {
    const worker = flow.worker({ leaseMs: 1_000 });
    const { id } = await flow.producer().submit([1]);
    const s = await consumer(worker).next();
    await flow.request(id).drop();
    await until(() => s.signal.aborted);
    s.succeed();
    expect(await s.settled).toBe('returned');
    await until(() => worker.running === 0);
  });

  test('waits while the queue is paused', async ({ flow }) => {
    const worker = flow.worker({});
    const admin = new Admin({ redis: flow.redis, queue: flow.queue });
    flow.after(() => admin.close());
    await admin.pauseQueue();
    const { id } = await flow.producer().submit(numbers(2), { limit: 2 });
    const { next } = consumer(worker);
    const asked = next();
    await until(() => worker.health().state === 'running');
    await turns(20);
    expect(await flow.request(id).inspect()).toMatchObject({ inFlight: 0 });
    await admin.resumeQueue();
    (await asked).succeed();
    (await next()).succeed();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 2 });
  });
});

// Who of two requests comes first is certain only where one server answers for both.
describe('a suspect that is pulled', { tags: 'one-server' }, () => {
  /** A worker with one in hand that has read a suspect for whoever asks next. */
  async function waitingSuspect(flow: Flow) {
    const worker = flow.worker({ concurrency: 2 });
    await flow.producer().submit([0], { id: flow.id('slow') });
    const { iterator, next } = consumer(worker);
    const slow = await next();
    const options = { id: flow.id('suspect'), maxCrashes: 2 };
    const { id, generation } = await flow.producer().submit([1], options);
    const request = flow.request(id);
    // Its crash is real: a holder with a lease of 1 ms, and a look at the request after that.
    await request.enter({
      generation,
      worker: 'dead',
      op: 1,
      want: 1,
      leaseMs: 1,
      tasks: '*',
      epochs: [],
    });
    await request.read('dead', 1);
    await until(async () => {
      await request.tend(generation, '');
      return (await request.inspect())?.inFlight === 0;
    });
    const asked = iterator.next();
    await until(async () => (await request.pending(worker.id, 10)).length === 1);
    return { id, slow, asked, iterator };
  }

  test('is given out when nothing else is out', async ({ flow }) => {
    const { id, slow, asked } = await waitingSuspect(flow);
    let came = false;
    void asked.then(() => {
      came = true;
    });
    await turns(20);
    expect(came).toBe(false);
    slow.succeed();
    const { value } = await asked;
    expect(value).toMatchObject({ requestId: id, crashes: 1 });
    value?.succeed();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1, failed: 0 });
  });

  test('goes back when nobody waits for it any more, and is no worse off', async ({ flow }) => {
    const { id, slow, asked, iterator } = await waitingSuspect(flow);
    await iterator.return();
    expect(await asked).toEqual({ done: true, value: undefined });
    slow.succeed();
    await until(async () => (await flow.request(id).inspect())?.inFlight === 0);
    const seen: unknown[] = [];
    const handler = (_: unknown, { attempt, crashes }: HandlerContext) =>
      void seen.push([attempt, crashes]);
    await flow.worker({ handler }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1, failed: 0 });
    expect(seen).toEqual([[1, 1]]);
  });
});

describe('the demand', () => {
  test('is bounded by the concurrency, whatever is asked', async ({ flow }) => {
    const worker = flow.worker({ concurrency: 3 });
    const { id } = await flow.producer().submit(numbers(9), { limit: 9 });
    const { next } = consumer(worker);
    const held: SubRequest[] = [];
    const asked = numbers(8).map(() => next().then((s) => void held.push(s)));
    await until(() => held.length === 3);
    await turns(50);
    expect(held).toHaveLength(3);
    expect(await flow.request(id).inspect()).toMatchObject({ inFlight: 3 });
    for (let i = 0; i < 8; i += 1) {
      await until(() => held[i]);
      held[i]?.succeed();
    }
    await Promise.all(asked);
    // Nobody asks for the ninth.
    await until(async () => (await flow.request(id).inspect())?.inFlight === 0);
    expect(await flow.request(id).inspect()).toMatchObject({ ready: 1 });
    (await next()).succeed();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 9 });
  });

  test('of several consumers is one: together they hold at most the concurrency', async ({
    flow,
  }) => {
    const worker = flow.worker({ concurrency: 3 });
    const { id } = await flow.producer().submit(numbers(60), { limit: 60 });
    await settleOne(worker);
    const held = new Held();
    const by = new Map<number, number>();
    const loops = numbers(5).map(async (n) => {
      for await (const s of worker.subRequests()) {
        held.take(s);
        await turns(2);
        by.set(n, (by.get(n) ?? 0) + 1);
        held.succeed(s);
      }
    });
    const most = await mostInFlight(flow, id, flow.complete(id));
    expect(held.most).toBe(3);
    // A peak may lie between two reads.
    expect(most).toBeLessThanOrEqual(3);
    // Who asked first is served first, so each had its turn.
    expect(by.size).toBe(5);
    await worker.close();
    await Promise.all(loops);
    expect(await flow.request(id).state()).toMatchObject({ succeeded: 60 });
  });
});

describe('the end of the iteration', () => {
  test('by a break leaves with the consumer what is out, and takes no more', async ({ flow }) => {
    const worker = flow.worker({ concurrency: 5 });
    const { id } = await flow.producer().submit(numbers(6), { limit: 6 });
    const kept: SubRequest[] = [];
    for await (const s of worker.subRequests()) {
      kept.push(s);
      if (kept.length === 2) break;
    }
    expect(await flow.request(id).inspect()).toMatchObject({ inFlight: 2, ready: 4 });
    expect(kept.map(({ signal }) => signal.aborted)).toEqual([false, false]);
    const other = flow.worker({ handler: (n: number) => n });
    await other.start();
    await until(async () => (await flow.request(id).state())?.succeeded === 4);
    for (const s of kept) s.succeed('kept');
    expect(await flow.complete(id)).toMatchObject({ succeeded: 6 });
    const results = await flow.results(id);
    expect(kept.map(({ index }) => results.get(index))).toEqual(['kept', 'kept']);
  });

  test('gives back what came too late to be given out, at no attempt', async ({ flow }) => {
    const worker = flow.worker({ concurrency: 4 });
    const { id } = await flow.producer().submit(numbers(90), { limit: 90 });
    let taken = 0;
    // It leaves at every point of the way of a token.
    for (let round = 0; round < 30; round += 1) {
      const iterator = worker.subRequests()[Symbol.asyncIterator]();
      const asked = [iterator.next(), iterator.next()];
      await turns(round);
      await iterator.return?.();
      for (const { value } of await Promise.all(asked)) {
        taken += value === undefined ? 0 : 1;
        value?.succeed('pulled');
      }
    }
    await until(async () => (await flow.request(id).inspect())?.inFlight === 0);
    expect(await flow.request(id).state()).toMatchObject({ succeeded: taken, failed: 0 });
    const attempts = new Set<number>();
    const other = flow.worker({ handler: (_, { attempt }) => void attempts.add(attempt) });
    await other.start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 90, failed: 0 });
    expect([...attempts]).toEqual([1]);
  });

  test('while a call under way brings work gives it back, at no attempt', {
    tags: ['one-server'],
  }, async ({ flow }) => {
    const client = new Redis(flow.redis as string);
    const answered = gate();
    const held = gate();
    // The reply of the first `enter`, the only call that names what is served, is on its way for long.
    interceptScripts(client, async (call, send) => {
      const enters = call.includes('*') && call[2]?.startsWith('request:');
      const reply = await send();
      if (!enters) return reply;
      answered.open();
      await held.opened;
      return reply;
    });
    const worker = flow.worker({ redis: client, concurrency: 4 });
    flow.after(async () => {
      await worker.close();
      client.disconnect();
    });
    // The script is known by now.
    const { id: first } = await flow.producer().submit([1]);
    const warm = flow.worker({ handler: () => 1 });
    await warm.start();
    await flow.complete(first);
    await warm.close();
    const { id } = await flow.producer().submit(numbers(3), { limit: 3 });
    const { iterator } = consumer(worker);
    const waiting = iterator.next();
    await answered.opened;
    expect(await flow.request(id).inspect()).toMatchObject({ inFlight: 1 });
    await iterator.return();
    expect(await waiting).toEqual({ done: true, value: undefined });
    held.open();
    await until(async () => (await flow.request(id).inspect())?.inFlight === 0);
    expect(await flow.request(id).inspect()).toMatchObject({ ready: 3 });
    const attempts: number[] = [];
    await flow.worker({ handler: (_, { attempt }) => void attempts.push(attempt) }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 3, failed: 0 });
    expect(attempts).toEqual([1, 1, 1]);
  });

  test('by an abort rejects who waits, and takes no more', async ({ flow }) => {
    const worker = flow.worker({});
    const stop = new AbortController();
    const { iterator } = consumer(worker, { signal: stop.signal });
    const asked = iterator.next();
    await until(() => worker.health().ready);
    stop.abort(new Error('enough'));
    await expect(asked).rejects.toMatchObject({ code: 'ABORTED', cause: { message: 'enough' } });
    await expect(iterator.next()).rejects.toMatchObject({ code: 'ABORTED' });
    const { id } = await flow.producer().submit(numbers(2));
    await flow.worker({ handler: () => 1 }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 2 });
  });

  test('by the close comes to who waits, and the close waits for what is out', async ({ flow }) => {
    const worker = flow.worker({ concurrency: 2 });
    const { id } = await flow.producer().submit(numbers(1));
    const { next } = consumer(worker);
    const s = await next();
    const asked = next();
    const closing = worker.close({ timeoutMs: 20_000 });
    expect(await asked).toBeUndefined();
    expect(s.signal.aborted).toBe(false);
    s.succeed();
    await closing;
    expect(await s.settled).toBe('reported');
    expect(await next()).toBeUndefined();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
    expect(() => worker.subRequests()).toThrow(ClosedError);
  });

  test('by the close aborts what is not settled in time, and gives it back', async ({ flow }) => {
    const worker = flow.worker({ concurrency: 2 });
    const { id } = await flow.producer().submit(numbers(2), { limit: 2 });
    const { next } = consumer(worker);
    const [a, b] = [await next(), await next()];
    await worker.close({ timeoutMs: 0 });
    expect(await Promise.all([a.settled, b.settled])).toEqual(['returned', 'returned']);
    expect([a.signal.aborted, b.signal.aborted]).toEqual([true, true]);
    expect(await flow.request(id).inspect()).toMatchObject({ inFlight: 0, ready: 2 });
    // It counts for nothing by now.
    a.succeed('too late');
    const attempts: number[] = [];
    await flow.worker({ handler: (_, { attempt }) => void attempts.push(attempt) }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 2 });
    expect(attempts).toEqual([1, 1]);
  });
});

describe('RxJS', () => {
  test('that takes one after the other holds no more than there are slots', async ({ flow }) => {
    for (const concurrency of [1, 4]) {
      const worker = flow.worker({ concurrency });
      const { id } = await flow.producer().submit(numbers(40), { limit: 40 });
      await settleOne(worker);
      const held = new Held();
      const work = from(worker.subRequests()).pipe(
        // What waits in the operator is held as well.
        tap((s) => held.take(s)),
        concatMap(async (s) => {
          await until(() => held.most === concurrency);
          await turns(3);
          held.succeed(s);
        }),
        take(39),
      );
      const most = await mostInFlight(flow, id, lastValueFrom(work));
      expect([most, held.most]).toEqual([concurrency, concurrency]);
      expect(await flow.complete(id)).toMatchObject({ succeeded: 40, failed: 0 });
      await worker.close();
    }
  });

  test('that takes several at once holds no more than there are slots', async ({ flow }) => {
    const worker = flow.worker({ concurrency: 5 });
    const { id } = await flow.producer().submit(numbers(60), { limit: 60 });
    await settleOne(worker);
    const held = new Held();
    let running = 0;
    let mostRunning = 0;
    const work = from(worker.subRequests()).pipe(
      tap((s) => held.take(s)),
      mergeMap(async (s) => {
        running += 1;
        mostRunning = Math.max(mostRunning, running);
        await until(() => held.most === 5);
        await turns(5);
        running -= 1;
        held.succeed(s);
      }, 3),
      take(59),
    );
    const most = await mostInFlight(flow, id, lastValueFrom(work));
    expect(mostRunning).toBe(3);
    expect(held.most).toBe(5);
    // A peak may lie between two reads.
    expect(most).toBeLessThanOrEqual(5);
    expect(await flow.complete(id)).toMatchObject({ succeeded: 60, failed: 0 });
  });

  test('that is unsubscribed takes no more', async ({ flow }) => {
    const worker = flow.worker({ concurrency: 2 });
    const stop = new AbortController();
    const open = gate();
    const taken: SubRequest[] = [];
    const subscription = from(worker.subRequests({ signal: stop.signal }))
      .pipe(
        concatMap(async (s) => {
          taken.push(s);
          await open.opened;
        }),
        finalize(() => stop.abort()),
      )
      .subscribe();
    await until(() => worker.health().ready);
    subscription.unsubscribe();
    const { id } = await flow.producer().submit(numbers(3));
    await flow.worker({ handler: () => 1 }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 3 });
    expect(taken).toEqual([]);
    open.open();
  });
});

describe('a pull', () => {
  test('is refused where there is a handler, or none and nobody pulls', async ({ flow }) => {
    const refused = { code: 'INVALID_OPTION', field: 'subRequests' };
    const handled = flow.worker({ handler: () => 1 });
    expect(() => handled.subRequests()).toThrow(expect.objectContaining(refused));
    const pulled = flow.worker({});
    await expect(pulled.start()).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      field: 'handler',
    });
    expect(() => pulled.subRequests({ signal: {} as AbortSignal })).toThrow(InvalidOptionError);
    expect(() => pulled.subRequests({ prefetch: 1 } as never)).toThrow(InvalidOptionError);
    const source = pulled.subRequests({ signal: AbortSignal.abort() });
    await expect(source[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'ABORTED' });
    await pulled.start();
    expect(pulled.health()).toMatchObject({ state: 'running', live: true });
  });

  test('tells why the worker could not start', { tags: ['one-server'] }, async ({ flow }) => {
    const worker = new Worker({
      redis: { host: '127.0.0.1', port: 1, retryStrategy: () => null },
      logger: flow.log as never,
    });
    flow.after(() => worker.close({ timeoutMs: 0 }));
    const { iterator } = consumer(worker);
    await expect(iterator.next()).rejects.toMatchObject({ code: 'CONNECTION', retryable: true });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(() => worker.subRequests()).toThrow('worker, whose start failed, is closed');
  });
});
