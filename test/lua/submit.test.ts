import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { append, create, given, Hand, items, PRODUCER, success } from '../support/given.js';
import { keysLeft } from '../support/leaks.js';
import { inspect, inspectQueue } from '../support/peek.js';

useTestClock();

describe('intent', () => {
  it('opens an id before anything exists, and schedules a tend', async () => {
    const scene = await given.opened();
    const { open, agenda } = await inspectQueue(scene);
    expect(open).toEqual({ [scene.id]: scene.generation });
    expect(agenda[scene.id]).toBeGreaterThanOrEqual(scene.generation + 20_000);
    expect((await inspect(scene)).status).toBe('none');
  });

  it('gives every submission of an id a greater generation, also within one millisecond', async () => {
    const scene = await given.nothing();
    const generations: number[] = [];
    for (let life = 0; life < 20; life += 1) {
      const generation = await scene.queue.intent(scene.id);
      generations.push(generation);
      await scene.queue.finish(scene.id, generation, 'succeeded');
    }
    expect(new Set(generations).size).toBe(20);
    expect([...generations].sort((a, b) => a - b)).toEqual(generations);
  });

  it('answers two submitters of one id with the same generation', async () => {
    const scene = await given.opened();
    expect(await scene.queue.intent(scene.id)).toBe(scene.generation);
  });
});

describe('create', () => {
  it('makes an open, empty request', async () => {
    const scene = await given.created({ limit: 7 });
    const picture = await inspect(scene);
    expect(picture).toMatchObject({ status: 'open', limit: 7, granted: 0, epoch: 1 });
    expect(picture.counts.total).toBe(0);
  });

  it('tells a second submitter of a live id what it met', async () => {
    const scene = await given.created();
    expect(await create(scene, { owner: 'another' })).toEqual({
      verdict: 'exists',
      status: 'open',
      generation: scene.generation,
      digest: 'digest',
      sealedBy: '',
      sent: 0,
      total: 0,
      createdBy: '',
    });
  });

  it('with its items makes a sealed request and counts its token', async () => {
    const scene = await given.opened();
    const made = await create(scene, { limit: 2, priority: 7 }, { call: 'one', items: items(3) });
    expect(made).toEqual({ verdict: 'sealed', tendAt: 0, mint: 1, epoch: 1, priority: 7 });
    const picture = await inspect(scene);
    expect(picture).toMatchObject({ status: 'sealed', counts: { total: 3, ready: 3 }, out: 1 });
  });

  it('that is sent again names the token again, until the request has changed', async () => {
    const scene = await given.opened();
    const send = (call: string) => create(scene, {}, { call, items: items(2) });
    const made = await send('one');
    expect(await send('one')).toEqual(made);
    expect(await send('another')).toMatchObject({ verdict: 'exists', createdBy: 'one', sent: 2 });
    await scene.request.drop();
    expect(await send('one')).toMatchObject({ verdict: 'void' });
  });

  it('of a request that begins later counts no token, and says when it begins', async () => {
    const scene = await given.opened();
    const made = await create(scene, { delayMs: 5_000 }, { items: items(1) });
    expect(made).toMatchObject({ verdict: 'sealed', mint: 0 });
    expect(made.verdict === 'sealed' && made.tendAt).toBeGreaterThan(scene.generation);
  });

  it('with items leaves an open request of its owner as it is', async () => {
    const scene = await given.created();
    const made = await create(scene, {}, { items: items(2) });
    expect(made).toMatchObject({ verdict: 'exists', status: 'open', total: 0 });
    expect((await inspect(scene)).counts.total).toBe(0);
  });

  it('tells who sealed a request, with how many items, and nobody when its producer was lost', async () => {
    const sealed = await given.sealed({ items: 2, owner: PRODUCER });
    const sealedByUs = { status: 'sealed', sealedBy: PRODUCER, sent: 2 };
    expect(await create(sealed, { owner: PRODUCER })).toMatchObject(sealedByUs);
    const lost = await given.filled({ items: 2, owner: PRODUCER, producerLeaseMs: 1_000 });
    moveClock(1_001);
    await lost.request.tend(lost.generation, '');
    const sealedByTend = { status: 'sealed', sealedBy: '', sent: 0 };
    expect(await create(lost, { owner: PRODUCER })).toMatchObject(sealedByTend);
  });

  it('refuses an id that is retained, and leaves it as it is', async () => {
    const old = await given.sealed({ items: 0 });
    await old.queue.finish(old.id, old.generation, 'succeeded');
    const next = await given.opened({ id: old.id, queue: old.queue.keys.queue });
    expect(await create(next)).toMatchObject({
      verdict: 'exists',
      status: 'complete',
      generation: old.generation,
    });
    expect(await inspect(next)).toMatchObject({ status: 'complete', outcome: 'succeeded' });
  });

  it('refuses a generation that is older than the one of the id', async () => {
    const scene = await given.created();
    const older = { ...scene, generation: scene.generation - 1 };
    expect(await create(older)).toMatchObject({ verdict: 'void' });
    expect((await inspect(scene)).generation).toBe(scene.generation);
  });

  it('refuses an intent that is older than its tombstone may live', async () => {
    const scene = await given.opened();
    moveClock(120_001);
    expect(await create(scene)).toMatchObject({ verdict: 'void' });
    expect((await inspect(scene)).status).toBe('void');
  });

  it('takes the place of a tombstone, whose end does not become its own', async () => {
    const old = await given.created();
    await old.request.drop();
    await old.queue.finish(old.id, old.generation, 'dropped');
    const next = await given.created({ id: old.id, queue: old.queue.keys.queue });
    expect((await inspect(next)).status).toBe('open');
    expect(await next.connection.client.pttl(next.request.keys.request)).toBe(-1);
    expect(await create(old)).toMatchObject({ verdict: 'void' });
  });

  it('is not held up by a stream whose state somebody deleted by hand', async () => {
    const old = await given.filled();
    await new Hand(old).hold(1);
    await old.connection.client.del(old.request.keys.request);
    await old.queue.finish(old.id, old.generation, 'gone');
    const next = await given.created({ id: old.id, queue: old.queue.keys.queue });
    expect((await inspect(next)).counts).toMatchObject({ total: 0, inFlight: 0 });
  });
});

describe('append', () => {
  it('adds items in order and mints a first token', async () => {
    const scene = await given.created({ limit: 2 });
    expect(await scene.request.append(scene.generation, PRODUCER, 0, items(3))).toEqual({
      verdict: 'ok',
      total: 3,
      mint: 1,
      epoch: 1,
      priority: 50,
    });
    expect(await inspect(scene)).toMatchObject({ work: [0, 1, 2], out: 1 });
  });

  it('has few tokens out: 4 if as many permits are granted, above that one for four, 32 at most', async () => {
    const scene = await given.created({ limit: 1_000 });
    const appended = await scene.request.append(scene.generation, PRODUCER, 0, items(900));
    expect(appended).toMatchObject({ total: 900, mint: 1 });
    const outAfter = async (worker: string, permits: number) => {
      await new Hand(scene, worker).enter(permits, [1]);
      return (await inspect(scene)).out;
    };
    expect(await outAfter('a', 3)).toBe(3);
    expect(await outAfter('b', 37)).toBe(10);
    expect(await outAfter('c', 40)).toBe(20);
    expect(await outAfter('d', 320)).toBe(32);
  });

  it('adds of an overlapping chunk only what is new', async () => {
    const scene = await given.filled({ items: 3 });
    await append(scene, 5, 1);
    const { counts, work } = await inspect(scene);
    expect(counts.total).toBe(6);
    expect(work).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('asks for the chunk that is missing', async () => {
    const scene = await given.filled({ items: 3 });
    const appended = await scene.request.append(scene.generation, PRODUCER, 5, items(1));
    expect(appended).toEqual({ verdict: 'gap', sent: 3 });
  });

  it('numbers the items of each producer for itself', async () => {
    const scene = await given.filled({ items: 2 });
    const { request, generation } = scene;
    expect(await request.append(generation, 'other', 0, items(2))).toMatchObject({ total: 4 });
    expect(await request.append(generation, 'other', 0, items(2))).toMatchObject({ total: 4 });
    expect((await inspect(scene)).work).toEqual([0, 1, 2, 3]);
  });

  it('takes no more than the window, and a chunk larger than the window alone', async () => {
    const scene = await given.created({ window: 3 });
    const { request, generation } = scene;
    expect(await request.append(generation, PRODUCER, 0, items(5))).toMatchObject({ total: 5 });
    expect(await request.append(generation, PRODUCER, 5, items(1))).toEqual({
      verdict: 'full',
      unsettled: 5,
    });
    const worker = new Hand(scene);
    const entries = await worker.hold(3);
    await worker.settle(entries.map((entry) => success(entry)));
    expect(await request.append(generation, PRODUCER, 5, items(1))).toMatchObject({ total: 6 });
  });

  it('answers a chunk that is already in, also when the window is full', async () => {
    const scene = await given.filled({ items: 5, window: 3 });
    const appended = await scene.request.append(scene.generation, PRODUCER, 0, items(5));
    expect(appended).toMatchObject({ verdict: 'ok', total: 5 });
  });

  it('is refused by a request that is sealed, cancelled or complete', async () => {
    const more = (scene: Awaited<ReturnType<typeof given.sealed>>) =>
      scene.request.append(scene.generation, PRODUCER, 3, items(1));
    expect(await more(await given.sealed())).toEqual({ verdict: 'sealed' });
    const cancelled = await given.filled();
    await new Hand(cancelled).hold(1);
    await cancelled.request.cancel(cancelled.generation);
    expect(await more(cancelled)).toEqual({ verdict: 'cancelling' });
    expect(await more(await given.sealed({ items: 0 }))).toEqual({ verdict: 'complete' });
    expect(await more(await given.nothing())).toEqual({ verdict: 'gone' });
  });
});

describe('renew-producer', () => {
  it('puts off the time at which the producer counts as lost', async () => {
    const scene = await given.filled({ producerLeaseMs: 1_000 });
    moveClock(900);
    expect(await scene.request.renewProducer(scene.generation)).toEqual({
      verdict: 'ok',
      total: 3,
      unsettled: 3,
    });
    moveClock(900);
    await scene.request.tend(scene.generation, '');
    expect((await inspect(scene)).status).toBe('open');
    moveClock(101);
    await scene.request.tend(scene.generation, '');
    expect((await inspect(scene)).status).toBe('sealed');
  });

  it('says when there is nothing to keep open', async () => {
    const { request, generation } = await given.sealed();
    expect(await request.renewProducer(generation)).toMatchObject({ verdict: 'sealed' });
    expect(await request.renewProducer(generation + 1)).toMatchObject({ verdict: 'gone' });
  });
});

describe('seal', () => {
  it('completes a request without sub-requests', async () => {
    const scene = await given.created();
    const { request, generation } = scene;
    expect(await request.seal(generation, PRODUCER, 0)).toEqual({
      verdict: 'complete',
      outcome: 'succeeded',
    });
    await inspect(scene);
    expect(await keysLeft(scene, 'forever')).not.toContain(request.keys.request);
  });

  it('completes a request whose last sub-request is settled', async () => {
    const scene = await given.filled({ items: 1 });
    const worker = new Hand(scene);
    const [only] = await worker.hold(1);
    expect(await worker.settle([success(only!)])).toMatchObject({ verdict: 'ok' });
    const { request, generation } = scene;
    expect(await request.seal(generation, PRODUCER, 1)).toMatchObject({ verdict: 'complete' });
  });

  it('stays open while a chunk of its producer is missing', async () => {
    const scene = await given.filled({ items: 3 });
    const { request, generation } = scene;
    expect(await request.seal(generation, PRODUCER, 4)).toEqual({ verdict: 'gap', sent: 3 });
    expect((await inspect(scene)).status).toBe('open');
    await append(scene, 1, 3);
    expect(await request.seal(generation, PRODUCER, 4)).toEqual({ verdict: 'sealed', total: 4 });
  });

  it('says that the request is being cancelled', async () => {
    const scene = await given.filled();
    await new Hand(scene).hold(1);
    await scene.request.cancel(scene.generation);
    expect(await scene.request.seal(scene.generation, PRODUCER, 3)).toEqual({
      verdict: 'cancelling',
    });
  });
});

describe('a script that finds no request of its generation', () => {
  it('answers "gone", and leaves no key behind', async () => {
    const scene = await given.nothing();
    const { request } = scene;
    const worker = new Hand(scene);
    const verdicts = await Promise.all([
      request.append(1, PRODUCER, 0, items(1)),
      request.renewProducer(1),
      request.seal(1, PRODUCER, 0),
      worker.tryEnter(1),
      worker.trySettle([success({ entry: '1-0' })]),
      worker.renew(),
      request.cancel(1),
      request.drop(),
    ]);
    for (const { verdict } of verdicts) expect(verdict).toBe('gone');
    expect(await request.take(1, 'worker', 1)).toBe('gone');
    expect(await request.read('worker', 1)).toBe('gone');
    expect(await request.inspect()).toBeNull();
    expect(await keysLeft(scene)).toEqual([]);
  });
});
