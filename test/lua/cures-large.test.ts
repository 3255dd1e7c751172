import { run as runScript } from '@piecework/protocol/testing';
import { expect } from 'vitest';
import { useTestClock } from '../support/clock.js';
import { given, Hand, LEASE_MS, type Scene, success } from '../support/given.js';
import { inspect } from '../support/peek.js';
import { completeWithFailures, redriveOf } from '../support/redriven.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Short histories of requests that thousands of workers hold, and of lanes of thousands of tokens: what one call
 * leaves to the next is found there, and what is too far away comes late, and not never.
 */

useTestClock();

/** Each of `n` workers holds one permit; its lease ends `ms` from now. */
async function crowd(scene: Scene, n: number, ms: number): Promise<void> {
  const { request, connection } = scene;
  const ends = (await inspect(scene)).now + ms;
  const fields = Array.from({ length: n }, (_, i) => [
    ...[`permits:w${i}`, 1, `lease:w${i}`, ends, `term:w${i}`, 1_000_000],
    ...[`since:w${i}`, 1, `op:w${i}`, 1],
  ]);
  await connection.client.hset(request.keys.request, ...fields.flat(), 'granted', n);
}

/** Looks until one says that the next may wait. Answers how often, and when the next is. */
async function tendAll(scene: Scene): Promise<{ tends: number; next: number; most: number }> {
  let before = (await inspect(scene)).granted;
  let most = 0;
  for (let tends = 1; tends < 60; tends += 1) {
    const tended = await scene.request.tend(scene.generation, '');
    if (tended.verdict !== 'ok') throw new Error(tended.verdict);
    const { now, granted } = await inspect(scene);
    most = Math.max(most, before - granted);
    before = granted;
    if (tended.next === 0 || tended.next > now + 1_000) return { tends, next: tended.next, most };
  }
  throw new Error('the tends do not end');
}

const LANE = 50;
const placesOf = async ({ queue, connection }: Scene, id: string): Promise<number[]> => {
  const tokens = (await connection.client.lrange(queue.keys.lane(LANE), 0, -1)).reverse();
  return tokens.flatMap((token, i) => (token.startsWith(`${id}~`) ? [i] : []));
};

/** A lane of 6,000 tokens. Answers where 32 go that have `due` of them before them. */
async function pushAt(due: number): Promise<number[]> {
  const scene = await given.sealed({ items: 1 });
  const { queue, connection, id } = scene;
  const lane = queue.keys.lane(LANE);
  const tokens = Array.from({ length: 6_000 }, (_, i) => `other${i}~1~1~${1_000_000 + i}`);
  await connection.client.lpush(lane, ...tokens);
  await queue.learnLanes();
  await queue.push({ ...scene, mint: 32, epoch: 1, priority: LANE, due: 999_999 + due });
  const left = await connection.client.lrange(lane, 0, -1);
  expect(left.filter((token) => !token.startsWith(`${id}~`))).toEqual(tokens.reverse());
  return placesOf(scene, id);
}

const run = (from: number) => Array.from({ length: 32 }, (_, i) => from + i);

const traces: Record<string, Trace> = {
  'of thousands of dead workers each is found, a page of them by each tend': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 10_000 });
      await crowd(scene, 1_200, -5_000);
      const { tends, most } = await tendAll(scene);
      expect((await inspect(scene)).granted).toBe(0);
      expect(most).toBeLessThanOrEqual(250);
      expect(tends).toBeGreaterThan(4);
    },
    without: [
      {
        script: 'tend',
        cure: 'a tend reads thousands of workers in pages',
        change: { becomes: '0' },
      },
      {
        script: 'tend',
        cure: 'a tend reads thousands of workers in pages, 2',
        change: { becomes: 'first' },
      },
    ],
  },

  'thousands of workers are read page by page, and the next tend is when the first lease of all ends':
    {
      async play() {
        const scene = await given.sealed({ items: 1, limit: 10_000 });
        await crowd(scene, 1_200, 900_000);
        const { request } = scene.request.keys;
        // Which page has the first one differs from server to server.
        for (let i = 0; i < 8; i += 1) {
          const ends = (await inspect(scene)).now + 14_000 - i;
          await scene.connection.client.hset(request, `lease:w${i}`, ends);
          const { tends, next } = await tendAll(scene);
          expect(tends).toBeGreaterThan(3);
          expect(next).toBe(ends);
          await scene.connection.client.hset(request, `lease:w${i}`, ends + 800_000);
        }
        expect((await inspect(scene)).granted).toBe(1_200);
      },
      without: [
        { script: 'tend', cure: 'the first lease of all pages counts', change: 'always' },
        {
          script: 'tend',
          cure: 'the first lease of all pages counts, 2',
          change: { becomes: 'nextLease' },
        },
      ],
    },

  'each sub-request of a dead one of thousands of workers counts a crash, whichever tend takes it back':
    {
      async play() {
        const scene = await given.sealed({ items: 350, limit: 10_000 });
        await crowd(scene, 1_200, 900_000);
        await scene.request.read('w0', 350);
        await scene.connection.client.hset(scene.request.keys.request, 'lease:w0', 1);
        // Where its fields are in other pages than its entries, some are left for the next audit.
        for (let audits = 0; audits < 4; audits += 1) await tendAll(scene);
        const { counts, crashes, fields, granted } = await inspect(scene);
        expect(granted).toBe(1_199);
        expect(counts).toMatchObject({ ready: 350, inFlight: 0 });
        expect(Object.values(crashes)).toEqual(Array(350).fill(1));
        expect(fields['crashed:w0']).toBeUndefined();
      },
      without: [
        { script: 'tend', cure: 'a crash is one at any page', change: { becomes: '#some' } },
      ],
    },

  'a worker that owns entries and is named by no field is found among thousands': {
    async play() {
      const scene = await given.sealed({ items: 450, limit: 10_000 });
      await crowd(scene, 1_200, 900_000);
      await scene.request.read('w0', 449);
      await scene.request.read('late', 1);
      await tendAll(scene);
      const { counts, pending } = await inspect(scene);
      expect(counts).toMatchObject({ ready: 1, inFlight: 449 });
      expect(pending.filter(({ owner }) => owner === 'late')).toEqual([]);
    },
    without: [
      { script: 'tend', cure: 'a worker that no field names is found', change: 'never' },
      { script: 'tend', cure: 'a worker that no field names is found, 2' },
    ],
  },

  'when most of thousands of workers have left, the others are read at once again': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 10_000 });
      await crowd(scene, 1_200, 900_000);
      await scene.request.tend(scene.generation, '');
      expect((await inspect(scene)).fields['looked']).toBeDefined();
      const { fields } = await inspect(scene);
      const left = Object.keys(fields).filter((field) => /:w\d{3,}$/.test(field));
      await scene.connection.client.hdel(scene.request.keys.request, ...left);
      await scene.connection.client.hset(scene.request.keys.request, 'granted', 100);
      expect(await tendAll(scene)).toMatchObject({ tends: 1 });
      expect((await inspect(scene)).fields['looked']).toBeUndefined();
    },
    without: [{ script: 'tend', cure: 'the place of a page is forgotten' }],
  },

  'what thousands of workers left is removed page by page before the next generation begins': {
    async play() {
      const scene = await completeWithFailures([0], { items: 1 });
      await crowd(scene, 1_200, -5_000);
      const { keys } = scene.request;
      const next = await scene.queue.intent(scene.id);
      const redrive = (clearing: string) =>
        runScript(scene.connection.client, 'redrive', keys, {
          ...{ generation: next, owner: 'me', leaseMs: LEASE_MS, clearing, indexes: [] },
        });
      const first = await redrive('0');
      if (first.verdict !== 'clearing') throw new Error(`not 'clearing', but ${first.verdict}`);
      expect(await scene.connection.client.hlen(keys.request)).toBeGreaterThan(3_000);
      expect((await inspect(scene)).status).toBe('complete');
      // Who went on from the reply dies; another one begins again.
      await redrive(first.from);
      expect(await redriveOf(scene).open(next, 'me', LEASE_MS)).toMatchObject({
        verdict: 'opened',
      });
      const { fields } = await inspect({ ...scene, generation: next });
      const ofWorkers = /^(permits|lease|term|since|op):/;
      expect(Object.keys(fields).filter((field) => ofWorkers.test(field))).toEqual([]);
    },
    without: [
      { script: 'redrive', cure: 'a redrive clears pages', change: 'never' },
      { script: 'redrive', cure: 'a redrive clears pages, 2', change: 'never' },
    ],
  },

  'the large state of a request with hundreds of workers is unlinked when its retention is over, not left to expire':
    {
      async play() {
        const scene = await given.sealed({ items: 1, limit: 1_000 });
        const hand = new Hand(scene);
        const [entry] = await hand.hold(1);
        await crowd(scene, 500, 900_000);
        expect(await hand.trySettle([success(entry!)])).toMatchObject({ verdict: 'complete' });
        expect((await inspect(scene)).fields['spentAt']).toBeDefined();
      },
      without: [{ script: 'settle', cure: 'a large state is unlinked before it expires' }],
    },

  'tokens whose place is near the front of a long lane go exactly there': {
    async play() {
      expect(await pushAt(0)).toEqual(run(0));
      expect(await pushAt(1)).toEqual(run(1));
      expect(await pushAt(1_000)).toEqual(run(1_000));
    },
    without: [
      { script: 'push', cure: 'a long lane is not gone through, near its front', change: 'never' },
      {
        script: 'push',
        cure: 'a long lane is not gone through, near its front, 2',
        change: { becomes: 'for i = 1, low do back[#back + 1] = before[2][i] end' },
      },
    ],
  },

  'tokens whose place is near the end of a long lane go exactly there': {
    async play() {
      expect(await pushAt(2_875)).toEqual(run(2_875));
      expect(await pushAt(4_500)).toEqual(run(4_500));
      expect(await pushAt(5_999)).toEqual(run(5_999));
      expect(await pushAt(6_000)).toEqual(run(6_000));
    },
    without: [
      { script: 'push', cure: 'a long lane is in order, near its end', change: { becomes: '10' } },
    ],
  },

  'tokens whose place is far from both ends of a long lane go behind it, as far as one call reaches':
    {
      async play() {
        expect(await pushAt(1_001)).toEqual(run(2_875));
        expect(await pushAt(2_874)).toEqual(run(2_875));
      },
      without: [{ script: 'push', cure: 'a long lane is not gone through, far from both ends' }],
    },
};

playTraces('large requests and lanes', traces);
