import { ControlCommands } from '@piecework/protocol';
import type { HandlerContext } from '@piecework/worker';
import { Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

/*
 * In what company a worker runs suspects: at most so many at a time, and nothing else beside them. Their
 * crashes before are real: holders with a lease of 1 ms, and a look at the request after that.
 */

interface Suspected {
  /** How many of its first sub-requests are suspects. */
  readonly suspects: number;
  /** In what company they crashed once more. @default they did not */
  readonly company?: number;
  readonly items?: number;
  readonly limit?: number;
}

/** A request of which the first sub-requests are suspects. */
async function suspected(flow: Flow, name: string, { suspects, company, items, limit }: Suspected) {
  const given = { id: flow.id(name), maxCrashes: 2, limit: 100 };
  const { id, generation } = await flow.producer().submit(numbers(items ?? suspects), given);
  const request = flow.request(id);
  const nothingHeld = async () => {
    await request.tend(generation, '');
    return (await request.inspect())?.inFlight === 0;
  };
  await request.enter({
    generation,
    worker: 'dead',
    op: 1,
    want: suspects,
    leaseMs: 1,
    tasks: '*',
    epochs: [],
  });
  await request.read('dead', suspects);
  await until(nothingHeld);
  if (limit !== undefined)
    await new ControlCommands(flow.connection, id).update(generation, { limit });
  if (company === undefined) return id;
  // A lease that lasts until it is told to be over: these calls may take as long as they need.
  await request.enter({
    generation,
    worker: 'dead too',
    op: 1,
    want: suspects,
    leaseMs: 60_000,
    tasks: '*',
    epochs: [],
  });
  const taken = await request.take(generation, 'dead too', suspects);
  if (typeof taken === 'string') throw new Error(taken);
  await request.runAlone(
    generation,
    'dead too',
    company,
    taken.entries.map(({ entry }) => entry),
  );
  await request.cause(generation, 'dead too', {}, true);
  await until(nothingHeld);
  return id;
}

/** Handlers that say who ran beside whom. */
function companies() {
  const running = new Set<string>();
  const seen: {
    readonly who: string;
    readonly suspect: boolean;
    beside: number;
    innocent: number;
  }[] = [];
  const suspectsNow = new Set<string>();
  const handler = async (n: number, { requestId, crashes }: HandlerContext) => {
    const who = `${requestId} ${n}`;
    running.add(who);
    if (crashes > 0) suspectsNow.add(who);
    const one = { who, suspect: crashes > 0, beside: 0, innocent: 0 };
    seen.push(one);
    for (let turn = 0; turn < 5; turn += 1) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      one.beside = Math.max(one.beside, running.size);
      one.innocent = Math.max(one.innocent, running.size - suspectsNow.size);
    }
    running.delete(who);
    suspectsNow.delete(who);
    return n;
  };
  const suspects = () => seen.filter(({ suspect }) => suspect);
  return { seen, suspects, handler };
}

describe('suspects', { tags: 'one-server' }, () => {
  test('run together in a quarter of the slots, and nothing else beside them', async ({ flow }) => {
    const id = await suspected(flow, 'first', { suspects: 12, items: 40 });
    const { suspects, handler } = companies();
    await flow.worker({ concurrency: 16, handler }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 40, failed: 0 });
    expect(suspects()).toHaveLength(12);
    for (const { innocent } of suspects()) expect(innocent, 'others that ran').toBe(0);
    expect(Math.max(...suspects().map(({ beside }) => beside))).toBe(4);
  });

  test('run in a quarter of the company in which they crashed', async ({ flow }) => {
    const id = await suspected(flow, 'again', { suspects: 8, company: 8 });
    const { suspects, handler } = companies();
    await flow.worker({ concurrency: 40, handler }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 8, failed: 0 });
    expect(Math.max(...suspects().map(({ beside }) => beside))).toBe(2);
  });

  test('of several requests run together, and no more of them than of one', async ({ flow }) => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const ids: string[] = [];
    for (const name of names) ids.push(await suspected(flow, name, { suspects: 1 }));
    const { suspects, handler } = companies();
    await flow.worker({ concurrency: 16, handler }).start();
    for (const id of ids) expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
    const most = Math.max(...suspects().map(({ beside }) => beside));
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(4);
  });

  test('that have to run isolated do, also beside suspects that need not', async ({ flow }) => {
    const alone = await suspected(flow, 'alone', { suspects: 2, company: 2 });
    const free = await suspected(flow, 'free', { suspects: 4 });
    const { suspects, handler } = companies();
    await flow.worker({ concurrency: 16, handler }).start();
    for (const id of [alone, free])
      expect(await flow.complete(id)).toMatchObject({ outcome: 'succeeded' });
    for (const { who, beside } of suspects()) if (who.startsWith(alone)) expect(beside).toBe(1);
  });

  test('take no more of their request than its limit', async ({ flow }) => {
    const id = await suspected(flow, 'limited', { suspects: 6, limit: 2 });
    const { suspects, handler } = companies();
    await flow.worker({ concurrency: 40, handler }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 6 });
    expect(Math.max(...suspects().map(({ beside }) => beside))).toBe(2);
  });

  test('that wait are given back when their worker closes', async ({ flow }) => {
    const [slow, fill] = [gate(), gate()];
    let ran = 0;
    const handler = async (n: number, { requestId }: HandlerContext) => {
      if (requestId !== other.id) ran += 1;
      else await (n === 0 ? slow : fill).opened;
    };
    // All slots are taken while the suspects are made, so that they cannot come first.
    const other = await flow
      .producer()
      .submit(numbers(16), { id: flow.id('slow'), priority: 0, limit: 16 });
    const worker = flow.worker({ concurrency: 16, handler });
    await worker.start();
    await until(() => worker.running === 16, { what: 'every slot is taken' });
    const id = await suspected(flow, 'waiting', { suspects: 3 });
    fill.open();
    const held = () => flow.request(id).pending(worker.id, 10);
    await until(async () => (await held()).length === 3, { what: 'the suspects are taken' });
    const said = `sub-requests of ${id} whose workers died wait to run alone in it, until the handlers beside them end`;
    expect(worker.health()).toMatchObject({ live: true, ready: false, why: [said] });
    const closing = worker.close();
    await until(async () => (await flow.request(id).inspect())?.ready === 3, {
      what: 'they are given back',
    });
    expect(ran).toBe(0);
    slow.open();
    await closing;
    expect(await flow.complete(other.id)).toMatchObject({ succeeded: 16 });
  });

  test('that wait or run alone are named by their worker, in the status of their request and of others', async ({
    flow,
  }) => {
    const [slow, fill, alone] = [gate(), gate(), gate()];
    const handler = async (n: number, { requestId }: HandlerContext) => {
      if (requestId === other.id) await (n === 0 ? slow : fill).opened;
      if (requestId === id) await alone.opened;
    };
    const producer = flow.producer();
    // All slots are taken while the suspect is made, so that it cannot come first.
    const other = await producer.submit(numbers(4), { id: flow.id('slow'), priority: 0 });
    const worker = flow.worker({ concurrency: 4, handler });
    await worker.start();
    await until(() => worker.running === 4, { what: 'every slot is taken' });
    const id = await suspected(flow, 'suspect', { suspects: 1 });
    fill.open();
    const pw = new Piecework({ redis: flow.redis, queue: flow.queue });
    flow.after(() => pw.close());
    const why = async (of: string) => (await pw.request(of).status()).why;
    const eventually = (of: string, text: string) =>
      until(
        async () => {
          const w = await why(of);
          return w.includes(text);
        },
        { what: text, timeoutMs: 20_000 },
      );
    await eventually(id, `wait to run alone on worker ${worker.id}, until the handlers beside`);
    slow.open();
    await flow.complete(other.id);
    const said = `sub-requests of ${id} whose workers died run alone in it`;
    await until(() => worker.health().why.includes(said));
    const next = await producer.submit([1], { id: flow.id('next') });
    await eventually(next.id, `worker ${worker.id} takes no work: ${said}. Wait, or start another`);
    alone.open();
    await Promise.all([flow.complete(id), flow.complete(next.id)]);
    expect(worker.health()).toMatchObject({ ready: true, why: [] });
  });
});
