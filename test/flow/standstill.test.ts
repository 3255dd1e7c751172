import { Notifier } from '@piecework/notifier';
import { Shards } from '@piecework/protocol';
import { Admin } from 'piecework';
import { beforeAll, describe, expect } from 'vitest';
import { Stall } from '../../packages/notifier/dist/progress/stall.js';
import { moveClock, useTestClock } from '../support/clock.js';
import { type Flow, test } from '../support/flow.js';
import { connected, given, Hand, LEASE_MS, success } from '../support/given.js';
import { until } from '../support/until.js';

/*
 * What a status and a progress report say of a request that does not move, or seems to exceed its limit.
 */

const START = 'Start one, as `new Worker` or `piecework worker`: it will run then';

useTestClock();
// Opened before the first test counts its connections.
beforeAll(async () => (await connected()).check());

function notifierOf(flow: Flow): Notifier {
  const notifier = new Notifier({ redis: flow.redis, queue: flow.queue });
  flow.after(() => notifier.close());
  return notifier;
}

describe('status', () => {
  test('tells what runs, which the limit bounds, from what is read ahead', async ({ flow }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue, items: 9, limit: 2 });
    const hand = new Hand(scene);
    const entries = await hand.hold(2);
    const ahead = await hand.read(5);
    const seen = await notifier.status(scene.id);
    expect(seen).toMatchObject({ limit: 2, running: 2, counts: { inFlight: 7, ready: 2 } });
    const reports = notifier.progress(scene.id);
    expect((await reports.next()).value).toMatchObject({ running: 2, counts: { inFlight: 7 } });
    await reports.return(undefined);
    // More permits than work.
    await hand.settle([...entries, ...ahead].map((entry) => success(entry)));
    await hand.read(1);
    expect(await notifier.status(scene.id)).toMatchObject({ running: 1, counts: { inFlight: 1 } });
    await scene.request.drop();
    await scene.queue.finish(scene.id, scene.generation, 'dropped');
  });

  test('names workers that missed a renewal of their lease, and when others take over', async ({
    flow,
  }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue, items: 9, limit: 9 });
    const dead = new Hand(scene, 'dead');
    const alive = new Hand(scene, 'alive');
    await dead.hold(3);
    await alive.hold(2, []);
    expect(await notifier.status(scene.id)).toMatchObject({
      silentWorkers: [],
      waitingFor: undefined,
    });
    // A renewal may be this late.
    moveClock(11_000);
    expect((await notifier.status(scene.id)).silentWorkers).toEqual([]);
    await alive.renew();
    moveClock(2_000);
    const seen = await notifier.status(scene.id);
    expect(seen.silentWorkers).toEqual([
      {
        worker: 'dead',
        inFlight: 3,
        seenAt: expect.any(Number),
        leaseEndsAt: expect.any(Number),
      },
    ]);
    const [silent] = seen.silentWorkers;
    expect(silent!.leaseEndsAt - silent!.seenAt).toBe(LEASE_MS);
    expect(seen.readAt - silent!.seenAt).toBeGreaterThanOrEqual(13_000);
    expect(seen.waitingFor).toBe('lease');
    expect(seen.why).toBe(
      '3 are on a worker last seen 13 s ago; taken over in about 17 s. Start another worker, as its queue has none',
    );
    moveClock(12_000);
    expect(await notifier.status(scene.id)).toMatchObject({
      why: '5 are on 2 workers last seen 14 s ago; taken over in about 16 s. Start another worker, as its queue has none',
    });
    // Nobody is there to take over.
    moveClock(20_000);
    expect(await notifier.status(scene.id)).toMatchObject({
      why: `5 are on 2 workers last seen 34 s ago; its queue has no worker. ${START}`,
      waitingFor: 'worker',
    });
    const said = { host: 'h', pid: 1, concurrency: 1, running: 0, tasks: '*', startedAt: 1 };
    await flow.queueCommands.tick('new', JSON.stringify(said));
    expect(await notifier.status(scene.id)).toMatchObject({
      why: '5 are on 2 workers last seen 34 s ago; taken over soon. Wait: another worker takes over by itself',
      waitingFor: 'lease',
    });
    await flow.queueCommands.deregister('new');
    await scene.request.drop();
    await scene.queue.finish(scene.id, scene.generation, 'dropped');
  });

  test('counts no worker that gives no sign of life', async ({ flow }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue });
    const said = { host: 'h', pid: 1, concurrency: 1, running: 0, tasks: '*', startedAt: 1 };
    await flow.queueCommands.tick('dead', JSON.stringify(said));
    moveClock(14_000);
    expect((await notifier.status(scene.id)).waitingFor).toBeUndefined();
    moveClock(2_000);
    expect((await notifier.status(scene.id)).waitingFor).toBe('worker');
    await flow.queueCommands.deregister('dead');
    await scene.request.drop();
    await scene.queue.finish(scene.id, scene.generation, 'dropped');
  });

  test('says of a request that has ended how it ended, whatever it waited for', async ({
    flow,
  }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue, items: 1 });
    const { client } = flow.connection;
    await client.hset(scene.request.keys.request, 'parked', '1');
    expect(await notifier.status(scene.id)).toMatchObject({ waitingFor: 'task' });
    const admin = new Admin({ redis: flow.redis, queue: flow.queue });
    flow.after(() => admin.close());
    await admin.cancel(scene.id);
    await client.hset(scene.request.keys.request, 'parked', '1');
    expect(await notifier.status(scene.id)).toMatchObject({
      ...{ status: 'complete', outcome: 'cancelled' },
      ...{ why: 'it ended early, as it was cancelled; 0 succeeded, 0 failed and 1 were cancelled' },
      waitingFor: undefined,
    });
  });

  test('asks the queue of the request, also when the caller has another queue', async ({
    flow,
  }) => {
    const elsewhere = new Notifier({ redis: flow.redis, queue: `${flow.queue}-other` });
    flow.after(() => elsewhere.close());
    const scene = await given.sealed({ queue: flow.queue, items: 1 });
    expect(await elsewhere.status(scene.id)).toMatchObject({ waitingFor: 'worker' });
    const own = new Admin({ redis: flow.redis, queue: flow.queue });
    flow.after(() => own.close());
    await own.pauseQueue();
    expect(await elsewhere.status(scene.id)).toMatchObject({ waitingFor: 'queue' });
    await own.resumeQueue();
    // A pause of the caller's queue is nothing to this request.
    const other = new Admin({ redis: flow.redis, queue: `${flow.queue}-other` });
    flow.after(() => other.close());
    await other.pauseQueue();
    expect(await elsewhere.status(scene.id)).toMatchObject({ waitingFor: 'worker' });
    await other.resumeQueue();
    await scene.request.drop();
    await scene.queue.finish(scene.id, scene.generation, 'dropped');
  });

  test('says when the producer of an open request was last seen, and what follows', async ({
    flow,
  }) => {
    const notifier = notifierOf(flow);
    const lease = { producerLeaseMs: LEASE_MS, onProducerLost: 'cancel' } as const;
    const scene = await given.filled({ queue: flow.queue, items: 1, ...lease });
    const seen = await notifier.status(scene.id);
    expect(seen.producer).toEqual({
      seenAt: expect.any(Number),
      leaseEndsAt: seen.producer!.seenAt + LEASE_MS,
      ifLost: 'cancel',
    });
    const hand = new Hand(scene);
    const [entry] = await hand.hold(1);
    expect((await notifier.status(scene.id)).waitingFor).toBeUndefined();
    await hand.settle([success(entry!)]);
    expect(await notifier.status(scene.id)).toMatchObject({
      waitingFor: 'producer',
      why: 'all that was added is done, and its producer has not sealed it; its producer was last seen 0 s ago. Cancel the request if nothing more comes',
    });
    moveClock(20_000);
    expect(await notifier.status(scene.id)).toMatchObject({
      waitingFor: 'producer',
      why: expect.stringContaining('its producer was last seen 20 s ago; cancelled in about 10 s'),
    });
    await scene.request.drop();
    await scene.queue.finish(scene.id, scene.generation, 'dropped');
    const sealed = await given.sealed({ queue: flow.queue, items: 1 });
    expect((await notifier.status(sealed.id)).producer).toBeUndefined();
    await sealed.request.drop();
    await sealed.queue.finish(sealed.id, sealed.generation, 'dropped');
  });
});

describe('progress', () => {
  test('costs no further call while anything is settled, and one look a second otherwise', async ({
    flow,
  }) => {
    const scene = await given.sealed({ queue: flow.queue, items: 9 });
    const seen = (await scene.request.inspect())!;
    let looks = 0;
    const request = Object.assign(Object.create(scene.request), {
      inspect: () => {
        looks += 1;
        return scene.request.inspect();
      },
    });
    const stall = new Stall(request, new Shards(flow.connection, flow.queue));
    const note = (succeeded: number, atMs: number) =>
      stall.note({ ...seen, state: { ...seen.state, succeeded: String(succeeded) } }, atMs);
    for (const n of [0, 1, 2, 3]) expect(await note(n, n * 2_000)).toBeUndefined();
    expect(await note(3, 6_800)).toBeUndefined();
    expect(looks).toBe(0);
    expect(await note(3, 6_950)).toMatchObject({ waitingFor: 'worker' });
    expect(await note(3, 7_500)).toMatchObject({ waitingFor: 'worker' });
    expect(looks).toBe(1);
    await note(3, 7_900);
    expect(looks).toBe(2);
    expect(await note(4, 8_900)).toBeUndefined();
    await scene.request.drop();
    await scene.queue.finish(scene.id, scene.generation, 'dropped');
  });

  test('says why nothing moves, and no longer when it moves again', async ({ flow }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue, items: 2 });
    const reports = notifier.progress(scene.id, { everyMs: 20 });
    const next = async () => (await reports.next()).value;
    expect(await next()).toMatchObject({ why: undefined });
    const stalled = await until(async () => {
      const report = await next();
      return report?.why && report;
    });
    expect(stalled).toMatchObject({
      why: `its queue has no worker. ${START}`,
      waitingFor: 'worker',
      status: 'sealed',
      running: 0,
    });
    const hand = new Hand(scene);
    const entries = await hand.hold(2);
    await hand.settle([success(entries[0]!)]);
    const moved = await until(async () => {
      const report = await next();
      return report?.counts.succeeded === 1 && report;
    });
    expect(moved.why).toBeUndefined();
    await hand.trySettle([success(entries[1]!)]);
    for await (const report of reports) if (report.status === 'complete') break;
  });
});
