import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Producer } from '@piecework/producer';
import { Connection } from '@piecework/protocol';
import { Worker } from '@piecework/worker';
import type { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { keepState } from '../scale/lost-writes.mjs';
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
    onTestFinished(() => server.stop());
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
    const state = () => connection.client.hgetall(`request:{${id}}`);
    await until(async () => (await state())['status'] === 'complete');
    expect(await state()).toMatchObject({ succeeded: '4', failed: '0' });
    expect(starts.get(2)).toBe(1);
  });
});
