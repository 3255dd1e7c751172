/**
 * Each thing that the doctor finds, brought about on a real server.
 */
import { queueKeys } from '@piecework/protocol';
import { Admin, type Check, type DoctorOptions, type Finding } from 'piecework';
import { describe, expect, it } from 'vitest';
import { connected, freshName, given, Hand, type Scene, tickOnce } from '../support/given.js';

async function examine(queue: string, options: DoctorOptions = {}): Promise<Finding[]> {
  const admin = new Admin({ redis: await connected(), queue });
  return admin.doctor(options);
}

const queueOf = ({ queue }: Scene) => queue.keys.queue;

/** What is wrong, as `level what`, of one check. */
const wrong = (findings: readonly Finding[], check: Check) =>
  findings
    .filter((one) => one.check === check && one.level !== 'ok')
    .map(({ level, what }) => `${level} ${what}`);

const fine = (findings: readonly Finding[], check: Check) =>
  findings.filter((one) => one.check === check).every(({ level }) => level === 'ok');

const QUEUE_CHECKS = [
  'queue',
  'workers',
  'parked',
  'agenda',
  'books',
  'tokens',
  'orphans',
] as const;

describe('a healthy queue', () => {
  it('has nothing wrong, with work in flight, parked, delayed and settled', async () => {
    const scene = await given.filled({ items: 6, limit: 3, attempts: 3 });
    const worker = new Hand(scene);
    const [one, two] = await worker.hold(3);
    await worker.settle(
      [
        { entry: one!.entry, kind: 's', value: '1' },
        { entry: two!.entry, kind: 'f', value: '{}', delayMs: 60_000 },
      ],
      { keep: 1 },
    );
    await scene.queue.tick('w1', '{"tasks":"*","concurrency":3,"running":1,"startedAt":1}');
    const findings = await examine(queueOf(scene), { deep: true });
    for (const check of QUEUE_CHECKS) expect(wrong(findings, check)).toEqual([]);
    for (const check of QUEUE_CHECKS) expect(findings.map((one) => one.check)).toContain(check);
  });
});

describe('the books', () => {
  const spoil: Record<string, (scene: Scene) => Promise<unknown>> = {
    'more is settled': ({ connection, request }) =>
      connection.client.hincrby(request.keys.request, 'succeeded', 9),
    'its stream has 2 of 3': ({ connection, request, generation }) =>
      connection.client.xdel(request.keys.work, `${generation}-2`),
    'its stream has 3 of 5': ({ connection, request }) =>
      connection.client.hincrby(request.keys.request, 'total', 2),
    '1 of its sub-requests are neither settled nor waiting': ({
      connection,
      request,
      generation,
    }) => connection.client.xack(request.keys.work, 'workers', `${generation}-0`),
    '1 are due again, but 0': ({ connection, request, generation }) =>
      connection.client.zadd(request.keys.due, 0, `${generation}-0`),
    '1 permits are granted, but workers have 0': ({ connection, request }) =>
      connection.client.hdel(request.keys.request, 'permits:w'),
  };

  it.each(Object.entries(spoil))('that are wrong are reported: %s', async (what, spoilIt) => {
    const scene = await given.filled({ items: 3, limit: 2 });
    const worker = new Hand(scene, 'w');
    await worker.enter(1);
    await worker.read(1);
    await tickOnce(scene);
    expect(wrong(await examine(queueOf(scene)), 'books')).toEqual([]);
    await spoilIt(scene);
    const [first, ...others] = wrong(await examine(queueOf(scene)), 'books');
    expect(first).toContain(`error ${scene.id}: `);
    expect(first).toContain(what);
    expect(others).toEqual([]);
  });
});

describe('a request that would not be tended', () => {
  it('is found when it is not on the agenda, and put there by a repair', async () => {
    const scene = await given.filled({ items: 2 });
    const { client } = scene.connection;
    await tickOnce(scene);
    await client.zrem(scene.queue.keys.agenda, scene.id);
    await client.zrem(scene.queue.keys.wait, scene.id);
    const found = await examine(queueOf(scene));
    expect(wrong(found, 'tokens')).toEqual([`error ${scene.id}: no process will look after it`]);
    const repaired = await examine(queueOf(scene), { repair: true });
    expect(repaired[0]).toMatchObject({
      check: 'repair',
      what: expect.stringContaining(`taken up again: ${scene.id}`),
    });
    expect(wrong(repaired, 'tokens')).toEqual([]);
  });

  it('is found when its tend is overdue', async () => {
    const scene = await given.filled({ items: 2 });
    const { keys } = scene.queue;
    await scene.connection.client.zrem(keys.wait, scene.id);
    await scene.connection.client.zadd(keys.agenda, Date.now() - 60_000, scene.id);
    expect(wrong(await examine(queueOf(scene)), 'tokens').join()).toMatch(/looked after 6\d s ago/);
    expect(wrong(await examine(queueOf(scene), { repair: true }), 'tokens')).toEqual([]);
  });

  it('is found when it has ready work and neither token nor permit', async () => {
    const scene = await given.filled({ items: 2 });
    const { client } = scene.connection;
    const { keys } = scene.queue;
    await client.hset(scene.request.keys.request, 'out', 0, 'outBefore', 0);
    await client.del(keys.list(50));
    await client.zrem(keys.wait, scene.id);
    await client.zadd(keys.agenda, Date.now() + 900_000, scene.id);
    expect(wrong(await examine(queueOf(scene)), 'tokens').join()).toMatch(
      /ready work, and no worker hears of it for another (89\d|900) s/,
    );
    await examine(queueOf(scene), { repair: true });
    expect(await client.llen(keys.list(50))).toBe(1);
    expect(wrong(await examine(queueOf(scene)), 'tokens')).toEqual([]);
  });

  it('does not include a request that is delayed, paused or parked', async () => {
    const scene = await given.filled({ items: 2 });
    const { client } = scene.connection;
    const { keys } = scene.queue;
    const { request } = scene.request.keys;
    await client.hset(request, 'out', 0, 'outBefore', 0);
    await client.zrem(keys.wait, scene.id);
    await client.zadd(keys.agenda, Date.now() + 900_000, scene.id);
    for (const [field, value] of [
      ['paused', 1],
      ['parked', 1],
      ['heldUntil', Date.now() + 800_000],
    ] as const) {
      await client.hset(request, field, value);
      expect(wrong(await examine(queueOf(scene)), 'tokens'), field).toEqual([]);
      await client.hdel(request, field);
    }
    expect(wrong(await examine(queueOf(scene)), 'tokens')).toHaveLength(1);
  });
});

describe('orphans', () => {
  it('are unfinished requests that the queue lost, found with `deep`, gone after a repair', async () => {
    const scene = await given.filled({ items: 2 });
    const { keys } = scene.queue;
    await scene.connection.client.unlink(keys.open, keys.agenda, keys.wait, keys.marks);
    expect(fine(await examine(queueOf(scene)), 'orphans')).toBe(true);
    expect(wrong(await examine(queueOf(scene), { deep: true }), 'orphans')).toEqual([
      `error the queue does not know ${scene.id}: no worker runs them`,
    ]);
    const repaired = await examine(queueOf(scene), { repair: true });
    expect(repaired[0]?.what).toContain(`opened again: ${scene.id}`);
    expect(wrong(repaired, 'orphans')).toEqual([]);
    expect(await scene.connection.client.hget(keys.open, scene.id)).toBe(String(scene.generation));
  });

  it('are open ids without a request, too', async () => {
    const { queue, id } = await given.opened();
    const { client } = await connected();
    // A moment ago: its request may still come.
    expect(fine(await examine(queue.keys.queue), 'orphans')).toBe(true);
    await client.zadd(queue.keys.agenda, Date.now() - 60_000, id);
    expect(wrong(await examine(queue.keys.queue), 'orphans').join()).toContain(
      `warning ${id}: it is open without a request`,
    );
    expect(wrong(await examine(queue.keys.queue, { repair: true }), 'orphans')).toEqual([]);
    expect(await client.hget(queue.keys.open, id)).toBeNull();
  });
});

describe('the queue', () => {
  it('warns when nothing is known of it, and when it is paused', async () => {
    const queue = freshName('paused');
    const admin = new Admin({ redis: await connected(), queue });
    expect(wrong(await admin.doctor(), 'queue')).toEqual([
      `warning nothing is known of queue ${queue}: no worker, no open request, and nothing in its history`,
    ]);
    await admin.pauseQueue();
    expect(wrong(await admin.doctor(), 'queue').join()).toContain('until somebody resumes it');
    await admin.pauseQueue({ forMs: 60_000 });
    await admin.resumeQueue();
    await admin.pauseQueue({ forMs: 60_000 });
    expect(wrong(await admin.doctor(), 'queue').join()).toMatch(/paused until \d{4}-/);
    await admin.resumeQueue();
  });

  it('warns when no worker serves it, and names workers that have been silent for long', async () => {
    const scene = await given.filled({ items: 1 });
    const { client } = scene.connection;
    expect(wrong(await examine(queueOf(scene)), 'workers')).toEqual([
      'warning no worker is registered; open requests: 1',
    ]);
    const info = '{"host":"h","pid":7,"tasks":"*","concurrency":1,"running":0,"startedAt":1}';
    await scene.queue.tick('w1', info);
    expect(wrong(await examine(queueOf(scene)), 'workers')).toEqual([]);
    await client.zadd(queueKeys(queueOf(scene)).workers, Date.now() - 40_000, 'w1');
    expect(wrong(await examine(queueOf(scene)), 'workers').join()).toContain(
      '1 worker silent for long: w1 (h, process 7)',
    );
    // A frugal one.
    await scene.queue.tick('w1', info.replace('}', ',"restMs":50000}'), '', true);
    await client.zadd(queueKeys(queueOf(scene)).workers, Date.now() - 55_000, 'w1');
    await client.hset(queueKeys(queueOf(scene)).counters, 'tickedAt', Date.now() - 55_000);
    expect(wrong(await examine(queueOf(scene)), 'workers')).toEqual([]);
    expect(wrong(await examine(queueOf(scene)), 'agenda')).toEqual([]);
  });

  it('warns when no worker serves a task', async () => {
    const scene = await given.filled({ items: 1, task: 'census' });
    const { queue, id, generation } = scene;
    await new Hand(scene).tryEnter(1, [1], ' other ');
    await queue.park(id, generation, 'census');
    expect(wrong(await examine(queueOf(scene)), 'parked')).toEqual([
      `warning no worker serves task census: ${id}`,
    ]);
    await queue.tick('w', '{"tasks":["census"],"concurrency":1,"running":0,"startedAt":1}');
    expect(wrong(await examine(queueOf(scene)), 'parked')).toEqual([]);
  });

  it('reports when no process ticks what is due, and a repair ticks it', async () => {
    const scene = await given.filled({ items: 1 });
    const { client } = scene.connection;
    const due = () => client.zadd(scene.queue.keys.agenda, Date.now() - 90_000, scene.id);
    expect(wrong(await examine(queueOf(scene)), 'agenda')).toEqual([]);
    await due();
    expect(wrong(await examine(queueOf(scene)), 'agenda').join()).toMatch(/for 9\d s/);
    await tickOnce(scene);
    expect(wrong(await examine(queueOf(scene)), 'agenda')).toEqual([]);
    await client.hset(scene.queue.keys.counters, 'tickedAt', Date.now() - 90_000);
    await due();
    expect(wrong(await examine(queueOf(scene)), 'agenda').join()).toMatch(/for 9\d s/);
    expect(wrong(await examine(queueOf(scene), { repair: true }), 'agenda')).toEqual([]);
  });
});

it('refuses options that it does not know', async () => {
  const admin = new Admin({ redis: await connected() });
  await expect(admin.doctor({ users: { boss: 'x' } as never })).rejects.toThrow(/users/);
  await expect(admin.doctor({ depth: 1 } as never)).rejects.toThrow(/depth/);
});
