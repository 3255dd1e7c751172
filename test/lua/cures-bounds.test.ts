import { QueueCommands, TimedCommands } from '@piecework/protocol';
import { run } from '@piecework/protocol/testing';
import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  back,
  failure,
  freshName,
  given,
  Hand,
  LEASE_MS,
  type Options,
  PRODUCER,
  type Scene,
  success,
} from '../support/given.js';
import { keysOf } from '../support/leaks.js';
import { inspect, inspectQueue } from '../support/peek.js';
import { redriveOf } from '../support/redriven.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Short histories of what one call may do at most: each for one bound of the scripts, and for what must not be
 * lost because a call stopped there.
 */

useTestClock();

/** Two of these are more than one call brings. */
const LONG = 'x'.repeat(600_000);
const KEY = 'x'.repeat(60_000);
const MINE = ' mine ';

/** Sealed, of `n` long ones. */
async function long(n: number, options: Options = {}): Promise<Scene> {
  const scene = await given.created({ limit: 100, ...options });
  await scene.request.append(scene.generation, PRODUCER, 0, Array(n).fill(LONG));
  await scene.request.seal(scene.generation, PRODUCER, n);
  return scene;
}

/** Long ones that a worker gave back. */
async function longDue(n: number): Promise<Scene> {
  const scene = await long(n);
  const hand = new Hand(scene, 'before');
  await hand.settle((await hand.hold(n)).map(back), { keep: 0 });
  return scene;
}

/** As many records of one result each, long or not; one more sub-request is unfinished. */
async function recorded(n: number, isLong: (i: number) => boolean): Promise<Scene> {
  const scene = await given.sealed({ items: n + 1, limit: n + 1 });
  const hand = new Hand(scene);
  const entries = await hand.hold(n + 1);
  for (const [i, entry] of entries.slice(0, n).entries())
    await hand.settle([success(entry, isLong(i) ? `"${LONG}"` : '1')], { running: n - i });
  return scene;
}

const indexesOf = (rows: readonly { records: readonly { index: number }[] }[]) =>
  rows.map(({ records }) => records[0]?.index);

/** Parks `n` ids of a task in the queue of this scene. */
async function park({ queue, connection }: Scene, task: string, n: number): Promise<string[]> {
  const ids = Array.from({ length: n }, (_, i) => `${task}${i}`);
  await connection.client.hset(queue.keys.open, ...ids.flatMap((id) => [id, 1]));
  for (const id of ids) await queue.park(id, 1, task);
  return ids;
}

const settled = (scene: Scene, read: number) => {
  const numbers = { op: 2, leaseMs: LEASE_MS, keep: 9, running: 0, read };
  return scene.request.settle(scene.generation, 'worker', numbers, []);
};

/** Complete; so large a result is not left to expire. */
async function keepsMuch(): Promise<{ scene: Scene; life: string }> {
  const scene = await given.sealed({ items: 2, limit: 2, retentionMs: 5_000 });
  const hand = new Hand(scene);
  const [first, second] = await hand.hold(2);
  const ended = await hand.trySettle([
    success(first!, `"${'x'.repeat(17_000_000)}"`),
    failure(second!),
  ]);
  if (ended.verdict !== 'complete') throw new Error(ended.verdict);
  await scene.queue.finish(scene.id, scene.generation, ended.outcome, ended.spentAt);
  return { scene, life: `${scene.id}~${scene.generation}` };
}

const traces: Record<string, Trace> = {
  'ends that come in one call count as though each came alone, in their order': {
    async play() {
      const scene = await given.sealed({ items: 0 });
      const { id, generation, queue } = scene;
      const others = await given.sealed({ items: 0, queue: queue.keys.queue });
      const ends = ['succeeded', 'succeeded', 'dropped'].map((outcome) =>
        queue.finish(id, generation, outcome, 9_000_000_000_000),
      );
      await Promise.all([...ends, queue.finish(others.id, others.generation, 'gone')]);
      const { open, history, counters } = await inspectQueue(scene);
      expect({ open, history }).toEqual({ open: {}, history: {} });
      expect(counters).toEqual({});
      const again = await given.sealed({ items: 0, queue: queue.keys.queue });
      const keep = await given.opened({ queue: queue.keys.queue });
      await Promise.all([
        queue.finish(again.id, again.generation, 'succeeded'),
        queue.finish(again.id, again.generation, 'succeeded'),
      ]);
      expect((await inspectQueue(keep)).counters).toMatchObject({ succeeded: 1 });
    },
    without: [{ script: 'finish', cure: 'ends of one call count in their order' }],
  },

  'the lists of a queue are cleared away by a process that does not know which are used': {
    async play() {
      const scene = await given.filled({ items: 2, priority: 7 });
      const { connection, queue } = scene;
      await given
        .filled({ items: 2, queue: queue.keys.queue })
        .then(({ id, generation }) => queue.finish(id, generation, 'succeeded'));
      const other = new QueueCommands(connection, queue.keys.queue);
      await other.finish(scene.id, scene.generation, 'succeeded');
      const { counters, history, pushed } = queue.keys;
      const left = await keysOf(connection.client, queue.keys.queue);
      expect(left).toEqual([counters, history].sort());
      expect(left).not.toContain(pushed);
    },
    without: [
      { script: 'finish', cure: 'lists that a process does not know are cleared away too' },
    ],
  },

  'the history of a queue keeps the last thousand ends, and few more': {
    async play() {
      const scene = await given.opened();
      const { queue } = scene;
      for (let i = 0; i < 1_100; i += 100) {
        const ids = Array.from({ length: 100 }, (_, n) => `${scene.id}-${i + n}`);
        const opened = ids.map(async (id) => ({ id, generation: await queue.intent(id) }));
        const ends = await Promise.all(opened);
        await Promise.all(ends.map(({ id, generation }) => queue.finish(id, generation, 'failed')));
      }
      const kept = Object.keys((await inspectQueue(scene)).history).length;
      expect(kept).toBeGreaterThanOrEqual(1_000);
      expect(kept).toBeLessThan(1_064);
    },
    without: [{ script: 'finish', cure: 'the history of a queue is bounded' }],
  },

  'a worker learns of parked requests of its own tasks, and of no others': {
    async play() {
      const scene = await given.opened();
      await park(scene, 'a', 3);
      await park(scene, 'mine', 2);
      await park(scene, 'z', 3);
      const { parked } = await scene.queue.tick('w', '{}', MINE);
      expect(parked.map(({ id }) => id)).toEqual(['mine0', 'mine1']);
      expect((await scene.queue.tick('', '')).parked).toEqual([]);
    },
    without: [
      {
        script: 'tick',
        cure: 'a tick reports to a worker only the requests parked for it',
        change: { becomes: "read('-', '+')" },
      },
      {
        script: 'tick',
        cure: 'a tick reports to a worker only the requests parked for it, 2',
        change: { becomes: "(function() tasks = tasks == '' and '*' or tasks return true end)()" },
      },
    ],
  },

  'of many parked requests each is named once, at most 100 by one tick': {
    async play() {
      const scene = await given.opened();
      const ids = [...(await park(scene, 'a', 120)), ...(await park(scene, 'b', 130))];
      const told: string[][] = [];
      do {
        const { parked } = await scene.queue.tick('w', '{}', ' a b ');
        told.push(parked.map(({ id }) => id));
      } while (told.at(-1)?.length !== 0 && told.length < 5);
      expect(told.map(({ length }) => length)).toEqual([100, 100, 50, 0]);
      expect(told.flat().sort()).toEqual(ids.sort());
      expect((await inspectQueue(scene)).parked).toEqual({});
    },
    without: [
      {
        script: 'tick',
        cure: 'parked requests are reported in pages',
        change: { becomes: '1000' },
      },
      { script: 'tick', cure: 'a parked request is reported once' },
    ],
  },

  'of many requests that only wait, fifty are tended a minute': {
    async play() {
      const scene = await given.opened();
      const { agenda } = scene.queue.keys;
      const later = Date.now() + 9_000_000;
      const many = Array.from({ length: 1_000 }, (_, i) => [later, `other${i}`]).flat();
      await scene.connection.client.zadd(agenda, ...many);
      moveClock(20_100);
      const { claims, now } = await scene.queue.tick('', '');
      await scene.queue.writeBack(claims[0]!, {
        ...{ mint: 0, epoch: 1, priority: 50, before: '', next: 0, parked: '+x' },
      });
      const next = Number(await scene.connection.client.zscore(agenda, scene.id));
      expect(next).toBeGreaterThanOrEqual(now + 20 * 60_000);
    },
    without: [{ script: 'write-back', cure: 'requests that only wait share one pace of tends' }],
  },

  'a parked request that a worker found is tended a grace later': {
    async play() {
      const scene = await given.opened();
      await park(scene, 'mine', 1);
      const { agenda } = scene.queue.keys;
      await scene.connection.client.zadd(agenda, 9_000_000_000_000, 'mine0');
      const { now } = await scene.queue.tick('w', '{}', MINE);
      const next = Number(await scene.connection.client.zscore(agenda, 'mine0'));
      expect(next).toBeLessThanOrEqual(now + 5_000);
    },
    without: [{ script: 'tick', cure: 'a parked request is tended after a worker found it' }],
  },

  'one tick finds at most 500 requests whose tokens were all popped, in all priorities together': {
    async play() {
      const scene = await given.nothing();
      const { wait, marks } = scene.queue.keys;
      for (const priority of [1, 2, 3, 4]) {
        const ids = Array.from({ length: 200 }, (_, i) => `${priority}-${i}`);
        const scores = ids.flatMap((id) => [priority * 2 ** 44, id]);
        await scene.connection.client.zadd(wait, ...scores);
        await scene.connection.client.hset(marks, ...ids.flatMap((id) => [id, '1']));
      }
      await scene.queue.tick('', '');
      expect(await scene.connection.client.zcard(wait)).toBe(300);
      await scene.queue.tick('', '');
      expect(await scene.connection.client.zcard(wait)).toBe(0);
    },
    without: [{ script: 'tick', cure: 'one tick passes so many in all' }],
  },

  'a take brings about a mebibyte, and says how many others are due': {
    async play() {
      const scene = await longDue(5);
      await new Hand(scene).enter(5);
      const taken = await scene.request.take(scene.generation, 'worker', 5, 2);
      expect(taken).toMatchObject({ entries: [{ index: 0 }, { index: 1 }], left: 3 });
      expect((await inspect(scene)).counts).toMatchObject({ inFlight: 2, ready: 3 });
    },
    without: [{ script: 'take', cure: 'a take is bounded by bytes' }],
  },

  'a take that arrives twice, or behind a later call, takes nothing more and says so': {
    async play() {
      const scene = await given.sealed({ items: 4, limit: 4 });
      const before = new Hand(scene, 'before');
      await before.settle((await before.hold(4)).map(back), { keep: 0 });
      const hand = new Hand(scene);
      await hand.enter(2);
      const take = (op: number) => scene.request.take(scene.generation, 'worker', 2, op);
      expect(await take(2)).toMatchObject({ entries: [{ index: 0 }, { index: 1 }], left: 2 });
      expect(await take(2)).toEqual({ entries: [], left: -1 });
      expect(await take(1)).toEqual({ entries: [], left: -1 });
      expect((await inspect(scene)).counts).toMatchObject({ inFlight: 2, ready: 2 });
      await hand.settle([], { keep: 2, running: 2, op: 3 });
      expect(await take(3)).toEqual({ entries: [], left: -1 });
    },
    without: [
      { script: 'take', cure: 'op number in take', change: 'never' },
      { script: 'take', cure: 'op number in take, 2' },
    ],
  },

  'a settle reads about a mebibyte, and says that there is more': {
    async play() {
      const scene = await long(5);
      await new Hand(scene).enter(5);
      const { entries, settled: answer } = await settled(scene, 5);
      expect(entries.map(({ index }) => index)).toEqual([0, 1]);
      expect(answer).toMatchObject({ cut: true });
    },
    without: [
      { script: 'settle', cure: 'a settle reads by bytes' },
      { script: 'settle', cure: 'a settle reads by bytes, 2', change: { becomes: '0' } },
    ],
  },

  'an enter reads about a mebibyte of a small request, and says what is left': {
    async play() {
      const scene = await long(5);
      const { request, generation } = scene;
      const entered = await request.enter({
        generation,
        worker: 'worker',
        op: 1,
        want: 5,
        leaseMs: LEASE_MS,
        tasks: '*',
        epochs: ['1'],
        most: 16,
      });
      expect(entered).toMatchObject({
        entries: [{ index: 0 }, { index: 1 }],
        ready: 3,
        permits: 5,
      });
    },
    without: [
      { script: 'enter', cure: 'a settle reads by bytes' },
      { script: 'append', cure: 'an enter reads by bytes' },
    ],
  },

  'a tend takes 200 sub-requests back from dead workers; later tends take the others, and count crashes':
    {
      async play() {
        const scene = await given.sealed({ items: 500, limit: 500 });
        for (let i = 0; i < 5; i += 1) await new Hand(scene, `dead${i}`).hold(100);
        moveClock(LEASE_MS + 1);
        const first = await scene.request.tend(scene.generation, '');
        const { counts, fields, now } = await inspect(scene);
        expect(counts).toMatchObject({ ready: 200, inFlight: 300 });
        expect(Object.keys(fields).filter((field) => /^crashed:/.test(field))).toHaveLength(3);
        expect(first).toMatchObject({ reclaimed: 200 });
        expect((first as { next: number }).next).toBeLessThan(now + 1_000);
        await scene.request.tend(scene.generation, '');
        await scene.request.tend(scene.generation, '');
        const then = await inspect(scene);
        expect(then.counts).toMatchObject({ ready: 500, inFlight: 0 });
        expect(Object.values(then.crashes)).toEqual(Array(500).fill(1));
        expect(Object.keys(then.fields).filter((field) => /^crashed:/.test(field))).toEqual([]);
      },
      without: [
        { script: 'tend', cure: 'a tend takes back so many in all', change: { becomes: '100' } },
        { script: 'tend', cure: 'a tend takes back so many in all, 2', change: { skip: 2 } },
        { script: 'tend', cure: 'a tend takes back so many in all, 3' },
      ],
    },

  'a tend finds 250 leases that ended; the next one, at once, finds the others': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1_000 });
      const { request } = scene.request.keys;
      const leases = Array.from({ length: 600 }, (_, i) => [
        ...[`permits:w${i}`, 1, `lease:w${i}`, 1, `term:w${i}`, 1],
      ]);
      await scene.connection.client.hset(request, ...leases.flat(), 'granted', 600);
      const first = await scene.request.tend(scene.generation, '');
      const { granted, now } = await inspect(scene);
      expect(granted).toBe(350);
      expect((first as { next: number }).next).toBeLessThan(now + 1_000);
      await scene.request.tend(scene.generation, '');
      await scene.request.tend(scene.generation, '');
      expect((await inspect(scene)).granted).toBe(0);
    },
    without: [
      { script: 'tend', cure: 'a tend finds so many leases ended', change: 'never' },
      { script: 'tend', cure: 'a tend finds so many leases ended, 2' },
    ],
  },

  'what is kept of a request that keeps much is unlinked when its retention is over, not left to expire':
    {
      async play() {
        const { scene, life } = await keepsMuch();
        const { request, failed, results } = scene.request.keys;
        const { client } = scene.connection;
        expect(await scene.request.unlinkSpent(scene.generation)).toBe(false);
        expect((await scene.queue.tick('', '')).spent).toEqual([]);
        expect(await client.pttl(results)).toBeGreaterThan(60_000);
        moveClock(5_001);
        expect((await scene.queue.tick('', '')).spent).toEqual([life]);
        // Claimed, like a request; whoever claimed it may have died.
        expect((await scene.queue.tick('', '')).spent).toEqual([]);
        moveClock(8_001);
        expect((await scene.queue.tick('', '')).spent).toEqual([life]);
        expect(await scene.request.unlinkSpent(scene.generation)).toBe(true);
        expect(await client.exists(request, failed, results)).toBe(0);
        expect(await scene.request.unlinkSpent(scene.generation)).toBe(true);
        await scene.queue.forgetSpent(life);
        expect(await client.exists(scene.queue.keys.spent)).toBe(0);
      },
      without: [
        { script: 'settle', cure: 'large keys are unlinked before they expire' },
        { script: 'settle', cure: 'large keys are unlinked before they expire, 2' },
        { script: 'finish', cure: 'large keys are unlinked before they expire, 3' },
        { script: 'tick', cure: 'large keys are unlinked before they expire, 4' },
        {
          script: 'unlink-spent',
          cure: 'large keys are unlinked before they expire, 5',
          change: 'never',
        },
      ],
    },

  'a request that was redriven is not unlinked when its old retention is over': {
    async play() {
      const { scene } = await keepsMuch();
      const { id, generation, queue, request, connection } = scene;
      moveClock(4_000);
      const next = await queue.intent(id);
      await redriveOf(scene).open(next, 'redriver', 60_000);
      moveClock(4_000);
      const [life = ''] = (await queue.tick('', '')).spent;
      expect(life).toBe(`${id}~${generation}`);
      expect(await request.unlinkSpent(generation)).toBe(true);
      expect(await request.unlinkSpent(next)).toBe(true);
      const { request: state, failed, results } = request.keys;
      expect(await connection.client.exists(state, failed, results)).toBe(3);
    },
    without: [
      [
        {
          script: 'unlink-spent',
          cure: 'an unlink belongs to its generation',
          change: { becomes: 'not v[3]' },
        },
        { script: 'redrive', cure: 'an unlink belongs to its generation, 2' },
      ],
    ],
  },

  'a later call that sees the completion also says when the kept data are to be unlinked': {
    async play() {
      const { scene } = await keepsMuch();
      const { request, generation } = scene;
      const spentAt = Number((await request.fields('spentAt'))['spentAt']);
      expect(await request.tend(generation, '')).toMatchObject({ verdict: 'complete', spentAt });
      expect(await request.cancel(generation)).toMatchObject({ verdict: 'complete', spentAt });
      expect(await new Hand(scene, 'late').tryEnter(1)).toMatchObject({ spentAt });
    },
    without: (['tend', 'cancel', 'enter'] as const).map((script) => ({
      script,
      cure: `every reply on a completion says what to unlink, of ${script}`,
      change: { becomes: "{ 'complete', redis.call('HGET', request, 'outcome') }" },
    })),
  },

  'a read of results brings about a megabyte, however long the first or a later one is': {
    async play() {
      const scene = await recorded(14, (i) => i >= 11);
      const first = await scene.request.results('-', 32);
      expect(indexesOf(first)).toEqual(Array.from({ length: 13 }, (_, i) => i));
      const then = await scene.request.results(`(${first.at(-1)?.position}`, 32);
      expect(indexesOf(then)).toEqual([13]);
    },
    without: [
      { script: 'read-results', cure: 'a read of results is bounded by bytes' },
      { script: 'settle', cure: 'a read of results is bounded by bytes, 2' },
    ],
  },

  'a read of results that are all long brings about a megabyte, too': {
    async play() {
      const scene = await recorded(3, () => true);
      const first = await scene.request.results('-', 32);
      expect(indexesOf(first)).toEqual([0]);
      const then = await scene.request.results(`(${first[0]?.position}`, 32);
      expect(indexesOf(then)).toEqual([1]);
    },
    without: [
      {
        script: 'read-results',
        cure: 'a read of results is bounded by bytes, 3',
        change: { becomes: 'count' },
      },
    ],
  },

  'a read of long results ends at the last record of now, or where it was asked to end': {
    async play() {
      const { connection, request, generation } = await recorded(3, () => true);
      const read = (to: string) =>
        run(connection.client, 'read-results', request.keys, {
          generation: 0,
          from: '-',
          to,
          count: 32,
        });
      const rows = await connection.client.xrange(request.keys.results, '-', '+');
      const positions = rows.map(([position]) => position);
      expect(await read('+')).toEqual({
        verdict: 'long',
        most: 1,
        from: `${generation}-0`,
        to: positions[2],
      });
      expect(await read(positions[1] ?? '')).toMatchObject({ to: positions[1] });
    },
    without: [
      {
        script: 'read-results',
        cure: 'a read of long results ends where it was calculated',
        change: { becomes: 'to' },
      },
    ],
  },

  'a read of discarded items brings about a megabyte, and the next one continues behind it': {
    async play() {
      const { connection } = await given.nothing();
      const set = new TimedCommands(connection, 'retry', freshName('bytes'));
      for (const [i, key] of ['a', 'b', 'c'].entries()) {
        await set.put('caller', i + 1, [{ key, token: '', time: i, payload: LONG }]);
        const took = await set.take('taker', i + 1, 1, LEASE_MS);
        const token = took.verdict === 'taken' ? took.token : '';
        await set.settle('caller', i + 1, 9, [{ key, token, verb: 'discard', value: '' }]);
      }
      const first = await set.failures('', 100);
      expect(first.found.map(({ key }) => key)).toEqual(['a', 'b']);
      const then = await set.failures(first.cursor, 100);
      expect(then.found.map(({ key }) => key)).toEqual(['c']);
      expect((await set.failures(then.cursor, 100)).found).toEqual([]);
      await set.drop();
    },
    without: [{ script: 'timed-failures', cure: 'a read of discarded items is bounded by bytes' }],
  },

  'a take of a timed set brings about a mebibyte, and asks for the next take at once': {
    async play() {
      const { connection } = await given.nothing();
      const set = new TimedCommands(connection, 'retry', freshName('bytes'));
      const entries = ['a', 'b', 'c', 'd'].map((key, time) => ({
        key,
        token: '',
        time,
        payload: LONG,
      }));
      await set.put('caller', 1, entries);
      const first = await set.take('taker', 1, 4, LEASE_MS);
      expect(first).toMatchObject({ taken: [{ key: 'a' }, { key: 'b' }] });
      const { now, next } = first as { now: number; next: number };
      expect(next).toBe(now);
      expect(await set.take('taker', 2, 4, LEASE_MS)).toMatchObject({
        taken: [{ key: 'c' }, { key: 'd' }],
      });
      await set.drop();
    },
    without: [
      { script: 'timed-take', cure: 'a take of a timed set is bounded by bytes' },
      { script: 'timed-take', cure: 'a take of a timed set is bounded by bytes, 2' },
    ],
  },

  'a take of a timed set brings about a third of a mebibyte of keys, and all are brought by several':
    {
      async play() {
        const { connection } = await given.nothing();
        const set = new TimedCommands(connection, 'schedule', freshName('keys'));
        const keys = Array.from({ length: 12 }, (_, i) => `${i === 0 ? '' : KEY}${i}`);
        await set.put(
          'caller',
          1,
          keys.map((key, time) => ({ key, token: '', time, payload: '' })),
        );
        const takes: string[][] = [];
        for (let number = 1; takes.flat().length < 12; number += 1) {
          const took = await set.take('taker', number, 12, LEASE_MS);
          takes.push(took.verdict === 'taken' ? took.taken.map(({ key }) => key) : []);
        }
        expect(takes.map(({ length }) => length)).toEqual([7, 5]);
        expect(takes.flat()).toEqual(keys);
        await set.drop();
      },
      without: [{ script: 'timed-take', cure: 'long keys count in a take of a timed set' }],
    },

  'a take of a timed set brings some hundred keys, however short': {
    async play() {
      const { connection } = await given.nothing();
      const set = new TimedCommands(connection, 'schedule', freshName('many'));
      const keys = Array.from({ length: 500 }, (_, i) => `${i}`);
      await set.put(
        'caller',
        1,
        keys.map((key, time) => ({ key, token: '', time, payload: '' })),
      );
      const first = await set.take('taker', 1, 1_000, LEASE_MS);
      const then = await set.take('taker', 2, 1_000, LEASE_MS);
      const taken = [first, then].map((took) => (took.verdict === 'taken' ? took.taken : []));
      expect(taken[0]!.length).toBeLessThan(450);
      expect(taken.flat().map(({ key }) => key)).toEqual(keys);
      await set.drop();
    },
    without: [{ script: 'timed-take', cure: 'each key counts in a take of a timed set' }],
  },
};

playTraces('bounds of one call', traces);
