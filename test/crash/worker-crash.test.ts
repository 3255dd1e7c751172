import { Agenda } from '@piecework/protocol';
import type { HandlerContext } from '@piecework/worker';
import { describe, expect } from 'vitest';
import { expand } from '../support/compact.js';
import { LEASE_MS, leaseOver, startWorker } from '../support/fleet.js';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

/** Of one that is to hold what it has until it is killed, also on a machine that stands still for seconds. */
const KEPT = { leaseMs: 6 * LEASE_MS };

const inFlight = async (flow: Flow, id: string) => (await flow.request(id).inspect())?.inFlight;

describe('a worker process that is killed', () => {
  test('leaves its sub-requests to the rest of the fleet', async ({ flow }) => {
    // It lives until the other one has done the rest, and that one never loses its lease.
    const dead = await startWorker(flow, { hold: true }, KEPT);
    const { id } = await flow.producer().submit(numbers(200), { limit: 12 });
    await until(async () => (await dead.started()).length === 5);
    const alive = await startWorker(flow, { minMs: 1, maxMs: 3 }, { leaseMs: 30 * LEASE_MS });
    await until(async () => (await flow.request(id).state())?.succeeded === 195);
    expect(await inFlight(flow, id)).toBe(5);
    dead.kill('SIGKILL');
    await dead.ended;
    await leaseOver(flow, id, dead.id);
    expect(await flow.complete(id)).toMatchObject({
      outcome: 'succeeded',
      succeeded: 200,
      total: 200,
    });
    expect([...(await flow.results(id)).keys()].sort((a, b) => a - b)).toEqual(numbers(200));
    expect((await alive.started()).sort((a, b) => a - b)).toEqual(numbers(200));
    alive.kill('SIGTERM');
    expect(await alive.ended).toBe(0);
  });

  test('and was the only one leaves them to the next that comes', async ({ flow }) => {
    const dead = await startWorker(flow, { hold: true }, { ...KEPT, concurrency: 20 });
    const { id } = await flow.producer().submit(numbers(20), { limit: 20 });
    await until(async () => (await dead.started()).length === 20);
    dead.kill('SIGKILL');
    await dead.ended;
    await leaseOver(flow, id, dead.id);
    expect(await flow.request(id).inspect()).toMatchObject({ inFlight: 0, ready: 20 });
    const attempts: number[] = [];
    const handler = (n: number, { attempt }: { attempt: number }) => {
      attempts.push(attempt);
      return n;
    };
    await flow.worker({ handler }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 20, failed: 0 });
    expect(attempts).toEqual(Array(20).fill(1));
  });

  test('leaves the checkpoints that it had sent to who comes next', async ({ flow }) => {
    const dead = await startWorker(flow, { hold: true, checkpoint: { row: 7 } }, KEPT);
    const { id } = await flow.producer().submit(numbers(5));
    const { client } = flow.connection;
    const { tries } = flow.request(id).keys;
    await until(async () => (await client.hlen(tries)) === 5, { what: 'all five are kept' });
    dead.kill('SIGKILL');
    await dead.ended;
    await leaseOver(flow, id, dead.id);
    const seen: unknown[] = [];
    const handler = (n: number, { checkpointed }: HandlerContext) => {
      seen.push(checkpointed);
      return n;
    };
    await flow.worker({ handler }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 5, failed: 0 });
    expect(seen).toEqual(Array(5).fill({ row: 7 }));
  });

  test('again and again loses nothing and counts nothing twice', {
    timeout: 240_000,
  }, async ({ flow }) => {
    const id = flow.id('again');
    let deaths = 0;
    const source = (function* () {
      for (let i = 0; deaths < 5; i += 1) yield i;
    })();
    const submitting = flow.producer().submit(source, { id, limit: 30, window: 200 });
    let alive = await startWorker(flow, { minMs: 1, maxMs: 30 }, { concurrency: 10 });
    for (; deaths < 5; deaths += 1) {
      const done = Number((await flow.request(id).state())?.succeeded);
      // Whoever dies may take all tokens along, which two audits find.
      await until(async () => Number((await flow.request(id).state())?.succeeded) > done + 100, {
        timeoutMs: 40_000,
      });
      const dead = alive;
      alive = await startWorker(flow, { minMs: 1, maxMs: 30 }, { concurrency: 10 });
      dead.kill('SIGKILL');
      await dead.ended;
      await leaseOver(flow, id, dead.id);
    }
    const { total } = await submitting;
    const state = await flow.complete(id, 45_000);
    expect(state).toMatchObject({ outcome: 'succeeded', succeeded: total, failed: 0, total });
    expect([...(await flow.results(id)).keys()].sort((a, b) => a - b)).toEqual(numbers(total));
    alive.kill('SIGTERM');
    expect(await alive.ended).toBe(0);
  });
});

describe('a worker process that freezes beyond its lease', () => {
  /** What it runs when it freezes has not ended by then, however late the signal comes. */
  const HELD = { told: 'run' };

  /** Freezes a worker, lets another take over without finishing, and wakes the first one up. */
  async function frozen(flow: Flow, handle: object) {
    const sleeper = await startWorker(flow, handle, { concurrency: 4 });
    const { id } = await flow.producer().submit(numbers(8), { limit: 4 });
    await until(async () => (await sleeper.started()).length === 4);
    sleeper.kill('SIGSTOP');
    await leaseOver(flow, id, sleeper.id);
    const hold = gate();
    let taken = 0;
    const other = flow.worker({
      concurrency: 4,
      handler: async (n: number) => {
        taken += 1;
        await hold.opened;
        return n;
      },
    });
    await other.start();
    await until(() => taken === 4, { what: 'the other one has taken over' });
    return { id, sleeper, other, hold, taken: () => taken };
  }

  test('may still succeed, which counts once', async ({ flow }) => {
    const { id, sleeper, hold } = await frozen(flow, HELD);
    await sleeper.tell();
    sleeper.kill('SIGCONT');
    await until(async () => Number((await flow.request(id).state())?.succeeded) >= 4, {
      what: 'the successes of the sleeper are in',
    });
    hold.open();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 8, failed: 0, total: 8 });
    expect((await flow.results(id)).size).toBe(8);
    sleeper.kill('SIGTERM');
    expect(await sleeper.ended).toBe(0);
  });

  test('cannot fail what others run by now, nor take it from them', async ({ flow }) => {
    const { id, sleeper, hold, other } = await frozen(flow, { ...HELD, fail: true });
    await sleeper.tell();
    sleeper.kill('SIGCONT');
    sleeper.kill('SIGTERM');
    expect(await sleeper.ended).toBe(0);
    expect(other.running).toBe(4);
    expect(await flow.request(id).state()).toMatchObject({ succeeded: 0, failed: 0 });
    hold.open();
    expect(await flow.complete(id)).toMatchObject({
      outcome: 'succeeded',
      succeeded: 8,
      failed: 0,
    });
  });
});

test('a worker whose permits were withdrawn tells its handlers, and takes part again', async ({
  flow,
}) => {
  let aborted = 0;
  let runs = 0;
  const worker = flow.worker({
    concurrency: 3,
    leaseMs: LEASE_MS,
    handler: async (n: number, { signal }) => {
      runs += 1;
      if (runs > 3) return n;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      aborted += 1;
      throw signal.reason;
    },
  });
  await worker.start();
  const { id, generation } = await flow.producer().submit(numbers(3), { limit: 3 });
  await until(() => runs === 3);
  // As a tend would, after a lease that this process did not see end.
  const { request } = flow.request(id).keys;
  const { client } = flow.connection;
  await expand(flow.request(id));
  await client.hdel(request, `permits:${worker.id}`, `lease:${worker.id}`);
  await client.hset(request, 'granted', 0);
  await until(() => aborted === 3, { what: 'all three are told' });
  await flow.queueCommands.scheduleTend(id, generation, 0);
  await new Agenda(flow.connection, flow.queueCommands).tick();
  expect(await flow.complete(id)).toMatchObject({ succeeded: 3, failed: 0 });
  expect(flow.log.lines.map(({ what }) => what)).toContain('lease lost');
});

test('a settle tells that the permits were withdrawn, before the next renewal would', async ({
  flow,
}) => {
  let aborted = 0;
  const first = gate();
  const worker = flow.worker({
    concurrency: 3,
    leaseMs: 3_600_000,
    handler: async (n: number, { signal }) => {
      if (n === 0) return first.opened;
      if (aborted > 0) return n;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      aborted += 1;
      throw signal.reason;
    },
  });
  await worker.start();
  const { id, generation } = await flow.producer().submit(numbers(3), { limit: 3 });
  await until(() => worker.running === 3);
  const { request } = flow.request(id).keys;
  const { client } = flow.connection;
  await expand(flow.request(id));
  await client.hdel(request, `permits:${worker.id}`, `lease:${worker.id}`);
  await client.hset(request, 'granted', 0);
  first.open();
  await until(() => aborted === 2, { what: 'the other two are told' });
  await flow.queueCommands.scheduleTend(id, generation, 0);
  await new Agenda(flow.connection, flow.queueCommands).tick();
  expect(await flow.complete(id)).toMatchObject({ succeeded: 3, failed: 0 });
});
