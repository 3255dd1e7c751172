import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WorkerFleet } from '@piecework/cli';
import { decodeError, type KeptError } from '@piecework/protocol';
import { describe, expect } from 'vitest';
import { startWorker, tickNow } from '../support/fleet.js';
import { type Flow, numbers, test } from '../support/flow.js';
import { testUrl } from '../support/redis.js';
import { type Line, startRestarted } from '../support/restarted.js';
import { until } from '../support/until.js';

/*
 * Sub-requests that end their process, how few runs it takes to tell them from those beside them, and
 * what is known of them in the end.
 */

const WAIT_MS = 90_000;

async function complete(flow: Flow, id: string) {
  const ended = async () => {
    if ((await flow.request(id).state())?.status === 'complete') return true;
    await tickNow(flow, id);
    return false;
  };
  await until(ended, { what: `request ${id} is complete`, timeoutMs: WAIT_MS, everyMs: 200 });
  return flow.complete(id);
}

/** The errors of those that failed, by index. */
async function errors(flow: Flow, id: string): Promise<Record<string, KeptError>> {
  const kept = await flow.connection.client.hgetall(flow.request(id).keys.failed);
  return Object.fromEntries(
    Object.entries(kept)
      .filter(([field]) => !field.includes(':'))
      .map(([index, error]) => [index, decodeError(error)]),
  );
}

const startsOf = (logs: readonly Line[][], index: number) =>
  logs.flat().filter((line) => line.what === 'start' && line.index === index);

const OPTIONS = { leaseMs: 2_000, handle: { minMs: 5, maxMs: 30 } };

describe('of many that run together', () => {
  test('three guilty ones are found in a few runs, and nobody else fails', {
    timeout: 240_000,
  }, async ({ flow }) => {
    const fleet = await startRestarted(flow, 2, { ...OPTIONS, concurrency: 32 });
    const killer = { kill: 'always' };
    const items = [killer, ...numbers(60), killer, ...numbers(60), killer];
    const { id } = await flow.producer().submit(items, { limit: 64 });
    expect(await complete(flow, id)).toMatchObject({ total: 123, succeeded: 120, failed: 3 });
    const failed = await errors(flow, id);
    expect(Object.keys(failed)).toEqual(['0', '61', '122']);
    const logs = await fleet.logs();
    for (const index of [0, 61, 122]) {
      // Twice among all, then in company of at most 8, 2, and alone.
      expect(startsOf(logs, index).length).toBeLessThanOrEqual(5);
      expect(failed[index]).toMatchObject({ name: 'CrashError' });
    }
    await fleet.close();
  });

  test('one that only ends its process beside others succeeds once it is isolated', {
    timeout: 240_000,
  }, async ({ flow }) => {
    const fleet = await startRestarted(flow, 1, { ...OPTIONS, concurrency: 16 });
    const items = [...numbers(20), { kill: 'beside others' }, ...numbers(20)];
    const { id } = await flow.producer().submit(items, { limit: 16 });
    expect(await complete(flow, id)).toMatchObject({ succeeded: 41, failed: 0 });
    await fleet.close();
  });
});

/** A fleet of one process with this handler, and leases that nobody waits for. */
async function fleetWith(flow: Flow, handler: string): Promise<WorkerFleet> {
  const folder = await mkdtemp(join(tmpdir(), 'piecework-ends-'));
  flow.after(() => rm(folder, { recursive: true }));
  const file = join(folder, 'handler.mjs');
  await writeFile(file, `export default () => ${handler};`);
  const { queue } = flow;
  const flags = ['--lease-ms', '3600000', '--log-level', 'silent'];
  const fleet = await WorkerFleet.start({ redis: await testUrl(), queue, handler: file, flags });
  flow.after(() => fleet.close());
  return fleet;
}

describe('a sub-request', () => {
  test.for<[string, object]>([
    ['process.exit(7)', { exitCode: 7 }],
    ["process.kill(process.pid, 'SIGKILL')", { signal: 'SIGKILL', outOfMemory: 'perhaps' }],
  ])(
    'fails with what its parent saw, and nobody waits for its lease: %s',
    async ([handler, known], { flow }) => {
      const fleet = await fleetWith(flow, handler);
      const [pid] = fleet.pids;
      const { id } = await flow.producer().submit([1], { maxCrashes: 1 });
      expect(await complete(flow, id)).toMatchObject({ failed: 1 });
      expect((await errors(flow, id))[0]).toMatchObject({ name: 'CrashError', pid, ...known });
      // A killed worker cannot strike itself out.
      const { worker } = (await errors(flow, id))[0] as KeptError;
      await flow.queueCommands.deregister(worker as string);
    },
  );

  test('that blocks its event loop fails with that', { timeout: 120_000 }, async ({ flow }) => {
    const maxBlockMs = 4_000;
    const stuck = await startWorker(flow, { told: 'block' }, { concurrency: 1, maxBlockMs });
    const producer = flow.producer();
    const { id } = await producer.submit([7], { maxCrashes: 1 });
    // Its ticks would withdraw permits that the thread, on a busy machine, begins to renew too late.
    await producer.close();
    const noted = async () =>
      `cause:${stuck.id}` in ((await flow.request(id).inspect())?.state ?? {});
    await until(noted, { what: 'the thread has given it up', timeoutMs: WAIT_MS });
    expect(await complete(flow, id)).toMatchObject({ failed: 1 });
    const { blockedMs, message } = (await errors(flow, id))[0] as KeptError;
    expect(blockedMs).toBeGreaterThanOrEqual(maxBlockMs);
    expect(message).toContain('had blocked its event loop for');
    stuck.kill('SIGKILL');
  });
});
