import { Notifier } from '@piecework/notifier';
import {
  ControlCommands,
  DroppedError,
  EndedError,
  ExpiredError,
  InvalidOptionError,
  LostError,
  NotFoundError,
  QueueControlCommands,
  queueKeys,
  type RedisInput,
  requestKeys,
} from '@piecework/protocol';
import type { HandlerContext } from '@piecework/worker';
import { Admin, Piecework } from 'piecework';
import { beforeAll, describe, expect } from 'vitest';
import { type Flow, gate, heard, numbers, test } from '../support/flow.js';
import { connected } from '../support/given.js';
import { until } from '../support/until.js';

// Opened before the first test counts its connections.
beforeAll(async () => (await connected()).check());

/** So long that nothing that is looked after in the rhythm of the lease happens in a test. */
const LONG_MS = 600_000;

function piecework(flow: Flow): Piecework {
  const pw = new Piecework({ redis: flow.redis as RedisInput, queue: flow.queue });
  flow.after(() => pw.close());
  return pw;
}

/** A handler that runs until it is told to stop, or let go; counts both. */
function waiting() {
  const seen = { started: 0, aborted: 0 };
  const open = gate();
  const handler = async (n: number, { signal }: HandlerContext) => {
    seen.started += 1;
    const stopped = new Promise<void>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    await Promise.race([stopped, open.opened]).catch((error: unknown) => {
      seen.aborted += 1;
      throw error;
    });
    return n;
  };
  return { seen, handler, open: () => open.open() };
}

test('the handle of a request does nothing to another one that has its id by now', async ({
  flow,
}) => {
  const { seen, handler, open } = waiting();
  await flow.worker({ concurrency: 4, handler }).start();
  const pw = piecework(flow);
  const id = flow.id('reused');
  const first = await pw.submit([1], { id, delayMs: LONG_MS });
  await pw.admin.drop(id);
  const second = await pw.submit([1, 2], { id });
  await until(() => seen.started === 2);
  const calls: Record<string, () => Promise<unknown>> = {
    running: () => first.running(),
    pause: () => first.pause(),
    resume: () => first.resume(),
    update: () => first.update({ limit: 1 }),
    cancel: () => first.cancel(),
    drop: () => first.drop(),
  };
  for (const [name, call] of Object.entries(calls))
    await expect(call(), name).rejects.toThrow(LostError);
  expect(await second.running()).toHaveLength(2);
  expect(await second.status()).toMatchObject({
    status: 'sealed',
    limit: null,
    waitingFor: undefined,
  });
  open();
  await second.completion();
  await expect(first.redrive()).rejects.toThrow(LostError);
  expect(seen.aborted).toBe(0);
});

describe('cancel', () => {
  test('aborts running handlers at once by a message, and keeps what succeeded', async ({
    flow,
  }) => {
    const { seen, handler } = waiting();
    const first = async (n: number, context: HandlerContext) =>
      n === 0 ? 'kept' : handler(n, context);
    const worker = flow.worker({ concurrency: 4, leaseMs: LONG_MS, handler: first });
    await worker.start();
    await heard(flow);
    const pw = piecework(flow);
    const request = await pw.submit(numbers(100), { id: flow.id('a'), limit: 4 });
    await until(() => seen.started === 4);
    expect(await request.cancel()).toEqual({ status: 'cancelling' });
    const { status, counts } = await request.completion({ timeoutMs: 20_000 });
    expect({ status, ...counts }).toMatchObject({
      status: 'cancelled',
      succeeded: 1,
      cancelled: 99,
    });
    expect(seen).toEqual({ started: 4, aborted: 4 });
    const kept = [];
    for await (const one of request.results()) kept.push(one);
    expect(kept).toMatchObject([{ index: 0, status: 'succeeded', value: 'kept' }]);
    expect(await request.cancel()).toEqual({ status: 'complete', outcome: 'cancelled' });
  });

  test('reaches a handler by the next renewal when the message is lost', async ({ flow }) => {
    const { seen, handler } = waiting();
    const worker = flow.worker({ concurrency: 2, leaseMs: 1_500, handler });
    await worker.start();
    const { id, generation } = await flow.producer().submit(numbers(10), { limit: 2 });
    await until(() => seen.started === 2);
    // The script alone: nobody tells the workers.
    await flow.request(id).cancel(generation);
    await until(() => seen.aborted === 2);
    expect(await flow.complete(id)).toMatchObject({ cancelled: 10, outcome: 'cancelled' });
  });

  test('waits for a handler that ignores the abort, and counts its success', async ({ flow }) => {
    const open = gate();
    const told = gate();
    const handler = async (n: number, { signal }: HandlerContext) => {
      signal.addEventListener('abort', () => told.open(), { once: true });
      await open.opened;
      return n;
    };
    const worker = flow.worker({ concurrency: 1, leaseMs: LONG_MS, handler });
    await worker.start();
    await heard(flow);
    const request = await piecework(flow).submit([7, 8], { id: flow.id('a'), limit: 1 });
    await until(() => worker.running === 1);
    await request.cancel();
    await told.opened;
    expect((await request.status()).status).toBe('cancelling');
    open.open();
    expect(await flow.complete(request.id)).toMatchObject({ succeeded: 1, cancelled: 1 });
  });

  test('of an unknown id is an error', async ({ flow }) => {
    const admin = piecework(flow).admin;
    for (const call of ['cancel', 'pause', 'resume', 'drop'] as const)
      await expect(admin[call](flow.id('none'))).rejects.toBeInstanceOf(NotFoundError);
    await expect(admin.cancel('a{b}')).rejects.toBeInstanceOf(InvalidOptionError);
    const { id } = await flow.producer().submit([1], { id: flow.id('dropped') });
    await admin.drop(id);
    await expect(admin.cancel(id)).rejects.toBeInstanceOf(DroppedError);
  });
});

describe('drop', () => {
  test('aborts running handlers at once', async ({ flow }) => {
    const { seen, handler } = waiting();
    const worker = flow.worker({ concurrency: 3, leaseMs: LONG_MS, handler });
    await worker.start();
    await heard(flow);
    const request = await piecework(flow).submit(numbers(10), { id: flow.id('a'), limit: 3 });
    await until(() => seen.started === 3);
    await request.drop();
    await until(() => seen.aborted === 3 && worker.running === 0);
  });

  test('that was cut off half-way is ended by a repetition when its tombstone has expired', async ({
    flow,
  }) => {
    await flow.worker({ handler: (n: number) => n }).start();
    const { client } = await connected();
    const pw = piecework(flow);
    const { id } = await pw.submit([1], { id: flow.id('a') });
    const history = queueKeys(flow.queue).history;
    await until(async () => (await client.zscore(history, id)) !== null);
    // The first half: the process dies before it has told the queue.
    await new ControlCommands(await connected(), id).drop();
    await client.del(requestKeys(id).request);
    await expect(pw.request(id).drop()).rejects.toBeInstanceOf(ExpiredError);
    expect(await client.zscore(history, id)).toBeNull();
    await expect(pw.request(id).drop()).rejects.toBeInstanceOf(NotFoundError);
  });

  test('of a request whose retention has passed is an ExpiredError, as other calls are', async ({
    flow,
  }) => {
    await flow.worker({ handler: (n: number) => n }).start();
    const { client } = await connected();
    const { id } = await flow.producer().submit([1], { id: flow.id('a') });
    await until(async () => (await client.zscore(queueKeys(flow.queue).history, id)) !== null);
    const { request, results } = requestKeys(id);
    await client.del(request, results);
    const { admin } = piecework(flow);
    for (const call of ['cancel', 'pause', 'resume', 'drop'] as const)
      await expect(admin[call](id), call).rejects.toBeInstanceOf(ExpiredError);
  });
});

describe('a paused request', () => {
  test('starts nothing more until it is resumed', async ({ flow }) => {
    const { seen, handler, open } = waiting();
    const worker = flow.worker({ concurrency: 3, leaseMs: LONG_MS, handler });
    await worker.start();
    const request = await piecework(flow).submit(numbers(20), { id: flow.id('a'), limit: 3 });
    await until(() => seen.started === 3);
    expect(await request.pause()).toEqual({ changed: true });
    expect(await request.pause()).toEqual({ changed: false });
    expect(await request.status()).toMatchObject({
      status: 'sealed',
      why: 'it is paused; 3 still run. Resume it',
    });
    open();
    await until(async () => {
      const { counts } = await request.status();
      return counts.succeeded === 3 && counts.inFlight === 0;
    });
    expect(seen.started).toBe(3);
    expect(await request.resume()).toEqual({ changed: true });
    expect(await flow.complete(request.id)).toMatchObject({ succeeded: 20 });
    await expect(request.pause()).rejects.toBeInstanceOf(EndedError);
    await expect(request.update({ limit: 1 })).rejects.toBeInstanceOf(EndedError);
  });

  test('is awaited like any other, from another process', async ({ flow }) => {
    await flow.worker({ handler: (n: number) => n }).start();
    const pw = piecework(flow);
    const { id, generation } = await (async () => {
      const open = await flow.producer().open({ id: flow.id('a') });
      await pw.request(open.id).pause();
      await open.append(1, 2, 3);
      await open.seal();
      return open;
    })();
    const notifier = new Notifier({ redis: flow.redis as RedisInput, queue: flow.queue });
    flow.after(() => notifier.close());
    const completion = notifier.completion(id);
    expect(await pw.request(id).status()).toMatchObject({ counts: { ready: 3 } });
    await pw.request(id).resume();
    expect(await completion).toMatchObject({ status: 'succeeded', generation });
  });
});

describe('an update', () => {
  test('of the limit applies to every start after the next settle', async ({ flow }) => {
    let runs = 0;
    let most = 0;
    const gates = numbers(60).map(() => gate());
    const handler = async (n: number) => {
      runs += 1;
      most = Math.max(most, runs);
      await gates[n]!.opened;
      runs -= 1;
      return n;
    };
    const workers = [0, 1].map(() => flow.worker({ concurrency: 5, leaseMs: LONG_MS, handler }));
    for (const worker of workers) await worker.start();
    const request = await piecework(flow).submit(numbers(60), { id: flow.id('a'), limit: 4 });
    await until(() => runs === 4);
    await request.update({ limit: 10 });
    await until(() => runs === 10);
    await request.update({ limit: 2 });
    expect(await request.status()).toMatchObject({ limit: 2 });
    for (const one of gates.slice(0, 10)) one.open();
    await until(async () => (await request.status()).counts.succeeded === 10 && runs === 2);
    // Each worker has settled since: from here on it is never more.
    most = 0;
    for (const one of gates) one.open();
    expect(await flow.complete(request.id)).toMatchObject({ succeeded: 60 });
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(2);
  });

  test('of the priority moves it before requests that it was behind', async ({ flow }) => {
    const pw = piecework(flow);
    const order: string[] = [];
    const low = await pw.submit(numbers(3), { id: flow.id('low'), priority: 80, limit: 1 });
    const high = await pw.submit(numbers(3), { id: flow.id('high'), priority: 20, limit: 1 });
    await low.update({ priority: 5 });
    const handler = (n: number, { requestId }: HandlerContext) => {
      order.push(requestId);
      return n;
    };
    await flow.worker({ concurrency: 1, quantumMs: LONG_MS, handler }).start();
    await flow.complete(low.id);
    await flow.complete(high.id);
    expect(order).toEqual([low.id, low.id, low.id, high.id, high.id, high.id]);
  });

  test('that changes nothing, or too much, is refused before anything is written', async ({
    flow,
  }) => {
    const request = await piecework(flow).submit([1], { id: flow.id('a') });
    const wrong = [
      {},
      { limit: 0 },
      { priority: 100 },
      { toleratedFailures: -1 },
      { color: 'red' },
    ];
    for (const changes of wrong)
      await expect(request.update(changes as never)).rejects.toBeInstanceOf(InvalidOptionError);
    expect(await request.status()).toMatchObject({ limit: null, priority: 50 });
  });
});

describe('a paused queue', () => {
  test('is left by its workers as their handlers end, and continues when it is resumed', async ({
    flow,
  }) => {
    const { seen, handler, open } = waiting();
    const worker = flow.worker({ concurrency: 3, leaseMs: LONG_MS, handler });
    await worker.start();
    await heard(flow);
    const pw = piecework(flow);
    const request = await pw.submit(numbers(20), { id: flow.id('a'), limit: 3 });
    await until(() => seen.started === 3);
    await pw.admin.pauseQueue();
    flow.after(() => pw.admin.resumeQueue());
    // Submitted meanwhile, to a worker that starts meanwhile as well.
    const later = await pw.submit(numbers(5), { id: flow.id('b') });
    const late = flow.worker({ concurrency: 3, leaseMs: LONG_MS, handler });
    await late.start();
    open();
    await until(async () => (await flow.request(request.id).inspect())?.inFlight === 0);
    await until(
      async () =>
        !Object.keys((await flow.request(request.id).inspect())!.state).some((field) =>
          field.startsWith('permits:'),
        ),
    );
    expect(seen.started).toBe(3);
    expect(await pw.admin.counts()).toMatchObject({ open: 2, pausedUntil: 0 });
    await pw.admin.resumeQueue();
    expect(await flow.complete(request.id)).toMatchObject({ succeeded: 20 });
    expect(await flow.complete(later.id)).toMatchObject({ succeeded: 5 });
  });

  test('resumes by itself when its time has passed', async ({ flow }) => {
    const admin = new Admin({ redis: flow.redis as RedisInput, queue: flow.queue });
    flow.after(() => admin.close());
    await admin.pauseQueue({ forMs: 300 });
    await flow.worker({ handler: (n: number) => n }).start();
    const { id } = await flow.producer().submit(numbers(3));
    expect(await flow.complete(id)).toMatchObject({ succeeded: 3 });
    await expect(admin.pauseQueue({ forMs: -1 })).rejects.toBeInstanceOf(InvalidOptionError);
  });

  test('reaches the workers with the next tick when the message is lost', async ({ flow }) => {
    const worker = flow.worker({ handler: (n: number) => n });
    await worker.start();
    // As the script does, but told on a channel that nobody hears.
    const { paused } = flow.queueCommands.keys;
    await flow.connection.client.hset(paused, 'until', 0);
    const control = new QueueControlCommands(flow.connection, flow.queue);
    flow.after(() => control.resume());
    const seen = flow.log.lines.length;
    await until(async () => {
      // What is taken before it ticks is worked off; in the end something stays.
      const { id } = await flow.producer().submit([1]);
      const first = await until(async () => {
        const { state, ready } = (await flow.request(id).inspect())!;
        return state['status'] === 'complete' ? 'complete' : ready === 1 && 'ready';
      });
      return first === 'ready' && (await flow.request(id).inspect())?.inFlight === 0;
    });
    await control.resume();
    expect(flow.log.lines).toHaveLength(seen);
  });

  test('by a handler gets its sub-request back, without an attempt counted', async ({ flow }) => {
    const attempts: number[] = [];
    const handler = (n: number, ctx: HandlerContext) => {
      attempts.push(ctx.attempt);
      if (attempts.length === 1) throw ctx.holdQueue(200);
      return n;
    };
    await flow.worker({ concurrency: 1, leaseMs: LONG_MS, handler }).start();
    const { id } = await flow.producer().submit([1]);
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1, failed: 0 });
    expect(attempts).toEqual([1, 1]);
  });

  test('by a handler for no time at all fails that handler', async ({ flow }) => {
    const handler = (_: number, ctx: HandlerContext) => {
      throw ctx.holdQueue(0);
    };
    await flow.worker({ concurrency: 1, handler }).start();
    const { id } = await flow.producer().submit([1]);
    expect(await flow.complete(id)).toMatchObject({ failed: 1 });
    const [failure] = await flow.request(id).failures([0]);
    expect(JSON.parse(failure as string)).toMatchObject({ name: 'InvalidOptionError' });
  });
});
