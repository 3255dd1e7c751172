import { TimedCommands } from '@piecework/protocol';
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
import { inspect } from '../support/peek.js';
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
const MINE = { tasks: ' mine ', after: '' };

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
  'parked, by task': {
    says: 'a worker is told of what waits for its tasks, and not of what waits for others',
    async play() {
      const scene = await given.opened();
      await park(scene, 'a', 3);
      await park(scene, 'mine', 2);
      await park(scene, 'z', 3);
      const { parked, parkedAfter } = await scene.queue.tick('w', '{}', MINE);
      expect(parked.map(({ id }) => id)).toEqual(['mine0', 'mine1']);
      expect(parkedAfter).toBe('');
      expect((await scene.queue.tick('', '')).parked).toEqual([]);
    },
    without: [
      {
        script: 'tick',
        from: "read(behind or '[' .. task .. '\\0', '(' .. task .. '\\1')",
        to: "read(behind or '-', '+')",
      },
      { script: 'tick', from: "if tasks ~= '' then", to: "if tasks == '' then tasks = '*' end do" },
    ],
  },

  'parked, in turns': {
    says: 'of many that wait for a worker each is told in its turn, at most 100 by one tick',
    async play() {
      const scene = await given.opened();
      const ids = [...(await park(scene, 'a', 120)), ...(await park(scene, 'b', 130))];
      const told: string[] = [];
      let seeking = { tasks: ' a b ', after: '' };
      do {
        const { parked, parkedAfter } = await scene.queue.tick('w', '{}', seeking);
        expect(parked.length).toBeLessThanOrEqual(100);
        told.push(...parked.map(({ id }) => id));
        const [task] = parkedAfter.split('\0');
        seeking = { tasks: task === 'b' ? ' b a ' : ' a b ', after: parkedAfter };
      } while (seeking.after !== '' && told.length < 1_000);
      expect([...new Set(told)].sort()).toEqual(ids.sort());
    },
    without: [
      { script: 'tick', from: "local behind = after ~= '' and '(' .. after", to: 'local behind' },
      { script: 'tick', from: 'local left = max - #entries', to: 'local left = 1000' },
    ],
  },

  'parked, by an earlier version': {
    says: 'what a worker of an earlier version parked, which knows no index, is found',
    async play() {
      const scene = await given.opened();
      const { parked } = scene.queue.keys;
      await scene.connection.client.hset(parked, 'early', '1 mine', 'other', '1 a');
      await scene.queue.tick('w', '{}', MINE);
      const tick = await scene.queue.tick('w', '{}', MINE);
      expect(tick.parked).toEqual([{ id: 'early', generation: 1, task: 'mine' }]);
    },
    without: [
      { script: 'tick', from: 'indexSome(parked, parkedByTask, counters)\nfound', to: 'found' },
    ],
  },

  'parked, no longer': {
    says: 'what a worker of an earlier version struck out is not told, and goes from the index',
    async play() {
      const scene = await given.opened();
      await park(scene, 'mine', 2);
      const { parked, parkedByTask } = scene.queue.keys;
      await scene.connection.client.hdel(parked, 'mine0');
      const tick = await scene.queue.tick('w', '{}', MINE);
      expect(tick.parked.map(({ id }) => id)).toEqual(['mine1']);
      expect(await scene.connection.client.zcard(parkedByTask)).toBe(1);
    },
    without: [{ script: 'tick', from: "redis.call('ZREM', parkedByTask, entries[i])", to: '' }],
  },

  'passed, some at a time': {
    says: 'one tick finds as many requests whose tokens were all popped as it can, in all priorities',
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
    without: [{ script: 'tick', from: 'room = room - #passed', to: '' }],
  },

  'take, by bytes': {
    says: 'a take brings about a mebibyte, and says how many others are due',
    async play() {
      const scene = await longDue(5);
      await new Hand(scene).enter(5);
      const taken = await scene.request.take(scene.generation, 'worker', 5, 2);
      expect(taken).toMatchObject({ entries: [{ index: 0 }, { index: 1 }], left: 3 });
      expect((await inspect(scene)).counts).toMatchObject({ inFlight: 2, ready: 3 });
    },
    without: [{ script: 'take', from: 'if bytes >= 1048576 then\nbreak\nend', to: '' }],
  },

  'take, sent twice': {
    says: 'a take that arrives twice, or behind a later call, takes nothing more and says so',
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
      { script: 'take', from: 'if op <= known then', to: 'if false then' },
      { script: 'take', from: "redis.call('HSET', request, 'op:' .. worker, op)", to: '' },
    ],
  },

  'settle, reads by bytes': {
    says: 'a settle reads about a mebibyte, and says that there is more',
    async play() {
      const scene = await long(5);
      await new Hand(scene).enter(5);
      const { entries, settled: answer } = await settled(scene, 5);
      expect(entries.map(({ index }) => index)).toEqual([0, 1]);
      expect(answer).toMatchObject({ cut: true });
    },
    without: [
      {
        script: 'settle',
        from: 'or #found >= count or bytes >= READ_BYTES',
        to: 'or #found >= count',
      },
      {
        script: 'settle',
        from: 'cancelling, entries, cut and 1 or 0',
        to: 'cancelling, entries, 0',
      },
    ],
  },

  'enter, reads by bytes': {
    says: 'an enter reads about a mebibyte of a small request, and says what is left',
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
      {
        script: 'enter',
        from: 'or #found >= count or bytes >= READ_BYTES',
        to: 'or #found >= count',
      },
      {
        script: 'append',
        from: "redis.call('HSET', request, 'largest', largest)",
        to: '',
      },
    ],
  },

  'tend, some at a time': {
    says: 'a look takes 200 sub-requests back from dead workers; those after take the others, as crashes',
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
      { script: 'tend', from: 'math.min(100, room)', to: '100' },
      { script: 'tend', from: "left[#left + 1] = 'crashed:' .. name\nleft[#left + 1] = 1", to: '' },
      { script: 'tend', from: 'more = more or pending > 0', to: '' },
    ],
  },

  'leases, some at a time': {
    says: 'a look finds 250 leases ended; the next, at once, the others',
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
      { script: 'tend', from: 'if ends <= at and room == 0 then', to: 'if false then' },
      { script: 'tend', from: 'nextLease = at + 1', to: '' },
    ],
  },

  'spent, unlinked': {
    says: 'what is kept of a request that keeps much is unlinked when its retention is over, not left to expire',
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
      { script: 'settle', from: "redis.call('HSET', request, 'spentAt', state.spentAt)", to: '' },
      { script: 'settle', from: 'retentionMs = retentionMs + SPENT_GRACE_MS', to: '' },
      {
        script: 'finish',
        from: "redis.call('ZADD', spent, spentAt, id .. '~' .. generation)",
        to: '',
      },
      { script: 'tick', from: "redis.call('ZADD', spent, at + lockMs, life)", to: '' },
      { script: 'unlink-spent', from: 'if tonumber(v[3]) > now() then', to: 'if false then' },
    ],
  },

  'spent, redriven': {
    says: 'what lives on since it was to be unlinked is left alone',
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
          from: "v[1] ~= generation or v[2] ~= 'complete' or not v[3]",
          to: 'not v[3]',
        },
        { script: 'redrive', from: "'contested', 'spentAt'", to: "'contested'" },
      ],
    ],
  },

  'spent, told by others': {
    says: 'whoever sees the end later says as well when what it keeps is to be unlinked',
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
      from: "return { 'complete', unpack(redis.call('HMGET', request, 'outcome', 'spentAt')) }",
      to: "return { 'complete', redis.call('HGET', request, 'outcome') }",
    })),
  },

  'results, by bytes': {
    says: 'a read of results brings about a megabyte, however long the first or a later one is',
    async play() {
      const scene = await given.sealed({ items: 7, limit: 7 });
      const hand = new Hand(scene);
      const entries = await hand.hold(7);
      for (const [i, entry] of entries.slice(0, 6).entries())
        await hand.settle([success(entry, i < 3 ? '1' : `"${LONG}"`)], { running: 6 - i });
      const first = await scene.request.results('-', 32);
      expect(first.map(({ records }) => records[0]?.index)).toEqual([0, 1, 2, 3, 4]);
      const then = await scene.request.results(`(${first.at(-1)?.position}`, 32);
      expect(then.map(({ records }) => records[0]?.index)).toEqual([5]);
    },
    without: [
      { script: 'read-results', from: 'or bytes >= 1000000', to: '' },
      { script: 'settle', from: "redis.call('HSET', request, 'longest', state.kept)", to: '' },
    ],
  },

  'discarded, by bytes': {
    says: 'a read of what was discarded brings about a megabyte, and goes on behind it',
    async play() {
      const { connection } = await given.nothing();
      const set = new TimedCommands(connection, 'retry', freshName('bytes'));
      for (const [i, key] of ['a', 'b', 'c'].entries()) {
        await set.put('caller', i + 1, [{ key, token: '', time: i, payload: LONG }]);
        const took = await set.take('taker', i + 1, 1, LEASE_MS);
        const token = took.verdict === 'taken' ? took.token : '';
        await set.settle('caller', i + 1, 9, [{ key, token, verb: 'discard', value: '' }]);
      }
      const first = await set.failures('-', 100);
      expect(first.found.map(({ key }) => key)).toEqual(['a', 'b']);
      const then = await set.failures(first.cursor, 100);
      expect(then.found.map(({ key }) => key)).toEqual(['c']);
      expect((await set.failures(then.cursor, 100)).found).toEqual([]);
      await set.drop();
    },
    without: [{ script: 'timed-failures', from: 'and bytes < 1000000 do', to: 'do' }],
  },

  'timed take, by bytes': {
    says: 'a take of a timed set brings about a mebibyte, and the next is to be asked for at once',
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
      {
        script: 'timed-take',
        from: 'bytes = bytes + #entry.payload',
        to: '',
      },
      {
        script: 'timed-take',
        from: 'and bytes < 1048576 then',
        to: 'then',
      },
    ],
  },

  'timed take, long keys': {
    says: 'a take of a timed set brings about a third of a mebibyte of keys, and all are brought by several',
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
    without: [{ script: 'timed-take', from: '+ 3 * #key', to: '' }],
  },

  'timed take, many': {
    says: 'a take of a timed set brings some hundred keys, however short',
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
    without: [{ script: 'timed-take', from: 'bytes + 2500 + 3', to: 'bytes + 3' }],
  },
};

playTraces('bounds of one call', traces);
