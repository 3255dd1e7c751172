import { Agenda } from '@piecework/protocol';
import { describe, expect } from 'vitest';
import { type Flow, numbers, test } from '../support/flow.js';
import { besides, type RestartedFleet, startRestarted } from '../support/restarted.js';
import { until } from '../support/until.js';

/*
 * Sub-requests that kill the process that runs them, next to innocent ones. Workers die and are
 * replaced; the test tends the request more often than the agenda would.
 */

const KILLER = { kill: 'always' };
/** No lease is lost but by a death: a machine that stands still for a second makes no suspects. */
const OPTIONS = { concurrency: 20, leaseMs: 2_000, handle: { minMs: 5, maxMs: 30 } };
const WAIT_MS = 90_000;

/** Waits, and has the request tended meanwhile, so that leases that ended are noticed at once. */
async function tending(flow: Flow, id: string, what: string, condition: () => Promise<boolean>) {
  const agenda = new Agenda(flow.connection, flow.queueCommands);
  const tend = async () => {
    const { generation = 0 } = (await flow.request(id).state()) ?? {};
    await flow.queueCommands.scheduleTend(id, generation, 0);
    await agenda.tick();
  };
  await until(async () => (await condition()) || (await tend()), {
    what,
    timeoutMs: WAIT_MS,
    everyMs: 200,
  });
}

/** Waits for the end of a request. */
async function complete(flow: Flow, id: string) {
  const ended = async () => (await flow.request(id).state())?.status === 'complete';
  await tending(flow, id, `request ${id} is complete`, ended);
  return flow.complete(id);
}

/** The errors of those that failed, by index. */
async function failures(flow: Flow, id: string): Promise<Record<number, string>> {
  const kept = await flow.connection.client.hgetall(flow.request(id).keys.failed);
  return Object.fromEntries(
    Object.entries(kept)
      .filter(([field]) => !field.includes(':'))
      .map(([index, error]) => [index, JSON.parse(error).name]),
  );
}

/** As a suspect it ran in a quarter of the slots, and at last it was the only one in its process. */
async function ranAlone(fleet: RestartedFleet, request: string, index: number): Promise<void> {
  const chances = (await fleet.logs())
    .flatMap((log) => log.map((line, at) => ({ log, line, at })))
    .filter(({ line }) => line.what === 'start' && line.request === request)
    .filter(({ line }) => line.index === index && line.crashes >= 2)
    .sort((a, b) => a.line.crashes - b.line.crashes);
  for (const { log, at } of chances)
    expect(besides(log, at), 'others that ran').toBeLessThan(OPTIONS.concurrency / 4);
  const last = chances.at(-1);
  if (!last) throw new Error('it never ran as a suspect');
  expect(besides(last.log, last.at), 'others that ran').toBe(0);
  expect(last.log.slice(last.at + 1), 'what came after it').toEqual([]);
  // In a company of five, and alone.
  expect(chances.length, 'times that it ran as a suspect').toBeLessThanOrEqual(2);
}

describe('a sub-request that always kills its process', () => {
  test('fails while a hundred innocent ones beside it succeed', { timeout: 240_000 }, async ({
    flow,
  }) => {
    const fleet = await startRestarted(flow, 2, OPTIONS);
    const items = [...numbers(50), KILLER, ...numbers(50, 50)];
    const { id } = await flow.producer().submit(items, { limit: 60 });
    expect(await complete(flow, id)).toMatchObject({
      outcome: 'failed',
      total: 101,
      succeeded: 100,
      failed: 1,
    });
    expect(await failures(flow, id)).toEqual({ 50: 'CrashError' });
    await ranAlone(fleet, id, 50);
    expect(fleet.deaths).toBeLessThanOrEqual(4);
    await fleet.close();
  });

  test('and another one fail both, and nobody else', { timeout: 240_000 }, async ({ flow }) => {
    const fleet = await startRestarted(flow, 2, OPTIONS);
    const items = [KILLER, ...numbers(100), KILLER];
    const { id } = await flow.producer().submit(items, { limit: 60 });
    expect(await complete(flow, id)).toMatchObject({ succeeded: 100, failed: 2 });
    expect(await failures(flow, id)).toEqual({ 0: 'CrashError', 101: 'CrashError' });
    await ranAlone(fleet, id, 0);
    await ranAlone(fleet, id, 101);
    await fleet.close();
  });

  test('takes nobody of another request with it', { timeout: 240_000 }, async ({ flow }) => {
    const fleet = await startRestarted(flow, 2, OPTIONS);
    const producer = flow.producer();
    const source = (async function* () {
      // Work goes on beside it as long as it lives.
      for (let i = 0; ; i += 1) {
        const state = await flow.request(flow.id('killer')).state();
        if (i >= 100 && state?.status === 'complete') return;
        yield i;
      }
    })();
    const submitting = producer.submit(source, { id: flow.id('innocent'), limit: 20, window: 200 });
    const killer = await producer.submit([KILLER], { id: flow.id('killer'), limit: 1 });
    expect(await complete(flow, killer.id)).toMatchObject({ failed: 1, succeeded: 0 });
    const innocent = await submitting;
    const { total } = innocent;
    expect(await complete(flow, innocent.id)).toMatchObject({
      outcome: 'succeeded',
      succeeded: total,
      failed: 0,
    });
    await ranAlone(fleet, killer.id, 0);
    await fleet.close();
  });
});

test('a sub-request that kills only when it runs isolated fails, and no other does', {
  timeout: 240_000,
}, async ({ flow }) => {
  const fleet = await startRestarted(flow, 1, OPTIONS);
  const { id } = await flow.producer().submit([{ kill: 'alone' }, ...numbers(60)], { limit: 10 });
  for (const crashes of [0, 1]) {
    const runs = async () =>
      (await fleet.logs()).flat().some((one) => one.index === 0 && one.crashes === crashes);
    await tending(flow, id, `it runs after ${crashes} crashes`, runs);
    fleet.kill();
  }
  expect(await complete(flow, id)).toMatchObject({ succeeded: 60, failed: 1 });
  expect(await failures(flow, id)).toEqual({ 0: 'CrashError' });
  await ranAlone(fleet, id, 0);
  await fleet.close();
});

test('with one crash allowed nobody gets a second chance', {
  timeout: 240_000,
}, async ({ flow }) => {
  // Here an innocent one would fail with a lease that is lost while it runs.
  const fleet = await startRestarted(flow, 1, { ...OPTIONS, concurrency: 1, leaseMs: 8_000 });
  const items = [...numbers(5), KILLER, ...numbers(5)];
  const { id } = await flow.producer().submit(items, { limit: 1, maxCrashes: 1 });
  expect(await complete(flow, id)).toMatchObject({ succeeded: 10, failed: 1 });
  expect(fleet.deaths).toBe(1);
  await fleet.close();
});
