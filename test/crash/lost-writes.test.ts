import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Producer } from '@piecework/producer';
import { Connection, QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { Worker } from '@piecework/worker';
import type { Redis } from 'ioredis';
import { DelayedTasks, Piecework } from 'piecework';
import { describe, expect, it, onTestFinished } from 'vitest';
import { keepState } from '../scale/lost-writes.mjs';
import { stateOf } from '../support/compact.js';
import { gate, numbers } from '../support/flow.js';
import { startOwnRedis } from '../support/redis.js';
import { until } from '../support/until.js';

const DRIVER = fileURLToPath(new URL('../scale/rollbacks.mjs', import.meta.url));

describe('a server that loses its last writes', { tags: ['own-server', 'processes'] }, () => {
  /** The short form; rollbacks.mjs by itself does it two hundred times. */
  it('records each sub-request once', async () => {
    const args = ['--rollbacks', '20', '--items', '400', '--json'];
    const driver = spawn(process.execPath, [DRIVER, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void driver.kill('SIGTERM'));
    expect(JSON.parse(await text(driver.stdout))).toMatchObject({
      ...{ rollbacks: 20, twice: 0, missing: 0, wrongCounts: 0, stuck: 0 },
    });
  });

  it('brings what a worker runs already, which is not started again', async () => {
    const server = await startOwnRedis();
    onTestFinished(() => server.close());
    const connection = Connection.open(server.url);
    onTestFinished(() => connection.close());
    const gates = numbers(4).map(() => gate());
    const starts = new Map<number, number>();
    const worker = new Worker({
      ...{ redis: server.url, queue: 'again', concurrency: 2, leaseMs: 3_000 },
      async handler(n: number) {
        starts.set(n, (starts.get(n) ?? 0) + 1);
        await gates[n]?.opened;
        return n;
      },
    });
    onTestFinished(() => worker.close());
    await worker.start();
    const producer = new Producer({ redis: server.url, queue: 'again' });
    onTestFinished(() => producer.close());
    const { id } = await producer.submit(numbers(4), { limit: 2 });
    await until(() => worker.running === 2);
    const putBack = await keepState(connection.client as Redis);
    gates[0]?.open();
    await until(() => starts.has(2));
    await putBack();
    // Its settle brings 2, which the server believes to be unread.
    gates[1]?.open();
    await until(() => starts.has(3));
    for (const each of gates) each.open();
    const state = () => stateOf(connection.client, `request:{${id}}`);
    await until(async () => (await state())['status'] === 'complete');
    expect(await state()).toMatchObject({ succeeded: '4', failed: '0' });
    expect(starts.get(2)).toBe(1);
  });

  it('brings what a worker has read ahead, which is started once', async () => {
    const server = await startOwnRedis();
    onTestFinished(() => server.close());
    const connection = Connection.open(server.url);
    onTestFinished(() => connection.close());
    const client = connection.client as Redis;
    const gates = numbers(60).map(() => gate());
    const starts = new Map<number, number>();
    const worker = new Worker({
      ...{ redis: server.url, queue: 'again', concurrency: 10, leaseMs: 6_000, quantumMs: 600_000 },
      settleDelayMs: 400,
      async handler(n: number) {
        starts.set(n, (starts.get(n) ?? 0) + 1);
        await gates[n]?.opened;
        return n;
      },
    });
    onTestFinished(() => worker.close());
    await worker.start();
    const producer = new Producer({ redis: server.url, queue: 'again' });
    onTestFinished(() => producer.close());
    const { id } = await producer.submit(numbers(60), { limit: 5 });
    await until(() => worker.running === 5);
    // So slow that much is read ahead, and not given back soon.
    await sleep(200);
    gates[0]?.open();
    await until(() => starts.has(5));
    const putBack = await keepState(client);
    gates[1]?.open();
    const { work } = new RequestCommands(connection, id).keys;
    const pending = () => client.xpending(work, 'workers', '-', '+', 100, worker.id);
    const ahead = await until(async () => {
      const entries = (await pending()) as [string][];
      return entries.length > 10 && entries.map(([entry]) => Number(entry.split('-')[1])).slice(5);
    });
    await putBack();
    // With more permits it reads five at once and more ahead, which the server believes to be unread. The notice of a
    // changed limit, upon which a worker returns what it has read ahead, is not sent.
    const generation = Number((await stateOf(client, `request:{${id}}`))['generation']);
    const changed = await new RequestCommands(connection, id).update(generation, { limit: 10 });
    if (changed.verdict !== 'ok') throw new Error(changed.verdict);
    await new QueueCommands(connection, 'again').push({ id, generation, ...changed });
    await until(() => worker.running >= 10);
    for (const each of gates) each.open();
    await until(async () => (await client.hget(`request:{${id}}`, 'status')) === 'complete');
    expect(await client.hgetall(`request:{${id}}`)).toMatchObject({ succeeded: '60', failed: '0' });
    expect(ahead.map((n) => [n, starts.get(n)])).toEqual(ahead.map((n) => [n, 1]));
  });

  it('runs a task again whose read it lost, though the end of it was answered since', async () => {
    const server = await startOwnRedis();
    onTestFinished(() => server.close());
    const tasks = new DelayedTasks({ redis: server.url });
    onTestFinished(() => tasks.close());
    const connection = Connection.open(server.url);
    onTestFinished(() => connection.close());
    const id = await tasks.executeLater('again', 'task');
    const gates = [gate(), gate()];
    let [runs, answered] = [0, 0];
    const worker = tasks.worker({
      ...{ queues: ['again'], concurrency: 1 },
      handlers: {
        async task() {
          runs += 1;
          await gates[runs - 1]?.opened;
        },
      },
    });
    worker.workers[0]?.on('settled', () => {
      answered += 1;
    });
    const putBack = await keepState(connection.client as Redis);
    await worker.start();
    await until(() => runs === 1);
    await putBack();
    gates[0]?.open();
    await until(() => answered === 1);
    const state = () => stateOf(connection.client, `request:{${id}}`);
    // The end of the first run did not count: by the state of the server, nobody had taken the task.
    await until(() => runs === 2);
    expect(await state()).toMatchObject({ status: 'sealed', succeeded: '0' });
    gates[1]?.open();
    await tasks.completion('again', id);
    expect(await state()).toMatchObject({ status: 'complete', succeeded: '1', failed: '0' });
    await until(() => answered === 2);
    expect(runs).toBe(2);
  });

  it('counts no success of an item that it lost for the item that has its index now', async () => {
    const server = await startOwnRedis();
    onTestFinished(() => server.close());
    const connection = Connection.open(server.url);
    onTestFinished(() => connection.close());
    const gates = { forgotten: gate(), other: gate() };
    const started = new Set<string>();
    let answered = 0;
    const workerOf = async () => {
      const worker = new Worker({
        ...{ redis: server.url, queue: 'again', concurrency: 1 },
        async handler(item: keyof typeof gates) {
          started.add(item);
          await gates[item].opened;
          return item;
        },
      });
      onTestFinished(() => worker.close());
      worker.on('settled', () => {
        answered += 1;
      });
      await worker.start();
    };
    const open = () => {
      const pw = new Piecework({ redis: server.url, queue: 'again' });
      onTestFinished(() => pw.close());
      return pw.open({ id: 'shared' });
    };
    const [first, second] = [await open(), await open()];
    await workerOf();
    const putBack = await keepState(connection.client as Redis);
    await first.append('forgotten');
    await first.flush();
    await until(() => started.has('forgotten'));
    await putBack();
    await second.append('other');
    await second.flush();
    await workerOf();
    await until(() => started.has('other'));
    gates.forgotten.open();
    await until(() => answered === 1);
    gates.other.open();
    await second.seal();
    const pw = new Piecework({ redis: server.url, queue: 'again' });
    onTestFinished(() => pw.close());
    const request = pw.request('shared');
    expect(await request.completion()).toMatchObject({ counts: { total: 1, succeeded: 1 } });
    const values = [];
    for await (const { index, value } of request.results()) values.push([index, value]);
    expect(values).toEqual([[0, 'other']]);
  });
});
