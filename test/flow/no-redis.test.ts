/**
 * Where there is no Redis, or not the one that is meant: everybody is told why, at every call.
 * @module-tag own-server
 */
import { Connection } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { cli } from '../support/cli.js';
import { test } from '../support/flow.js';
import { startOwnRedis } from '../support/redis.js';

const thrownBy = (call: Promise<unknown>) => call.catch((thrown: unknown) => thrown);

describe('a db that the server does not have', () => {
  const refusal = {
    ...{ name: 'ServerError', code: 'NO_DB', retryable: false },
    message: expect.stringMatching(/no db of this number: .*databases/),
  };

  test('is not db 0 instead', async ({ flow }) => {
    const server = await startOwnRedis();
    flow.after(() => server.stop());
    const { host, port } = new URL(server.url);
    const redis = `redis://${host}/99`;
    await using pw = new Piecework({ redis, queue: flow.queue });
    expect(await thrownBy(pw.check())).toMatchObject(refusal);
    expect(await thrownBy(pw.submit([1]))).toMatchObject(refusal);
    const worker = flow.worker({ redis: { port: Number(port), db: 99 }, handler: () => 1 });
    expect(await thrownBy(worker.start())).toMatchObject(refusal);
    const ended = await cli(['list', '--queue', flow.queue], { redis });
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('no db of this') });
    const onlooker = new Redis(server.url);
    flow.after(() => onlooker.disconnect());
    expect(await onlooker.dbsize()).toBe(0);
  });

  test('is refused also of a client that is passed in, and left as its owner took it', async ({
    flow,
  }) => {
    const server = await startOwnRedis();
    flow.after(() => server.stop());
    const strange = new Redis(`${server.url}/99`);
    flow.after(() => strange.disconnect());
    strange.on('error', () => {});
    expect(await thrownBy(Connection.open(strange).check())).toMatchObject(refusal);
    const client = new Redis(`${server.url}/3`);
    flow.after(() => client.disconnect());
    await client.select(5);
    await Connection.open(client).check();
    await client.set('here', 1);
    await client.select(0);
    await Connection.open(client).check();
    expect(await client.exists('here')).toBe(0);
    await client.select(5);
    expect(await client.exists('here')).toBe(1);
  });
});
