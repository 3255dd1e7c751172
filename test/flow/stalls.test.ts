import { spawnSync } from 'node:child_process';
import { Connection, sendGathered, whenLate } from '@piecework/protocol';
import { expect, onTestFinished, test } from 'vitest';
import { Stalls } from '../../packages/worker/src/report/stalls.js';
import { gate, Log, mastersOf } from '../support/flow.js';
import { testConnection } from '../support/redis.js';
import { until } from '../support/until.js';

const STALL_MS = 50;

/** A question of another process, answered by the server only when it has answered what came before. */
const ASK = `
  import { Redis } from 'ioredis';
  const client = new Redis(JSON.parse(process.argv[1]));
  await client.ping();
  client.disconnect();`;

/** The event loop stands still until the server has answered all that was sent before. */
function standStill(address: string): void {
  sendGathered();
  const ask = ['--input-type=module', '--eval', ASK, address];
  expect(spawnSync(process.execPath, ask, { stdio: 'inherit' }).status).toBe(0);
}

async function opened() {
  const redis = await testConnection();
  const connection = Connection.open(redis);
  onTestFinished(() => connection.close());
  await connection.check();
  const [server] = mastersOf(connection);
  await server!.ping();
  const { host, port } = server!.options;
  const address = JSON.stringify(typeof redis === 'string' ? redis : { host, port });
  return { server: server!, address };
}

test('a server is not called late when a busy event loop read its answer late', async () => {
  const { server, address } = await opened();
  let late = 0;
  const answered = whenLate(STALL_MS, () => {
    late += 1;
  });
  const answer = server.ping().finally(answered);
  standStill(address);
  await answer;
  await new Promise(setImmediate);
  expect(late).toBe(0);
  whenLate(STALL_MS, () => {
    late += 1;
  });
  await until(() => late === 1);
});

test('a call is not called stalled when a busy event loop read its answer late', async () => {
  const { server, address } = await opened();
  const log = new Log();
  const emitted: unknown[] = [];
  const events = { emitError: (error: unknown) => void emitted.push(error), measuring: {} };
  const stalls = new Stalls(log as never, events as never, STALL_MS);
  const call = async (send: () => Promise<unknown>) => {
    const begun = stalls.begin('some');
    await send().finally(() => stalls.end(begun));
  };

  const quick = call(() => server.ping());
  // The event loop stands still for far longer than that, and until the answer is there.
  const begun = performance.now();
  standStill(address);
  expect(performance.now() - begun).toBeGreaterThan(STALL_MS);
  await quick;
  expect(emitted).toEqual([]);

  const held = gate();
  const slow = call(() => held.opened);
  await until(() => emitted.length > 0);
  held.open();
  await slow;
  expect(emitted).toHaveLength(1);
  expect(log.lines.filter(({ what }) => /^calls stall/.test(what))).toHaveLength(1);
});
