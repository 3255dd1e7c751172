import type { OpenRequest } from '@piecework/producer';
import {
  Agenda,
  ClosedError,
  DroppedError,
  RequestExistsError,
  SealedError,
} from '@piecework/protocol';
import { DelayedTasks, Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { type Flow, numbers, test } from '../support/flow.js';
import { payloadsIn } from '../support/payloads.js';
import { startProgram } from '../support/processes.js';
import { until } from '../support/until.js';

const payloadsOf = (flow: Flow, id: string): Promise<unknown[]> =>
  payloadsIn(flow.connection.client, flow.request(id).keys);

describe('an open request', () => {
  test('takes items until it is sealed, in the order in which they were appended', async ({
    flow,
  }) => {
    const open = await flow.producer().open({ id: flow.id('open') });
    expect(await flow.request(flow.id('open')).state()).toMatchObject({ status: 'open', total: 0 });
    await open.append(0, 1, 2);
    await Promise.all(numbers(1_500, 3).map((n) => open.append(n)));
    await open.flush();
    expect(await flow.request(flow.id('open')).state()).toMatchObject({
      status: 'open',
      total: 1_503,
    });
    await open.append(1_503);
    await open.seal();
    expect(open.appended).toBe(1_504);
    expect(await payloadsOf(flow, flow.id('open'))).toEqual(numbers(1_504));
    await open.seal();
    await expect(open.append(1).then(() => open.flush())).rejects.toThrow();
  });

  test('passes items to the workers soon, however slowly they are appended', async ({ flow }) => {
    await flow.worker({ handler: (n: number) => n }).start();
    const open = await flow.producer().open({ id: flow.id('slow') });
    for (const n of numbers(5)) {
      await open.append(n);
      await until(async () => (await flow.request(open.id).state())?.succeeded === n + 1);
    }
    await open.seal();
    expect(await flow.complete(open.id)).toMatchObject({ succeeded: 5, total: 5 });
  });

  test('makes a slow producer wait, too, when there is no room', async ({ flow }) => {
    const open = await flow.producer().open({ id: flow.id('no-room'), window: 16 });
    let added = 0;
    const adding = (async () => {
      for (; added < 1_000; added += 1) {
        await open.append(added);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })().catch((error) => error);
    let seen = -1;
    // It stands still: nothing was added from one look to the next.
    await until(
      async () => {
        const still = added === seen;
        seen = added;
        await new Promise((resolve) => setTimeout(resolve, 500));
        return still && added > 16;
      },
      { what: 'the producer waits' },
    );
    expect(added).toBeLessThan(50);
    await open.cancel();
    await adding;
  });

  test('completes at its seal when nothing was appended, or everything is settled', async ({
    flow,
  }) => {
    const producer = flow.producer();
    const empty = await producer.open();
    await empty.seal();
    expect(await flow.complete(empty.id)).toMatchObject({ outcome: 'succeeded', total: 0 });
    await flow.worker({ handler: (n: number) => n }).start();
    const done = await producer.open();
    await done.append(1, 2, 3);
    await done.flush();
    await until(async () => (await flow.request(done.id).state())?.succeeded === 3);
    expect((await flow.request(done.id).state())?.status).toBe('open');
    await done.seal();
    expect(await flow.complete(done.id)).toMatchObject({ outcome: 'succeeded', total: 3 });
  });

  test('is joined under the same options only', async ({ flow }) => {
    const options = { id: flow.id('joined'), limit: 3, metadata: { a: 1, b: [2] } };
    const one = await flow.producer().open(options);
    const two = await flow.producer().open({ ...options, metadata: { b: [2], a: 1 } });
    expect(two.generation).toBe(one.generation);
    for (const other of [{ limit: 4 }, { metadata: undefined }, { producerLeaseMs: 60_000 }]) {
      await expect(flow.producer().open({ ...options, ...other })).rejects.toBeInstanceOf(
        RequestExistsError,
      );
    }
    await expect(flow.producer().submit([1], options)).rejects.toBeInstanceOf(RequestExistsError);
    await one.append('one');
    await two.append('two');
    await one.flush();
    await two.flush();
    await two.seal();
    expect((await payloadsOf(flow, flow.id('joined'))).sort()).toEqual(['one', 'two']);
  });

  test('takes no more items after any process sealed, cancelled or dropped it', async ({
    flow,
  }) => {
    const sealedBy = async (
      id: string,
      end: (open: Awaited<ReturnType<typeof opened>>) => unknown,
    ) => {
      const one = await opened(id);
      const two = await opened(id);
      await two.append(1);
      await two.flush();
      await end(one);
      return two.append(2).then(() => two.flush());
    };
    const opened = (id: string) => flow.producer().open({ id });
    await expect(sealedBy(flow.id('sealed'), (one) => one.seal())).rejects.toBeInstanceOf(
      SealedError,
    );
    await expect(sealedBy(flow.id('cancelled'), (one) => one.cancel())).rejects.toBeInstanceOf(
      SealedError,
    );
    const drop = async () => {
      const dropped = await flow.request(flow.id('dropped')).drop();
      if (dropped.verdict === 'dropped') {
        await flow.queueCommands.finish(flow.id('dropped'), dropped.generation, 'dropped');
      }
    };
    await expect(sealedBy(flow.id('dropped'), drop)).rejects.toBeInstanceOf(DroppedError);
    expect(await payloadsOf(flow, flow.id('sealed'))).toEqual([1]);
  });

  test('refuses items after its close, and stays open for other producers', async ({ flow }) => {
    const options = { id: flow.id('left') };
    const one = await flow.producer().open(options);
    await one.append(1);
    await one.flush();
    await one.close();
    await expect(one.append(2)).rejects.toBeInstanceOf(ClosedError);
    await expect(one.flush()).rejects.toBeInstanceOf(ClosedError);
    const two = await flow.producer().open(options);
    await two.append(3);
    await two.seal();
    expect(await payloadsOf(flow, flow.id('left'))).toEqual([1, 3]);
  });

  test('keeps its lease while it is open, and no longer', async ({ flow }) => {
    const open = await flow.producer().open({ id: flow.id('lease'), producerLeaseMs: 3_000 });
    const leaseEnd = async () =>
      Number((await flow.request(flow.id('lease')).inspect())?.state.producerUntil);
    const first = await leaseEnd();
    await until(async () => (await leaseEnd()) > first + 900, { what: 'the lease is renewed' });
    expect((await flow.request(flow.id('lease')).state())?.status).toBe('open');
    await open.seal();
  });
});

describe('a close of an open request', () => {
  const piecework = (flow: Flow) => new Piecework({ redis: flow.redis, queue: flow.queue });

  test.for([
    ['close', (open: OpenRequest) => open.close()],
    ['await using', (open: OpenRequest) => open[Symbol.asyncDispose]()],
    ['close of the Piecework', (_: OpenRequest, pw: Piecework) => pw.close()],
    ['dispose of it', (_: OpenRequest, pw: Piecework) => pw[Symbol.asyncDispose]()],
  ] as const)('by %s waits for what was appended', async ([, close], { flow }) => {
    const pw = piecework(flow);
    flow.after(() => pw.close());
    const open = await pw.open({ id: flow.id('closed') });
    await open.append(0, 1);
    // Nobody waits for these: far more than are under way at once.
    const adding = open.append(...numbers(4_000, 2));
    await close(open, pw);
    await adding;
    expect(await payloadsOf(flow, open.id)).toEqual(numbers(4_002));
    expect(await flow.request(open.id).state()).toMatchObject({ status: 'open', total: 4_002 });
    await expect(open.append(1)).rejects.toBeInstanceOf(ClosedError);
  });

  test('throws its failure, unless an append has thrown it already', async ({ flow }) => {
    const opened = async (name: string, also?: (open: OpenRequest) => Promise<unknown>) => {
      const pw = piecework(flow);
      flow.after(() => pw.close());
      const open = await pw.open({ id: flow.id(name) });
      await open.append(1);
      await pw.request(open.id).cancel();
      await also?.(open);
      return { open, pw };
    };
    const { open } = await opened('handle');
    await expect(open.close()).rejects.toBeInstanceOf(SealedError);
    await expect(open.close()).rejects.toBeInstanceOf(SealedError);
    const { pw } = await opened('piecework');
    await expect(pw.close()).rejects.toBeInstanceOf(SealedError);
    await pw.close();
    const told = await opened('told', (open) =>
      expect(open.flush()).rejects.toBeInstanceOf(SealedError),
    );
    await told.open.close();
    await told.pw.close();
  });

  test('names the number of items that are not in, when there is no room for them', async ({
    flow,
  }) => {
    const pw = piecework(flow);
    const open = await pw.open({ id: flow.id('full'), window: 8 });
    const adding = open.append(...numbers(11)).catch((error) => error);
    await open.append(11);
    await until(async () => (await flow.request(open.id).state())?.total === 8);
    await expect(pw.close()).rejects.toThrow(/is closed before 4 appended items could be/);
    await adding;
    expect((await flow.request(open.id).state())?.status).toBe('open');
  });

  test('after `leave` loses only items that are not in yet', async ({ flow }) => {
    const open = await flow.producer().open({ id: flow.id('left') });
    await open.append(1);
    await open.flush();
    open.leave();
    await open.close();
    expect(await payloadsOf(flow, open.id)).toEqual([1]);
  });
});

describe('several processes on one request', () => {
  test('add each item exactly once; the seal of one is the seal of all', async ({ flow }) => {
    const request = { id: flow.id('shared'), limit: 20 };
    const worker = flow.worker({ concurrency: 20, handler: (n: number) => n });
    await worker.start();
    const programs = numbers(3).map((n) =>
      startProgram(flow, 'producer', {
        redis: flow.redis,
        queue: flow.queue,
        request,
        items: [n * 1_000, n * 1_000 + 700],
        end: 'flush',
      }),
    );
    const appended = await Promise.all(programs.map((program) => program.said()));
    expect(appended).toEqual([{ appended: 700 }, { appended: 700 }, { appended: 700 }]);
    expect(await Promise.all(programs.map(({ ended }) => ended))).toEqual([0, 0, 0]);
    const one = await flow.producer().open(request);
    const other = await flow.producer().open(request);
    await one.seal();
    await expect(other.append(1).then(() => other.flush())).rejects.toBeInstanceOf(SealedError);
    const state = await flow.complete(flow.id('shared'));
    expect(state).toMatchObject({ total: 2_100, succeeded: 2_100 });
    const values = [...(await flow.results(flow.id('shared'))).values()] as number[];
    const wanted = numbers(3).flatMap((n) => numbers(700, n * 1_000));
    expect(values.sort((a, b) => a - b)).toEqual(wanted);
  });

  test.for([
    ['cancel', 'cancelled'],
    ['seal', 'succeeded'],
  ] as const)(
    "that die leave it to onProducerLost: '%s'",
    async ([onProducerLost, outcome], { flow }) => {
      const id = flow.id(`lost-${onProducerLost}`);
      const program = startProgram(flow, 'producer', {
        redis: flow.redis,
        queue: flow.queue,
        request: { id, producerLeaseMs: 1_000, onProducerLost },
        items: [0, 5],
        end: 'hold',
      });
      await program.said();
      program.kill('SIGKILL');
      await program.ended;
      const { generation } = (await flow.request(id).state()) as { generation: number };
      await until(async () => {
        const seen = await flow.request(id).inspect();
        return seen && seen.now > Number(seen.state.producerUntil);
      });
      // Looks that come more seldom than this lease lasts prolong it once.
      await until(async () => {
        await flow.queueCommands.scheduleTend(id, generation, 0);
        await new Agenda(flow.connection, flow.queueCommands).tick();
        return (await flow.request(id).state())?.status !== 'open';
      });
      if (onProducerLost === 'seal') {
        expect((await flow.request(id).state())?.status).toBe('sealed');
        await flow.worker({ handler: (n: number) => n }).start();
      }
      expect(await flow.complete(id)).toMatchObject({
        outcome,
        endReason: onProducerLost === 'seal' ? '' : 'producer-lost',
        total: 5,
        [onProducerLost === 'seal' ? 'succeeded' : 'cancelled']: 5,
      });
    },
  );
});

describe('a producer', () => {
  test('leaves nothing running behind: its process ends by itself', async ({ flow }) => {
    const program = startProgram(flow, 'producer', {
      redis: flow.redis,
      queue: flow.queue,
      request: { id: flow.id('ends') },
      items: [0, 10],
      end: 'seal',
    });
    await program.said();
    expect(await program.ended).toBe(0);
    expect(await flow.request(flow.id('ends')).state()).toMatchObject({
      status: 'sealed',
      total: 10,
    });
  });

  test('may be closed twice, and then refuses work', async ({ flow }) => {
    const producer = flow.producer();
    const open = await producer.open({ id: flow.id('closing') });
    await Promise.all([producer.close(), producer.close()]);
    await producer.close();
    await expect(producer.submit([1])).rejects.toBeInstanceOf(ClosedError);
    await expect(open.append(1)).rejects.toBeInstanceOf(ClosedError);
    await flow.producer().close();
  });

  test('names what was closed', async ({ flow }) => {
    const { redis, queue } = flow;
    const pw = new Piecework({ redis, queue });
    const request = pw.request(flow.id('any'));
    await pw.close();
    const closed = 'this Piecework object is closed';
    await expect(pw.submit([1])).rejects.toThrow(closed);
    await expect(pw.open()).rejects.toThrow(closed);
    await expect(request.completion()).rejects.toThrow(closed);
    expect(() => request.results()).toThrow(closed);
    await expect(request.status()).rejects.toThrow(closed);
    const producer = flow.producer();
    await producer.close();
    await expect(producer.submit([1])).rejects.toThrow('this producer is closed');
    const tasks = new DelayedTasks({ redis });
    await tasks.close();
    const late = tasks.executeLater(queue, 'note');
    await expect(late).rejects.toThrow('this DelayedTasks object is closed');
  });

  test('ends submissions under way when it is closed', async ({ flow }) => {
    const producer = flow.producer();
    const endless = (function* () {
      for (;;) yield 1;
    })();
    const submitting = producer.submit(endless, { id: flow.id('endless'), window: 8 });
    const ended = submitting.catch((error) => error);
    await until(async () => (await flow.request(flow.id('endless')).state())?.total === 8);
    await producer.close();
    expect(await ended).toBeInstanceOf(ClosedError);
  });

  test('ends a submission whose source does not answer when it is closed', async ({ flow }) => {
    const producer = flow.producer();
    const silent = (first: number[]) => ({
      released: false,
      [Symbol.asyncIterator]() {
        return {
          next: async () => {
            const value = first.shift();
            return value === undefined ? new Promise<never>(() => {}) : { value, done: false };
          },
          return: async () => {
            this.released = true;
            return { value: undefined, done: true as const };
          },
        };
      },
    });
    const sources = [silent([]), silent([1])];
    const id = flow.id('silent');
    const [none, one] = [
      producer.submit(sources[0] as never).catch((error) => error),
      producer.submit(sources[1] as never, { id }).catch((error) => error),
    ];
    await until(async () => (await flow.request(id).state())?.status === 'open');
    await producer.close();
    for (const error of [await none, await one]) expect(error).toBeInstanceOf(ClosedError);
    expect(sources.map(({ released }) => released)).toEqual([true, true]);
  });

  test('never closes a connection that it was given', async ({ flow }) => {
    const producer = flow.producer({ redis: flow.connection });
    await producer.submit([1], { id: flow.id('given') });
    await producer.close();
    const own = flow.producer({ redis: flow.connection.client });
    await own.submit([1], { id: flow.id('given-too') });
    await own.close();
    expect((await flow.request(flow.id('given')).state())?.status).toBe('sealed');
  });
});
