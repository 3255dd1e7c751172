import { ConnectionError } from '@piecework/protocol';
import type { SettledEvent, Worker, WorkerEvents } from '@piecework/worker';
import { describe, expect } from 'vitest';
import { deadHolder, type Flow, gate, mastersOf, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

/** Everything that a worker tells under one name. */
function told<Name extends keyof WorkerEvents>(worker: Worker, name: Name): WorkerEvents[Name][] {
  const all: WorkerEvents[Name][] = [];
  worker.on(name, ((...what: WorkerEvents[Name]) => void all.push(what)) as never);
  return all;
}

const warned = (flow: Flow, what: string) =>
  flow.log.lines.filter((line) => line.what === what).length;

describe('a worker tells', () => {
  test('what was settled, with what came of it, and not what is tried again', async ({ flow }) => {
    const worker = flow.worker({
      handler: (n: number, { attempt }) => {
        if (n === 1 || (n === 2 && attempt === 1)) throw new Error(`no ${n}`);
        return n;
      },
    });
    const settled = told(worker, 'settled');
    await worker.start();
    const open = await flow.producer().open();
    await flow.connection.client.hset(flow.request(open.id).keys.request, 'attempts', 2);
    await open.append(...numbers(4));
    await open.seal();
    await flow.complete(open.id);
    await until(() => settled.length >= 4);
    const { id: requestId } = open;
    const events = settled.map(([event]) => event).sort((a, b) => a.index - b.index);
    expect(events).toEqual([
      { requestId, index: 0, attempt: 1, status: 'succeeded' },
      { requestId, index: 1, attempt: 2, status: 'failed', error: expect.anything() },
      { requestId, index: 2, attempt: 2, status: 'succeeded' },
      { requestId, index: 3, attempt: 1, status: 'succeeded' },
    ] satisfies SettledEvent[]);
    expect(events[1]).toMatchObject({ error: { name: 'Error', message: 'no 1' } });
  });

  test('that it holds nothing any more, once work has ended', async ({ flow }) => {
    const worker = flow.worker({ handler: (n: number) => n });
    const runningThen: number[] = [];
    worker.on('drained', () => void runningThen.push(worker.running));
    await worker.start();
    expect(runningThen).toEqual([]);
    const { id } = await flow.producer().submit(numbers(20));
    await flow.complete(id);
    await until(() => runningThen.length > 0);
    expect(new Set(runningThen)).toEqual(new Set([0]));
  });

  test('whose work it took back', async ({ flow }) => {
    const producer = flow.producer();
    const { id } = await producer.submit(numbers(3), { limit: 3 });
    // It would look as well.
    await producer.close();
    await deadHolder(flow, id);
    const worker = flow.worker({ handler: (n: number) => n });
    const reclaimed = told(worker, 'reclaimed');
    await worker.start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 3 });
    expect(reclaimed).toEqual([[{ requestId: id, count: 3 }]]);
  });

  test('that a lease is over, and what ran under it', async ({ flow }) => {
    const worker = flow.worker({
      leaseMs: 3_000,
      handler: async (_: number, { signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    });
    const lost = told(worker, 'leaseLost');
    await worker.start();
    const { id } = await flow.producer().submit(numbers(2));
    await until(() => worker.running === 2);
    await flow.request(id).drop();
    await until(() => lost.length > 0);
    expect(lost).toMatchObject([[{ requestId: id, indexes: [0, 1] }]]);
    await until(() => worker.running === 0);
  });

  test('that its connections are back, and why one was lost', {
    tags: ['own-server', 'one-server'],
  }, async ({ flow }) => {
    const worker = flow.worker({ handler: (n: number) => n });
    const back = told(worker, 'reconnected');
    const errors = told(worker, 'error');
    await worker.start();
    const { id } = await flow.producer().submit(numbers(3));
    await flow.complete(id);
    expect(back).toEqual([]);
    for (const master of mastersOf(flow.connection)) {
      await master.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    }
    await until(() => new Set(back.map(([{ connection }]) => connection)).size === 2);
    expect(errors.length).toBeGreaterThan(0);
    for (const [error] of errors) {
      expect(error).toBeInstanceOf(ConnectionError);
      expect(error.message).toMatch(/: see that Redis runs/);
    }
  });
});

describe('a listener', () => {
  test('of errors need not be there', { tags: 'own-server' }, async ({ flow }) => {
    const worker = flow.worker({ handler: (n: number) => n });
    await worker.start();
    const before = await flow.producer().submit(numbers(3));
    await flow.complete(before.id);
    expect(worker.listenerCount('error')).toBe(0);
    for (const master of mastersOf(flow.connection)) {
      await master.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    }
    await until(() => warned(flow, 'blocking connection lost; building a new one') > 0);
    const { id } = await flow.producer().submit(numbers(3));
    expect(await flow.complete(id)).toMatchObject({ succeeded: 3 });
  });

  test('that throws or rejects is logged, and the others are still called', async ({ flow }) => {
    const worker = flow.worker({ handler: (n: number) => n });
    worker.on('settled', () => {
      throw new Error('a bad listener');
    });
    worker.on('settled', async () => {
      throw new Error('a bad promise');
    });
    const settled = told(worker, 'settled');
    await worker.start();
    const { id } = await flow.producer().submit(numbers(5));
    expect(await flow.complete(id)).toMatchObject({ succeeded: 5 });
    await until(() => settled.length === 5);
    await until(() => warned(flow, 'a listener failed') === 10);
  });

  test('of once is called once, and may close the worker', async ({ flow }) => {
    const worker = flow.worker({ handler: (n: number) => n, concurrency: 1 });
    const closed = gate();
    let calls = 0;
    worker.once('settled', () => {
      calls += 1;
      void worker.close().then(closed.open);
    });
    await worker.start();
    const { id } = await flow.producer().submit(numbers(50));
    await closed.opened;
    expect(calls).toBe(1);
    expect(worker.listenerCount('settled')).toBe(0);
    const other = flow.worker({ handler: (n: number) => n });
    await other.start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 50 });
  });
});
