import { Notifier, type NotifierOptions } from '@piecework/notifier';
import {
  AbortError,
  ClosedError,
  Connection,
  DroppedError,
  ExpiredError,
  InvalidOptionError,
  NotFoundError,
  PieceworkError,
  RequestFailedError,
  TimeoutError,
} from '@piecework/protocol';
import type { Redis } from 'ioredis';
import { beforeAll, describe, expect } from 'vitest';
import { type Flow, mastersOf, test } from '../support/flow.js';
import {
  append,
  connected,
  create,
  failure,
  given,
  Hand,
  PRODUCER,
  type Scene,
  success,
} from '../support/given.js';
import { startProgram } from '../support/processes.js';
import { againstCluster } from '../support/redis.js';
import { until } from '../support/until.js';

// Opened before the first test counts its connections.
beforeAll(async () => (await connected()).check());

/** A sweep that never comes: what resolves did so by a notice or a reconnect. */
const NEVER = 600_000;

function notifierOf(flow: Flow, options: Partial<NotifierOptions> = {}): Notifier {
  const notifier = new Notifier({
    redis: flow.redis,
    queue: flow.queue,
    sweepMs: NEVER,
    ...options,
  });
  flow.after(() => notifier.close());
  return notifier;
}

/** How many connections listen to the channel of a request. */
async function listeners(flow: Flow, { request }: Scene): Promise<number> {
  let sum = 0;
  for (const master of mastersOf(flow.connection)) {
    const [, n] = (await master.call('PUBSUB', 'SHARDNUMSUB', request.keys.channel)) as [
      string,
      number,
    ];
    sum += n;
  }
  return sum;
}

const listened = (flow: Flow, scene: Scene, n = 1) =>
  until(async () => (await listeners(flow, scene)) === n, { what: `${n} listen to ${scene.id}` });

/** Waits until the notifier has read the state of a request after this moment. */
async function looked(notifier: Notifier, { id }: Scene): Promise<void> {
  const reports = notifier.progress(id);
  await reports.next();
  await reports.return(undefined);
}

/** Connections of the one server: id → line of CLIENT LIST. */
/**
 * The connections to the server, without those that never sent a command: a client that has waited long for its first
 * answer asks on a connection of its own whether the server speaks TLS.
 */
async function clients(flow: Flow): Promise<Map<string, string>> {
  const list = (await (flow.connection.client as Redis).client('LIST')) as string;
  return new Map(
    list
      .split('\n')
      .filter((line) => !line.includes(' cmd=NULL '))
      .flatMap((line) =>
        [...line.matchAll(/^id=(\d+)/g)].map(([, id]) => [id as string, line] as const),
      ),
  );
}

async function subscribers(flow: Flow): Promise<string[]> {
  return [...(await clients(flow))]
    .filter(([, line]) => line.includes('name=piecework-notifier'))
    .map(([id]) => id);
}

/** Moves the hash slot of a request, with its keys, to the next master. */
async function moveSlotOf(flow: Flow, { request }: Scene): Promise<void> {
  const masters = mastersOf(flow.connection);
  const address = await flow.connection.addressOf(request.keys.request);
  const at = masters.findIndex(({ options }) => `${options.host}:${options.port}` === address);
  const [from, to] = [masters[at]!, masters[(at + 1) % masters.length]!];
  const [fromId, toId] = [await from.cluster('MYID'), await to.cluster('MYID')];
  const slot = await from.cluster('KEYSLOT', request.keys.request);
  await to.cluster('SETSLOT', slot, 'IMPORTING', String(fromId));
  await from.cluster('SETSLOT', slot, 'MIGRATING', String(toId));
  const keys = (await from.cluster('GETKEYSINSLOT', slot, 100)) as string[];
  const { host, port } = to.options;
  await from.call('MIGRATE', String(host), Number(port), '', 0, 5_000, 'KEYS', ...keys);
  for (const one of [to, from, ...masters])
    await one.cluster('SETSLOT', slot, 'NODE', String(toId));
  await until(async () => (await flow.connection.client.exists(request.keys.request)) === 1);
}

/** All its sub-requests succeed, in one settling. */
async function work(scene: Scene, n: number): Promise<void> {
  const hand = new Hand(scene);
  const entries = await hand.hold(n);
  await hand.trySettle(entries.map((entry) => success(entry)));
  await scene.queue.finish(scene.id, scene.generation, 'succeeded');
}

const sealEmpty = (scene: Scene) => scene.request.seal(scene.generation, PRODUCER, 0);

const counts = (n: Partial<Record<string, number>>) => ({
  ...{ total: 0, ready: 0, inFlight: 0, delayed: 0, succeeded: 0, failed: 0, cancelled: 0 },
  ...n,
});

describe('completion', () => {
  test('is received by callers that await it before, while and after it happens', async ({
    flow,
  }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue, items: 3 });
    const before = notifier.completion(scene.id);
    await listened(flow, scene);
    const working = work(scene, 3);
    const during = notifier.completion(scene.id);
    await working;
    const outcome = {
      requestId: scene.id,
      status: 'succeeded',
      counts: counts({ total: 3, succeeded: 3 }),
      generation: scene.generation,
    };
    expect(await before).toMatchObject(outcome);
    expect(await during).toMatchObject(outcome);
    const after = await notifier.completion(scene.id);
    expect(after).toMatchObject(outcome);
    expect(() => after.throwIfFailed()).not.toThrow();
    await listened(flow, scene, 0);
  });

  test('counts what failed and what was cancelled', async ({ flow }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue, items: 5, limit: 2 });
    const completion = notifier.completion(scene.id);
    const hand = new Hand(scene);
    const [one, two] = await hand.hold(2);
    await hand.settle([failure(one!)], { keep: 1, running: 1 });
    await scene.request.cancel(scene.generation);
    await hand.trySettle([success(two!)]);
    const outcome = await completion;
    expect(outcome.status).toBe('cancelled');
    expect(outcome.counts).toEqual(counts({ total: 5, succeeded: 1, failed: 1, cancelled: 3 }));
    expect(() => outcome.throwIfFailed()).toThrow(RequestFailedError);
  });

  test('is awaited from another process', async ({ flow }) => {
    const scene = await given.sealed({ queue: flow.queue });
    const { redis, queue } = flow;
    const other = startProgram(flow, 'notifier', { redis, queue, id: scene.id });
    expect(await other.said()).toBe('awaiting');
    await listened(flow, scene);
    await work(scene, 3);
    expect(await other.said()).toEqual({
      status: 'succeeded',
      counts: counts({ total: 3, succeeded: 3 }),
      generation: scene.generation,
    });
    expect(await other.ended).toBe(0);
  });

  test('is awaited while the request is still being created', async ({ flow }) => {
    const notifier = notifierOf(flow);
    const scene = await given.opened({ queue: flow.queue });
    const completion = notifier.completion(scene.id);
    await listened(flow, scene);
    await create(scene);
    await append(scene, 2);
    await scene.request.seal(scene.generation, PRODUCER, 2);
    await work(scene, 2);
    expect((await completion).counts.succeeded).toBe(2);
  });

  test('comes although no process but the notifier ticks the agenda', async ({ flow }) => {
    const notifier = notifierOf(flow);
    const scene = await given.created({ queue: flow.queue, producerLeaseMs: 1 });
    await scene.queue.scheduleTend(scene.id, scene.generation, 0);
    // The producer is lost; a tick seals the request, which has nothing to do.
    expect((await notifier.completion(scene.id)).status).toBe('succeeded');
    await until(async () => !(await scene.queue.whereabouts(scene.id)).open);
  });

  test('one channel subscription serves many callers of a request, which leave one by one', async ({
    flow,
  }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue });
    const leaving = new AbortController();
    const gone = Array.from({ length: 50 }, () =>
      notifier.completion(scene.id, { signal: leaving.signal }).catch((error: unknown) => error),
    );
    const stay = Array.from({ length: 50 }, () => notifier.completion(scene.id));
    await listened(flow, scene);
    leaving.abort();
    for (const error of await Promise.all(gone)) expect(error).toBeInstanceOf(AbortError);
    expect(await listeners(flow, scene)).toBe(1);
    await work(scene, 3);
    for (const { status } of await Promise.all(stay)) expect(status).toBe('succeeded');
  });
});

describe('a waiting caller gets its completion in spite of', () => {
  test('its connection killed, and completed later', {
    tags: ['one-server', 'own-server'],
  }, async ({ flow }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue });
    const completion = notifier.completion(scene.id);
    await listened(flow, scene);
    const [killed] = await subscribers(flow);
    await (flow.connection.client as Redis).client('KILL', 'ID', killed!);
    await until(async () => {
      const [now] = await subscribers(flow);
      return now && now !== killed && (await listeners(flow, scene)) === 1;
    });
    await work(scene, 3);
    expect((await completion).status).toBe('succeeded');
  });

  test('completed while its connection is cut', { tags: ['one-server', 'own-server'] }, async ({
    flow,
  }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue, items: 1 });
    const completion = notifier.completion(scene.id);
    await listened(flow, scene);
    await looked(notifier, scene);
    const hand = new Hand(scene);
    const [entry] = await hand.hold(1);
    const [killed] = await subscribers(flow);
    const client = scene.connection.client as Redis;
    // On one connection, in this order: nobody hears the notice.
    await Promise.all([client.client('KILL', 'ID', killed!), hand.trySettle([success(entry!)])]);
    expect((await completion).status).toBe('succeeded');
  });

  test('all its connections killed again and again', {
    tags: ['one-server', 'own-server'],
  }, async ({ flow }) => {
    const errors: unknown[] = [];
    const notifier = notifierOf(flow, { onError: (error) => errors.push(error) });
    const others = new Set((await clients(flow)).keys());
    const scene = await given.sealed({ queue: flow.queue });
    const completion = notifier.completion(scene.id);
    await listened(flow, scene);
    for (let round = 0; round < 5; round += 1) {
      for (const id of (await clients(flow)).keys()) {
        if (others.has(id)) continue;
        // It may have gone by itself.
        await (flow.connection.client as Redis).client('KILL', 'ID', id).catch(() => {});
      }
      await listened(flow, scene);
    }
    await work(scene, 3);
    expect((await completion).status).toBe('succeeded');
    expect(errors.length).toBeGreaterThan(0);
  });

  test('its hash slot moved to another server', { tags: 'only-cluster' }, async ({ flow }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue });
    const completion = notifier.completion(scene.id);
    await listened(flow, scene);
    await moveSlotOf(flow, scene);
    await listened(flow, scene);
    await work(scene, 3);
    expect((await completion).status).toBe('succeeded');
  });

  for (const idle of ['responsive', 'frugal'] as const)
    test(`a notice that never comes, with a ${idle} notifier`, async ({ flow }) => {
      const notifier = notifierOf(flow, { sweepMs: 30, idle });
      const scene = await given.sealed({ queue: flow.queue });
      const completion = notifier.completion(scene.id);
      await listened(flow, scene);
      // Whatever was looked at because of the subscription is behind us.
      await looked(notifier, scene);
      const { client } = flow.connection;
      await client.hset(scene.request.keys.request, 'status', 'complete', 'outcome', 'succeeded');
      expect((await completion).status).toBe('succeeded');
      await scene.queue.finish(scene.id, scene.generation, 'succeeded');
    });

  test('two thousand others at the same time, over two connections', {
    tags: 'own-server',
  }, async ({ flow }) => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    flow.after(() => process.off('warning', note));
    const notifier = notifierOf(flow);
    const before = againstCluster ? 0 : (await clients(flow)).size;
    const scenes = await Promise.all(
      Array.from({ length: 2_000 }, () => given.created({ queue: flow.queue })),
    );
    const { signal } = new AbortController();
    let resolved = 0;
    const completions = scenes.map(async ({ id }) => {
      const outcome = await notifier.completion(id, { signal });
      resolved += 1;
      return outcome;
    });
    await listened(flow, scenes.at(-1)!);
    await listened(flow, scenes[0]!);
    if (!againstCluster) expect((await clients(flow)).size - before).toBe(2);
    await Promise.all(scenes.map(sealEmpty));
    const outcomes = await Promise.all(completions);
    expect(outcomes.map(({ requestId }) => requestId)).toEqual(scenes.map(({ id }) => id));
    expect(resolved).toBe(2_000);
    if (!againstCluster) expect((await clients(flow)).size - before).toBe(2);
    await until(async () => {
      const masters = mastersOf(flow.connection);
      const channels = await Promise.all(masters.map((one) => one.call('PUBSUB', 'SHARDCHANNELS')));
      return channels.flat().length === 0;
    });
    expect(warnings).toEqual([]);
  });
});

describe('a wait that ends otherwise', () => {
  test('with DroppedError when the request is dropped', async ({ flow }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue });
    const completion = notifier.completion(scene.id);
    completion.catch(() => {});
    await listened(flow, scene);
    await scene.request.drop();
    await expect(completion).rejects.toThrow(DroppedError);
    await expect(notifier.completion(scene.id)).rejects.toThrow(DroppedError);
    await scene.queue.finish(scene.id, scene.generation, 'dropped');
    await expect(notifier.completion(scene.id)).rejects.toThrow(DroppedError);
    await expect(notifier.status(scene.id)).rejects.toThrow(DroppedError);
  });

  test('with TimeoutError and AbortError, leaving nothing subscribed', async ({ flow }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue });
    await expect(notifier.completion(scene.id, { timeoutMs: 30 })).rejects.toThrow(TimeoutError);
    const controller = new AbortController();
    const completion = notifier.completion(scene.id, { signal: controller.signal });
    completion.catch(() => {});
    await listened(flow, scene);
    controller.abort(new Error('enough'));
    await expect(completion).rejects.toMatchObject({
      name: 'AbortError',
      cause: { message: 'enough' },
    });
    const late = notifier.completion(scene.id, { signal: controller.signal });
    await expect(late).rejects.toThrow(AbortError);
    await listened(flow, scene, 0);
  });

  test('with NotFoundError when there is no such request, or it was given up', async ({ flow }) => {
    const notifier = notifierOf(flow);
    await expect(notifier.completion(flow.id('nobody'))).rejects.toThrow(NotFoundError);
    await expect(notifier.status(flow.id('nobody'))).rejects.toThrow(NotFoundError);
    const scene = await given.opened({ queue: flow.queue });
    const completion = notifierOf(flow, { sweepMs: 30 }).completion(scene.id);
    completion.catch(() => {});
    await listened(flow, scene);
    expect(await scene.request.tend(scene.generation, '')).toEqual({ verdict: 'gone' });
    await scene.queue.finish(scene.id, scene.generation, 'gone');
    await expect(completion).rejects.toThrow(NotFoundError);
  });

  test('with ExpiredError when its retention has ended', async ({ flow }) => {
    const notifier = notifierOf(flow, { sweepMs: 30 });
    const scene = await given.sealed({ queue: flow.queue });
    const unaware = notifier.completion(scene.id);
    unaware.catch(() => {});
    // It shares what the other has seen: that the request was there.
    const reports = notifier.progress(scene.id);
    await reports.next();
    // Without a notice, as if it had completed and expired in between.
    const { request, work: entries } = scene.request.keys;
    await scene.queue.finish(scene.id, scene.generation, 'succeeded');
    await flow.connection.client.unlink(request, entries);
    await expect(unaware).rejects.toThrow(ExpiredError);
    await expect(reports.next()).rejects.toThrow(ExpiredError);
    await expect(notifier.completion(scene.id)).rejects.toThrow(ExpiredError);
    await expect(notifier.status(scene.id)).rejects.toThrow(ExpiredError);
    await scene.queue.finish(scene.id, scene.generation, 'dropped');
  });

  test('with TimeoutError that says why nothing moves, and what to do', async ({ flow }) => {
    const notifier = notifierOf(flow);
    const { id } = await given.sealed({ queue: flow.queue, task: 'census' });
    const noWorker =
      /: not within 30 ms; its queue has no worker\. Start one, as `new Worker` or `piecework worker`/;
    const soon = { timeoutMs: 30 };
    // The read of the reason is given up when the machine is so slow that it takes a second.
    const said = (wait: () => Promise<unknown>) =>
      until(() =>
        wait().catch(
          (error: Error) => error instanceof TimeoutError && noWorker.test(error.message),
        ),
      );
    await said(() => notifier.completion(id, soon));
    await said(() => notifier.results(id, soon).next());
    await said(async () => {
      for await (const _ of notifier.progress(id, soon));
    });
    const nobody = notifier.completion(flow.id('nobody'), { timeoutMs: 0 });
    await expect(nobody).rejects.toBeInstanceOf(PieceworkError);
  });

  test('with ClosedError when the notifier is closed', async ({ flow }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue });
    const completion = notifier.completion(scene.id);
    completion.catch(() => {});
    await listened(flow, scene);
    await notifier.close();
    await expect(completion).rejects.toThrow(ClosedError);
    await expect(notifier.completion(scene.id)).rejects.toThrow(ClosedError);
    await notifier.close();
    await listened(flow, scene, 0);
  });

  test('with ClosedError before the cluster is known, leaving no connection', {
    tags: 'only-cluster',
  }, async ({ flow }) => {
    const connection = Connection.open(flow.redis);
    flow.after(() => connection.close());
    const notifier = notifierOf(flow, { redis: connection });
    const waiting = notifier.completion(flow.id('nobody'));
    waiting.catch(() => {});
    // Here it has asked which server holds the channel.
    await new Promise(setImmediate);
    await notifier.close();
    await expect(waiting).rejects.toThrow(ClosedError);
    // Another one that begins later listens: by then the first would, too.
    const scene = await given.sealed({ queue: flow.queue });
    const later = notifierOf(flow, { redis: connection });
    later.completion(scene.id).catch(() => {});
    await listened(flow, scene);
    const lists = await Promise.all(mastersOf(flow.connection).map((it) => it.client('LIST')));
    expect(String(lists).match(/name=piecework-notifier/g)).toHaveLength(1);
    await work(scene, 3);
  });

  test('at once when an argument is wrong', async ({ flow }) => {
    const notifier = notifierOf(flow);
    const wrong = [
      () => notifier.completion('not an id'),
      () => notifier.completion('id', { timeoutMs: -1 }),
      () => notifier.completion('id', { signal: {} as AbortSignal }),
      () => notifier.completion('id', { every: 1 } as object),
      async () => notifier.results('id', { order: 'random' as 'index' }),
      async () => notifier.progress('id', { everyMs: 0 }),
      async () => new Notifier({ redis: 'localhost' }),
      async () => new Notifier({ redis: flow.redis, queue: '' }),
    ];
    for (const one of wrong) await expect(one()).rejects.toThrow(InvalidOptionError);
  });

  test('never closes a connection that is shared', async ({ flow }) => {
    const notifier = notifierOf(flow, { redis: flow.connection });
    const scene = await given.created({ queue: flow.queue });
    await sealEmpty(scene);
    expect((await notifier.completion(scene.id)).status).toBe('succeeded');
    await notifier.close();
    expect(await flow.request(scene.id).state()).toMatchObject({ status: 'complete' });
  });
});

describe('progress', () => {
  test('reports counts and rate, and ends with the completion', async ({ flow }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue, items: 4, limit: 4 });
    const hand = new Hand(scene);
    const entries = await hand.hold(4);
    const reports = notifier.progress(scene.id, { everyMs: 10 });
    const first = (await reports.next()).value;
    expect(first).toEqual({
      counts: counts({ total: 4, inFlight: 4 }),
      running: 4,
      generation: scene.generation,
      status: 'sealed',
      ratePerSecond: 0,
      etaMs: null,
    });
    await hand.settle([success(entries[0]!)], { keep: 3, running: 3 });
    const half = await until(async () => {
      const { value } = await reports.next();
      return value?.counts.succeeded === 1 && value;
    });
    expect(half.ratePerSecond).toBeGreaterThan(0);
    expect(half.etaMs).toBeGreaterThan(0);
    await hand.trySettle(entries.slice(1).map((entry) => success(entry)));
    let last = half;
    for await (const report of reports) last = report;
    expect(last).toMatchObject({
      counts: counts({ total: 4, succeeded: 4 }),
      status: 'complete',
      etaMs: 0,
    });
  });

  test('ends with an error when the request does not exist', async ({ flow }) => {
    const notifier = notifierOf(flow);
    await expect(notifier.progress(flow.id('nobody')).next()).rejects.toThrow(NotFoundError);
    const scene = await given.sealed({ queue: flow.queue });
    const reports = notifier.progress(scene.id, { everyMs: 60_000 });
    await reports.next();
    const next = reports.next();
    next.catch(() => {});
    await scene.request.drop();
    await expect(next).rejects.toThrow(DroppedError);
    await scene.queue.finish(scene.id, scene.generation, 'dropped');
  });
});

describe('status', () => {
  test('shows everything known, and why nothing runs', async ({ flow }) => {
    const notifier = notifierOf(flow);
    const scene = await given.sealed({ queue: flow.queue, task: 'census', limit: 2, priority: 7 });
    expect(await notifier.status(scene.id)).toMatchObject({
      id: scene.id,
      status: 'sealed',
      generation: scene.generation,
      counts: counts({ total: 3, ready: 3 }),
      running: 0,
      readAt: expect.any(Number),
      silentWorkers: [],
      priority: 7,
      limit: 2,
      task: 'census',
      metadata: undefined,
      createdAt: expect.any(Number),
      completedAt: undefined,
      outcome: undefined,
      why: expect.stringMatching(/^its queue has no worker\. Start one/),
      waitingFor: 'worker',
      progress: {},
    });
    const other = new Hand(scene);
    expect((await other.tryEnter(1, [1], ' other ')).verdict).toBe('unserved');
    expect((await notifier.status(scene.id)).why).toMatch(
      /^no worker serves task census\. Start one/,
    );
    const hand = new Hand(scene, 'serving');
    const [entry] = await hand.hold(1);
    await scene.request.renew(scene.generation, 'serving', 30_000, [entry!.index, 40]);
    const running = await notifier.status(scene.id);
    expect(running).toMatchObject({ waitingFor: undefined, progress: { 0: 40 } });
    await scene.request.cancel(scene.generation);
    await hand.trySettle([success(entry!)]);
    expect(await notifier.status(scene.id)).toMatchObject({
      status: 'complete',
      outcome: 'cancelled',
      counts: counts({ total: 3, succeeded: 1, cancelled: 2 }),
      completedAt: expect.any(Number),
    });
  });
});
