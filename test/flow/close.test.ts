import { setTimeout as sleep } from 'node:timers/promises';
import { ClosedError, PieceworkError } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { DelayedTasks } from 'piecework';
import { describe, expect } from 'vitest';
import { gate, numbers, test } from '../support/flow.js';
import { ownClock } from '../support/own-clock.js';
import { startProgram } from '../support/processes.js';
import { startOwnRedis } from '../support/redis.js';
import { until } from '../support/until.js';

/** Far below the time after which tokens that got lost are found: twenty seconds from the submission. */
const AT_ONCE_MS = 12_000;

describe('closing a worker', () => {
  test('waits for running handlers, and takes nothing more', async ({ flow }) => {
    const held = gate();
    let started = 0;
    const handler = async (n: number) => {
      started += 1;
      await held.opened;
      return n;
    };
    const worker = flow.worker({ concurrency: 3, handler });
    await worker.start();
    const { id } = await flow.producer().submit(numbers(20), { limit: 20 });
    await until(() => worker.running === 3);
    let closed = false;
    const closing = worker.close({ timeoutMs: 20_000 }).then(() => {
      closed = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(closed).toBe(false);
    held.open();
    await closing;
    expect(started).toBe(3);
    expect(await flow.request(id).state()).toMatchObject({ succeeded: 3, failed: 0, total: 20 });
    const seen = await flow.request(id).inspect();
    expect(seen).toMatchObject({ inFlight: 0, ready: 17, delayed: 0 });
    expect(seen?.state.granted).toBe('0');
    expect(Object.keys(seen?.state ?? {}).filter((field) => field.startsWith('permits:'))).toEqual(
      [],
    );
    // The tokens are back: another worker takes them at once.
    await flow.worker({ handler: (n: number) => n }).start();
    expect(await flow.complete(id, AT_ONCE_MS)).toMatchObject({ succeeded: 20 });
  });

  test('gives back sub-requests that do not end in time, without counting an attempt', async ({
    flow,
  }) => {
    const aborted: string[] = [];
    const stubborn = flow.worker({
      concurrency: 4,
      handler: (_: number, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            aborted.push((signal.reason as Error).name);
            reject(signal.reason);
          });
        }),
    });
    await stubborn.start();
    const { id } = await flow.producer().submit(numbers(10), { limit: 10 });
    await until(() => stubborn.running === 4);
    await stubborn.close({ timeoutMs: 0 });
    expect(aborted).toEqual(['AbortError', 'AbortError', 'AbortError', 'AbortError']);
    expect(await flow.request(id).inspect()).toMatchObject({ inFlight: 0, ready: 10, delayed: 0 });
    const attempts: number[] = [];
    const willing = flow.worker({
      handler: (n: number, ctx) => {
        attempts.push(ctx.attempt);
        return n;
      },
    });
    await willing.start();
    expect(await flow.complete(id, AT_ONCE_MS)).toMatchObject({ succeeded: 10, failed: 0 });
    expect(attempts).toEqual(Array(10).fill(1));
    expect([...(await flow.results(id)).keys()].sort((a, b) => a - b)).toEqual(numbers(10));
  });

  test('waits for a handler that clears up after its abort', async ({ flow }) => {
    let aborted = false;
    let closed = false;
    const clearedUp = gate<string>();
    const { client } = flow.connection;
    const worker = flow.worker({
      handler: async (_: number, { signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        aborted = true;
        // More round trips than a close makes, one after the other.
        for (let i = 0; i < 100 && !closed; i += 1) await client.ping();
        clearedUp.open(closed ? 'after the close' : 'during the close');
      },
    });
    await worker.start();
    await flow.producer().submit([1]);
    await until(() => worker.running === 1);
    const clock = ownClock(flow);
    clock.stop();
    const closing = worker.close({ timeoutMs: 20_000 }).then(() => {
      closed = true;
    });
    // The time that it has to end by itself passes; the time to clear up does not.
    await until(() => aborted || clock.move(2_000));
    await closing;
    expect(await clearedUp.opened).toBe('during the close');
  });

  test('works twice, and before the start', async ({ flow }) => {
    const worker = flow.worker({ handler: () => 1 });
    await Promise.all([worker.close(), worker.close()]);
    await worker.close();
    await expect(worker.start()).rejects.toBeInstanceOf(ClosedError);
    const other = flow.worker({ handler: () => 1 });
    await other.start();
    await other.start();
    await Promise.all([other.close(), other.close({ timeoutMs: 5 })]);
    await expect(other.start()).rejects.toBeInstanceOf(ClosedError);
  });

  test('works during the start, and leaves nothing in the registry', async ({ flow }) => {
    const { workers, workerInfo } = flow.queueCommands.keys;
    for (let turns = 0; turns < 30; turns += 1) {
      const worker = flow.worker({ handler: () => 1 });
      const starting = worker.start().then(
        () => 'started',
        (error) => error,
      );
      for (let i = 0; i < turns; i += 1) await new Promise(setImmediate);
      await worker.close();
      const how = await starting;
      if (how !== 'started') expect(how).toBeInstanceOf(ClosedError);
      await expect(worker.start()).rejects.toBeInstanceOf(ClosedError);
      expect(await flow.connection.client.zcard(workers)).toBe(0);
      expect(await flow.connection.client.hlen(workerInfo)).toBe(0);
    }
  });

  test('does not wait for the blocking pop to end by itself', async ({ flow }) => {
    // Thirty idle pops of five seconds would be far beyond the time of this test.
    for (let i = 0; i < 30; i += 1) {
      const worker = flow.worker({ handler: () => 1 });
      await worker.start();
      if (i % 2) await until(() => flow.connection.client.zcard(flow.queueCommands.keys.workers));
      await worker.close();
    }
  });

  test('takes it out of the registry, which showed it', async ({ flow }) => {
    const { workers, workerInfo } = flow.queueCommands.keys;
    const worker = flow.worker({ handler: () => 1, concurrency: 3 });
    await worker.start();
    const info = JSON.parse((await flow.connection.client.hget(workerInfo, worker.id)) as string);
    expect(info).toMatchObject({ pid: process.pid, concurrency: 3, tasks: '*', running: 0 });
    await worker.close();
    expect(await flow.connection.client.exists(workers, workerInfo)).toBe(0);
  });

  test('loses no token: another worker continues at once', async ({ flow }) => {
    const producer = flow.producer();
    const handler = (n: number) => n;
    const open = await Promise.all(
      numbers(20).map((n) => producer.open({ id: flow.id(`stream-${n}`), limit: 5 })),
    );
    let feeding = true;
    let given = 0;
    const fed = (async () => {
      for (; feeding; given += 1) {
        await Promise.all(open.map((one) => one.append(given).then(() => one.flush())));
        // Little is left to do at the end, however slow this machine is.
        await until(async () => !feeding || (await doneOf()) > (given - 10) * open.length);
      }
    })();
    // Workers that come and go while tokens are pushed and popped.
    for (let i = 0; i < 25; i += 1) {
      const worker = flow.worker({ handler, concurrency: 3, quantumMs: i % 2 ? 0 : 50 });
      await worker.start();
      const done = await doneOf();
      await until(async () => (await doneOf()) > done);
      await worker.close();
    }
    feeding = false;
    await fed;
    await Promise.all(open.map((one) => one.seal()));
    await flow.worker({ handler, concurrency: 3 }).start();
    // Far below the time after which lost tokens are found.
    for (const { id, appended } of open) {
      expect(await flow.complete(id, 8_000)).toMatchObject({ succeeded: appended, failed: 0 });
    }
    async function doneOf(): Promise<number> {
      const states = await Promise.all(open.map(({ id }) => flow.request(id).state()));
      return states.reduce((sum, state) => sum + (state?.succeeded ?? 0), 0);
    }
  });

  test('is cheap while it drains: tokens are not passed in circles', {
    tags: 'own-server',
  }, async ({ flow }) => {
    const held = gate();
    const handler = async (n: number) => {
      if (n === 0) await held.opened;
      return n;
    };
    const worker = flow.worker({ concurrency: 4, handler });
    await worker.start();
    const open = await flow.producer().open({ id: flow.id('circles'), limit: 50 });
    await open.append(0, 0, 1);
    await open.flush();
    await until(async () => (await flow.request(flow.id('circles')).state())?.succeeded === 1);
    const closing = worker.close({ timeoutMs: 20_000 });
    await open.append(...numbers(200, 1));
    await open.flush();
    const before = await scriptCalls();
    for (let i = 0; i < 50; i += 1) await until(() => flow.connection.client.ping());
    held.open();
    await closing;
    expect((await scriptCalls()) - before).toBeLessThan(40);
    await open.seal();
    await flow.worker({ handler }).start();
    expect(await flow.complete(flow.id('circles'), 8_000)).toMatchObject({ succeeded: 203 });

    async function scriptCalls(): Promise<number> {
      const { mastersOf } = await import('../support/flow.js');
      let sum = 0;
      for (const master of mastersOf(flow.connection)) {
        const info = await master.info('commandstats');
        sum += Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1] ?? 0);
      }
      return sum;
    }
  });

  test('lets the process end by itself', async ({ flow }) => {
    const program = startProgram(flow, 'worker', {
      options: { redis: flow.redis, queue: flow.queue, concurrency: 4 },
      handle: { minMs: 1, maxMs: 2 },
    });
    await program.said();
    const { id } = await flow.producer().submit(numbers(30));
    await flow.complete(id);
    program.kill('SIGTERM');
    expect(await program.ended).toBe(0);
  });

  test('ends although Redis has gone, as closing a producer does', {
    tags: 'own-server',
    timeout: 20_000,
  }, async ({ flow }) => {
    const server = await startOwnRedis();
    flow.after(() => server.close());
    const worker = flow.worker({ redis: server.url, handler: () => new Promise(() => {}) });
    const producer = flow.producer({ redis: server.url });
    await worker.start();
    await producer.submit(numbers(20));
    await until(() => worker.running === 10);
    const open = await producer.open();
    await server.kill('SIGKILL');
    const appending = open.append(1).then(() => open.flush());
    const refused = expect(appending).rejects.toBeInstanceOf(PieceworkError);
    // What it was given is not in, and the close says so.
    const closing = expect(producer.close()).rejects.toMatchObject({ code: 'CLOSED' });
    await Promise.all([worker.close({ timeoutMs: 10 }), closing]);
    await refused;
  });

  test('ends with DelayedTasks although Redis has gone, also with a client that was passed in', {
    tags: 'own-server',
    timeout: 60_000,
  }, async ({ flow }) => {
    const server = await startOwnRedis();
    flow.after(() => server.close());
    // It would wait for as long as Redis is away.
    const client = new Redis(server.url, { maxRetriesPerRequest: null });
    flow.after(() => client.disconnect());
    client.on('error', () => {});
    const tasks = new DelayedTasks({ redis: client, moves: [flow.queue] });
    await tasks.executeLater(flow.queue, 'note', [], { delayMs: 100 });
    await server.kill('SIGKILL');
    const ended = tasks.completion(flow.queue, 'nobody').catch((error) => error);
    // By then the tick of the due task waits for Redis: its timer was set before this one.
    await sleep(500);
    await tasks.close();
    expect(await ended).toBeInstanceOf(ClosedError);
  });

  test('never closes a client that was passed in', async ({ flow }) => {
    const { client } = flow.connection;
    const worker = flow.worker({ redis: client, handler: (n: number) => n });
    await worker.start();
    const { id } = await flow.producer().submit([1]);
    await flow.complete(id);
    await worker.close();
    expect(await client.ping()).toBe('PONG');
  });
});
