import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  append,
  back,
  create,
  failure,
  given,
  Hand,
  items,
  LEASE_MS,
  PRODUCER,
  success,
} from '../support/given.js';
import { keysLeft, keysOf } from '../support/leaks.js';
import { inspect, inspectQueue } from '../support/peek.js';

useTestClock();

describe('cancel', () => {
  it('settles at once what nobody has read, and completes when nobody runs any', async () => {
    const scene = await given.filled({ items: 5 });
    expect(await scene.request.cancel(scene.generation)).toEqual({
      verdict: 'complete',
      outcome: 'cancelled',
    });
    expect((await inspect(scene)).counts).toMatchObject({ total: 5, cancelled: 5 });
  });

  it('lets what runs end: a success counts, a failure is cancelled and not tried again', async () => {
    const scene = await given.sealed({ items: 4, attempts: 9 });
    const worker = new Hand(scene);
    const [first, second] = await worker.hold(2);
    expect(await scene.request.cancel(scene.generation)).toEqual({
      verdict: 'cancelling',
      left: 0,
    });
    expect((await inspect(scene)).counts).toMatchObject({ inFlight: 2, cancelled: 2, ready: 0 });
    expect(await worker.read(1)).toEqual([]);
    await worker.settle([success(first!)], { keep: 2, running: 1 });
    expect(await worker.trySettle([failure(second!)])).toMatchObject({ outcome: 'cancelled' });
    expect((await inspect(scene)).counts).toMatchObject({
      succeeded: 1,
      failed: 0,
      cancelled: 3,
    });
  });

  it('settles what waits for its retry', async () => {
    const scene = await given.filled({ items: 1, attempts: 2 });
    const worker = new Hand(scene);
    const [only] = await worker.hold(1);
    await worker.settle([failure(only!, 60_000)], { keep: 0 });
    expect(await scene.request.cancel(scene.generation)).toMatchObject({ verdict: 'complete' });
  });

  it('leaves the rest to the next tends when very many wait', async () => {
    const scene = await given.sealed({ items: 1_100, limit: 1_100 });
    const worker = new Hand(scene);
    const entries = await worker.hold(1_100);
    await worker.settle(
      entries.map((entry) => back(entry)),
      { keep: 0 },
    );
    const { request, generation } = scene;
    expect(await request.cancel(generation)).toEqual({ verdict: 'cancelling', left: 600 });
    await inspect(scene);
    const tended = await request.tend(generation, '');
    expect(tended).toMatchObject({ verdict: 'ok', mint: 0 });
    const { now } = await inspect(scene);
    expect((tended as { next: number }).next).toBeLessThanOrEqual(now + 2);
    expect(await request.tend(generation, '')).toMatchObject({ verdict: 'complete' });
    expect((await inspect(scene)).counts.cancelled).toBe(1_100);
  });

  it('takes permits from nobody who runs something, and all others', async () => {
    const scene = await given.filled({ items: 4, limit: 4 });
    const worker = new Hand(scene);
    await worker.enter(4);
    const [first, second] = await worker.read(2);
    await scene.request.cancel(scene.generation);
    expect(await worker.settle([success(first!)], { keep: 4, running: 1 })).toMatchObject({
      permits: 1,
    });
    expect(await worker.trySettle([success(second!)])).toMatchObject({ verdict: 'complete' });
  });

  it('answers with the outcome of a request that is complete', async () => {
    const scene = await given.sealed({ items: 0 });
    expect(await scene.request.cancel(scene.generation)).toEqual({
      verdict: 'complete',
      outcome: 'succeeded',
    });
  });
});

describe('drop', () => {
  it('leaves a tombstone that goes by itself, and nothing else', async () => {
    const scene = await given.filled({ items: 4, attempts: 2 });
    const worker = new Hand(scene);
    const [first, second] = await worker.hold(3);
    await worker.settle([success(first!), failure(second!, 9_000)], { keep: 1, running: 1 });
    await scene.request.renew(scene.generation, 'worker', LEASE_MS, [2, 1]);
    expect(await scene.request.drop()).toEqual({
      verdict: 'dropped',
      generation: scene.generation,
      queue: scene.queue.keys.queue,
    });
    const { client } = scene.connection;
    expect(await keysOf(client, scene.id)).toEqual([scene.request.keys.request]);
    expect(await keysLeft(scene, 'forever')).not.toContain(scene.request.keys.request);
    const { fields } = await inspect(scene);
    expect(Object.keys(fields).sort()).toEqual(['generation', 'queue', 'status']);
  });

  it('is learnt by the workers at their next call', async () => {
    const scene = await given.filled();
    const worker = new Hand(scene);
    const [first] = await worker.hold(1);
    await scene.request.drop();
    expect(await worker.trySettle([success(first!)])).toEqual({ verdict: 'gone' });
    expect(await worker.renew()).toMatchObject({ verdict: 'gone' });
    expect(await scene.request.read('worker', 1)).toBe('gone');
    expect(await scene.request.take(scene.generation, 'worker', 1)).toBe('gone');
    expect(await keysOf(scene.connection.client, scene.id)).toHaveLength(1);
  });

  it('is published', async () => {
    const scene = await given.filled();
    const { channel } = scene.request.keys;
    const { client } = await scene.connection.openFor(channel, {});
    const heard = new Promise<string>((resolve) => {
      client.on('smessage', (_channel: string, message: string) => resolve(message));
    });
    await client.ssubscribe(channel);
    await scene.request.drop();
    expect(await heard).toBe(`${scene.generation} dropped`);
    client.disconnect();
  });

  it('lets the id be used again, and refuses late calls of the generation before', async () => {
    const scene = await given.filled();
    const { id, generation, queue, request } = scene;
    await request.drop();
    await queue.finish(id, generation, 'dropped');
    const next = await given.filled({ id, queue: queue.keys.queue, items: 1 });
    expect(await create(scene)).toMatchObject({ verdict: 'void' });
    expect(await request.append(generation, PRODUCER, 3, items(1))).toEqual({ verdict: 'gone' });
    expect(await queue.push({ id, generation, mint: 1, epoch: 1, priority: 50 })).toBe('closed');
    expect((await inspect(next)).counts.total).toBe(1);
  });

  it('of an intent that became nothing answers "gone"', async () => {
    const scene = await given.opened();
    moveClock(21_000);
    await scene.request.tend(scene.generation, '');
    expect(await scene.request.drop()).toEqual({ verdict: 'gone' });
  });
});

describe('finish', () => {
  it('remembers when the request ended and counts how', async () => {
    const scene = await given.sealed({ items: 0 });
    const { id, generation, queue } = scene;
    await queue.finish(id, generation, 'succeeded');
    const { open, agenda, history, counters } = await inspectQueue(scene);
    expect({ open, agenda }).toEqual({ open: {}, agenda: {} });
    expect(history[id]).toBeGreaterThanOrEqual(generation);
    expect(counters).toMatchObject({ succeeded: 1 });
    expect(await queue.whereabouts(id)).toEqual({ endedAt: history[id] });
  });

  it('forgets what was dropped, also when it had ended before', async () => {
    const scene = await given.sealed({ items: 0 });
    const { id, generation, queue } = scene;
    await queue.finish(id, generation, 'succeeded');
    await queue.finish(id, generation, 'dropped');
    expect(await keysOf(scene.connection.client, queue.keys.queue)).toEqual([]);
  });

  it('leaves nothing of the queue that does not go by itself when it was the last', async () => {
    const scene = await given.filled({ items: 9, limit: 9 });
    const { id, generation, queue, request } = scene;
    await queue.park(id, generation, 'census');
    moveClock(21_000);
    const [claim] = (await queue.tick('', '')).claims;
    await queue.writeBack(claim!, (await request.tend(generation, '')) as never);
    expect((await inspectQueue(scene)).wait).toMatchObject({ [id]: { mark: 1 } });
    await queue.finish(id, generation, 'cancelled');
    const { counters, history } = queue.keys;
    expect(await keysOf(scene.connection.client, queue.keys.queue)).toEqual(
      [counters, history].sort(),
    );
    expect((await keysLeft(scene, 'forever')).filter((key) => !key.includes(id))).toEqual([]);
  });

  it('touches nothing of the requests that are open', async () => {
    const scene = await given.filled({ items: 2 });
    const other = await given.filled({ items: 2, queue: scene.queue.keys.queue });
    await scene.queue.finish(scene.id, scene.generation, 'cancelled');
    const { open, lists, pushed } = await inspectQueue(other);
    expect(open).toEqual({ [other.id]: other.generation });
    expect(lists[50]).toHaveLength(2);
    expect(pushed).toEqual({ 50: 2 });
  });

  it('takes several in one call, each gated by its generation', async () => {
    const open = await given.filled({ items: 2 });
    const { queue } = open;
    const options = { queue: queue.keys.queue };
    const [ended, failed] = [await given.filled(options), await given.filled(options)];
    await queue.park(failed.id, failed.generation, 'census');
    await Promise.all([
      queue.finish(ended.id, ended.generation, 'succeeded'),
      queue.finish(failed.id, failed.generation, 'failed'),
      queue.finish(open.id, open.generation - 1, 'succeeded'),
      queue.finish('nobody', 1, 'cancelled'),
    ]);
    const { open: left, agenda, history, counters, parked } = await inspectQueue(open);
    expect(left).toEqual({ [open.id]: open.generation });
    expect(Object.keys(agenda)).toEqual([open.id]);
    expect(Object.keys(history).sort()).toEqual([ended.id, failed.id].sort());
    expect(counters).toMatchObject({ succeeded: 1, failed: 1 });
    expect(counters).not.toHaveProperty('cancelled');
    expect(parked).toEqual({});
  });

  it('lets a request that opens right after the sweep be watched over from the first token', async () => {
    const old = await given.filled({ items: 5, limit: 5 });
    await old.queue.finish(old.id, old.generation, 'cancelled');
    const next = await given.sealed({ items: 2, limit: 2, queue: old.queue.keys.queue });
    moveClock(21_000);
    const [claim] = (await next.queue.tick('', '')).claims;
    const tended = await next.request.tend(next.generation, '');
    await next.queue.writeBack(claim!, tended as never);
    expect((await inspectQueue(next)).wait).toEqual({ [next.id]: { priority: 50, mark: 1 } });
    await next.queue.tick('', '');
    expect((await inspectQueue(next)).wait).toMatchObject({ [next.id]: { mark: 1 } });
    const nobody = { id: next.id, generation: 1, mint: 0, epoch: 1, priority: 50 };
    expect(await next.queue.exchange(nobody, 9)).toHaveLength(1);
    await next.queue.tick('', '');
    const { wait, agenda } = await inspectQueue(next);
    expect(wait).toEqual({});
    expect(agenda).toHaveProperty(next.id);
  });
});

describe('deregister', () => {
  it('strikes the worker out, and turns off what the last one leaves', async () => {
    const scene = await given.opened();
    const { id, generation, queue } = scene;
    await queue.tick('a', '{"tasks":"*"}');
    await queue.tick('b', '{"tasks":["census"]}');
    expect(await queue.serves('census')).toBe(true);
    await queue.deregister('a');
    expect(await queue.serves('tax')).toBe(false);
    await queue.finish(id, generation, 'gone');
    expect(Object.keys((await inspectQueue(scene)).workers)).toEqual(['b']);
    await queue.deregister('b');
    expect(await keysOf(scene.connection.client, queue.keys.queue)).toEqual([]);
  });

  it('leaves a queue with open requests alone', async () => {
    const scene = await given.filled({ items: 2 });
    await scene.queue.tick('a', '{}');
    await scene.queue.deregister('a');
    const { open, lists, pushed } = await inspectQueue(scene);
    expect(Object.keys(open)).toEqual([scene.id]);
    expect(lists[50]).toHaveLength(1);
    expect(pushed).toEqual({ 50: 1 });
  });
});

describe('inspect', () => {
  it('counts as the books do', async () => {
    const scene = await given.filled({ items: 6, attempts: 3 });
    const worker = new Hand(scene);
    const [a, b, c] = await worker.hold(3);
    await worker.settle([success(a!), failure(b!, 9_000), back(c!)]);
    await append(scene, 1, 6);
    const { counts } = await inspect(scene);
    const { ready, inFlight, delayed, state } = (await scene.request.inspect())!;
    expect({ ready, inFlight, delayed }).toEqual({ ready: 5, inFlight: 0, delayed: 1 });
    expect(counts).toMatchObject({ ready, inFlight, delayed, total: Number(state['total']) });
  });
});
