import type { HandlerContext } from '@piecework/worker';
import { Admin } from 'piecework';
import { describe, expect } from 'vitest';
import { type Flow, gate, heard, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

/*
 * What a worker does with a suspect. Its crash before is real: a holder with a lease of 1 ms, and a
 * look at the request after that.
 */

/** A request of `items` whose first sub-request is a suspect. */
async function suspected(flow: Flow, name: string, items: number) {
  const { id, generation } = await flow
    .producer()
    .submit(numbers(items), { id: flow.id(name), maxCrashes: 2 });
  const request = flow.request(id);
  await request.enter({
    generation,
    worker: 'dead',
    op: 1,
    want: 1,
    leaseMs: 1,
    tasks: '*',
    epochs: [],
  });
  await request.read('dead', 1);
  await until(async () => {
    await request.tend(generation, '');
    return (await request.inspect())?.inFlight === 0;
  });
  return { id, generation, request };
}

/** Handlers that write down when they start and end; those of `gates` wait. */
function diary(gates: Record<string, Promise<void>>) {
  const events: string[] = [];
  const handler = async (n: number, { requestId, crashes }: HandlerContext) => {
    const who = `${requestId.split('.').pop()} ${n}`;
    events.push(`start ${who}${crashes > 0 ? ` after ${crashes}` : ''}`);
    await gates[who];
    events.push(`end ${who}`);
    return n;
  };
  return { events, handler };
}

/**
 * A worker that holds a suspect of `items` and cannot start it, since `slow 0` runs until its gate
 * opens. All its slots are taken while the suspect is made, so that it cannot come first.
 */
async function waitingSuspect(flow: Flow, items: number) {
  const [slow, fill] = [gate(), gate()];
  const { events, handler } = diary({
    'slow 0': slow.opened,
    ...Object.fromEntries([1, 2, 3].map((n) => [`slow ${n}`, fill.opened])),
  });
  const other = await flow.producer().submit(numbers(4), { id: flow.id('slow'), priority: 0 });
  const worker = flow.worker({ concurrency: 4, handler });
  await worker.start();
  await until(() => events.length === 4, { what: 'every slot is taken' });
  const suspect = await suspected(flow, 'suspected', items);
  fill.open();
  await heldBy(flow, suspect.id, worker.id);
  const before = [...events];
  expect(before.toSorted()).toEqual([
    ...[1, 2, 3].map((n) => `end slow ${n}`),
    ...[0, 1, 2, 3].map((n) => `start slow ${n}`),
  ]);
  return { ...suspect, slow, worker, other: other.id, since: () => events.slice(before.length) };
}

/** A worker holds one sub-request of the request, and has not started it. */
const heldBy = (flow: Flow, id: string, worker: string) =>
  until(async () => (await flow.request(id).pending(worker, 10)).length === 1, {
    what: 'the worker has taken the suspect',
  });

// Who of two requests comes first is certain only where one server answers for both.
describe('a suspect', { tags: 'one-server' }, () => {
  test('runs when nothing else runs in its process, of any request, and nothing starts beside it', async ({
    flow,
  }) => {
    const { id, slow, other, since } = await waitingSuspect(flow, 4);
    const late = await flow.producer().submit([0], { id: flow.id('late'), priority: 0 });
    expect(since()).toEqual([]);
    slow.open();
    for (const one of [id, other, late.id]) {
      expect(await flow.complete(one)).toMatchObject({ outcome: 'succeeded', failed: 0 });
    }
    expect(since().slice(0, 3)).toEqual([
      'end slow 0',
      'start suspected 0 after 1',
      'end suspected 0',
    ]);
    expect(since()).toHaveLength(11);
  });

  test('goes to another process when what runs beside it does not end', async ({ flow }) => {
    const { id, slow, other, worker, since } = await waitingSuspect(flow, 2);
    const { events, handler } = diary({});
    const idle = flow.worker({ concurrency: 4, handler });
    await idle.start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 2, failed: 0 });
    expect(events).toContain('start suspected 0 after 1');
    expect(worker.running).toBe(1);
    // The process whose handler hangs works on.
    await idle.close();
    const late = await flow.producer().submit([0], { id: flow.id('late') });
    expect(await flow.complete(late.id)).toMatchObject({ succeeded: 1 });
    expect(since()).toContain('end late 0');
    slow.open();
    expect(await flow.complete(other)).toMatchObject({ succeeded: 4 });
  });

  test('is given back when its worker closes before it ran', async ({ flow }) => {
    const { id, request, slow, worker, other, since } = await waitingSuspect(flow, 1);
    const closing = worker.close();
    await until(async () => (await request.inspect())?.ready === 1, { what: 'it is given back' });
    expect(since()).toEqual([]);
    slow.open();
    await closing;
    expect(await flow.complete(other)).toMatchObject({ succeeded: 4 });
    const { events, handler } = diary({});
    await flow.worker({ handler }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
    expect(events).toContain('start suspected 0 after 1');
  });

  test('that is dropped while it waits holds up nobody', async ({ flow }) => {
    const { id, slow, other, since } = await waitingSuspect(flow, 1);
    // Told, it need not wait for its next renewal.
    await heard(flow);
    await using admin = new Admin({ redis: flow.connection, queue: flow.queue });
    await admin.drop(id);
    const late = await flow.producer().submit([0], { id: flow.id('late') });
    expect(await flow.complete(late.id)).toMatchObject({ succeeded: 1 });
    expect(since()).toEqual(['start late 0', 'end late 0']);
    slow.open();
    expect(await flow.complete(other)).toMatchObject({ succeeded: 4 });
  });

  test('shares its process with no other one, and each gets its turn', async ({ flow }) => {
    const { events, handler } = diary({});
    const first = await suspected(flow, 'first', 2);
    const second = await suspected(flow, 'second', 2);
    await flow.worker({ concurrency: 4, handler }).start();
    for (const { id } of [first, second]) {
      expect(await flow.complete(id)).toMatchObject({ succeeded: 2, failed: 0 });
    }
    for (const name of ['first', 'second']) {
      const at = events.indexOf(`start ${name} 0 after 1`);
      expect(events[at + 1]).toBe(`end ${name} 0`);
    }
  });
});

test('a settle of an ended generation takes nothing of the next one', async ({ flow }) => {
  const slow = gate();
  const id = flow.id('again');
  let lives = 0;
  const handler = async (n: number) => {
    if (lives === 1) await slow.opened;
    return n;
  };
  const producer = flow.producer();
  const first = await producer.submit(numbers(9), { id, limit: 1 });
  lives = 1;
  const worker = flow.worker({ concurrency: 1, leaseMs: 3_600_000, handler });
  await worker.start();
  await until(() => worker.running === 1);
  await flow.request(id).drop();
  await flow.queueCommands.finish(id, first.generation, 'dropped');
  const second = await producer.submit(numbers(9), { id, limit: 1 });
  expect(second.generation).toBeGreaterThan(first.generation);
  lives = 2;
  slow.open();
  // Whoever had to wait for somebody to look would wait for the first look, in twenty seconds.
  await until(async () => (await flow.request(id).state())?.status === 'complete', {
    timeoutMs: 12_000,
    what: 'the next life is complete before anybody has looked',
  });
  expect(await flow.complete(id)).toMatchObject({ succeeded: 9, failed: 0 });
});
