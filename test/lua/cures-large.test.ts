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
async function lookAround(scene: Scene): Promise<{ looks: number; next: number; most: number }> {
  let before = (await inspect(scene)).granted;
  let most = 0;
  for (let looks = 1; looks < 60; looks += 1) {
    const tended = await scene.request.tend(scene.generation, '');
    if (tended.verdict !== 'ok') throw new Error(tended.verdict);
    const { now, granted } = await inspect(scene);
    most = Math.max(most, before - granted);
    before = granted;
    if (tended.next === 0 || tended.next > now + 1_000) return { looks, next: tended.next, most };
  }
  throw new Error('the looks do not end');
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
  'a crowd, dead': {
    says: 'of thousands that died each is found, a page of them at a look',
    async play() {
      const scene = await given.sealed({ items: 1, limit: 10_000 });
      await crowd(scene, 1_200, -5_000);
      const { looks, most } = await lookAround(scene);
      expect((await inspect(scene)).granted).toBe(0);
      expect(most).toBeLessThanOrEqual(250);
      expect(looks).toBeGreaterThan(4);
    },
    without: [
      {
        script: 'tend',
        from: "redis.call('HSCAN', request, cursor or 0,",
        to: "redis.call('HSCAN', request, 0,",
      },
      { script: 'tend', from: 'return over and first or at + 1', to: 'return first' },
    ],
  },

  'a crowd, alive': {
    says: 'thousands are gone through page by page, and the next look is when the first lease of all ends',
    async play() {
      const scene = await given.sealed({ items: 1, limit: 10_000 });
      await crowd(scene, 1_200, 900_000);
      const { request } = scene.request.keys;
      // Which page has the first one differs from server to server.
      for (let i = 0; i < 8; i += 1) {
        const ends = (await inspect(scene)).now + 14_000 - i;
        await scene.connection.client.hset(request, `lease:w${i}`, ends);
        const { looks, next } = await lookAround(scene);
        expect(looks).toBeGreaterThan(3);
        expect(next).toBe(ends);
        await scene.connection.client.hset(request, `lease:w${i}`, ends + 800_000);
      }
      expect((await inspect(scene)).granted).toBe(1_200);
    },
    without: [
      { script: 'tend', from: "redis.call('HLEN', request) <= 2000", to: 'true' },
      {
        script: 'tend',
        from: 'more and page.nextLease or math.min(page.nextLease, nextLease)',
        to: 'nextLease',
      },
    ],
  },

  'a crowd, and one with much': {
    says: 'what a dead one of thousands held counts a crash for each, at whichever look it is taken back',
    async play() {
      const scene = await given.sealed({ items: 350, limit: 10_000 });
      await crowd(scene, 1_200, 900_000);
      await scene.request.read('w0', 350);
      await scene.connection.client.hset(scene.request.keys.request, 'lease:w0', 1);
      await lookAround(scene);
      const { counts, crashes, fields, granted } = await inspect(scene);
      expect(granted).toBe(1_199);
      expect(counts).toMatchObject({ ready: 350, inFlight: 0 });
      expect(Object.values(crashes)).toEqual(Array(350).fill(1));
      expect(fields['crashed:w0']).toBeUndefined();
    },
    without: [{ script: 'tend', from: 'some[1] and math.huge or 0', to: '#some' }],
  },

  'a crowd, and one that read late': {
    says: 'who holds something and is named by no field is found among thousands',
    async play() {
      const scene = await given.sealed({ items: 450, limit: 10_000 });
      await crowd(scene, 1_200, 900_000);
      await scene.request.read('w0', 449);
      await scene.request.read('late', 1);
      await lookAround(scene);
      const { counts, pending } = await inspect(scene);
      expect(counts).toMatchObject({ ready: 1, inFlight: 449 });
      expect(pending.filter(({ owner }) => owner === 'late')).toEqual([]);
    },
    without: [
      { script: 'tend', from: "if pending[2] ~= '~' then", to: 'if false then' },
      { script: 'tend', from: "page.entry = '(' .. inFlight[200][1]", to: '' },
    ],
  },

  'a crowd, fewer': {
    says: 'when most of thousands have left, all others are read at once again',
    async play() {
      const scene = await given.sealed({ items: 1, limit: 10_000 });
      await crowd(scene, 1_200, 900_000);
      await scene.request.tend(scene.generation, '');
      expect((await inspect(scene)).fields['looked']).toBeDefined();
      const { fields } = await inspect(scene);
      const left = Object.keys(fields).filter((field) => /:w\d{3,}$/.test(field));
      await scene.connection.client.hdel(scene.request.keys.request, ...left);
      await scene.connection.client.hset(scene.request.keys.request, 'granted', 100);
      expect(await lookAround(scene)).toMatchObject({ looks: 1 });
      expect((await inspect(scene)).fields['looked']).toBeUndefined();
    },
    without: [{ script: 'tend', from: "redis.call('HDEL', request, 'looked')", to: '' }],
  },

  'a crowd, redriven': {
    says: 'what thousands left goes page by page before the next life begins, and nothing of it is left then',
    async play() {
      const scene = await completeWithFailures([0], { items: 1 });
      await crowd(scene, 1_200, -5_000);
      const { keys } = scene.request;
      const next = await scene.queue.intent(scene.id);
      const redrive = (clearing: string) =>
        runScript(scene.connection.client, 'redrive', keys, {
          ...{ generation: next, owner: 'me', leaseMs: LEASE_MS, clearing },
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
      { script: 'redrive', from: "if clearing ~= '' and", to: 'if false and' },
      {
        script: 'redrive',
        from: "if ofWorkers[field:match('^(%a+):') or ''] then",
        to: 'if false then',
      },
    ],
  },

  'a crowd, spent': {
    says: 'a state that hundreds of workers held is unlinked when its retention is over, not left to expire',
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1_000 });
      const hand = new Hand(scene);
      const [entry] = await hand.hold(1);
      await crowd(scene, 500, 900_000);
      expect(await hand.trySettle([success(entry!)])).toMatchObject({ verdict: 'complete' });
      expect((await inspect(scene)).fields['spentAt']).toBeDefined();
    },
    without: [{ script: 'settle', from: "or redis.call('HLEN', request) >= 2000", to: '' }],
  },

  'a long lane, near its front': {
    says: 'tokens whose place is near the front of a long lane go exactly there',
    async play() {
      expect(await pushAt(0)).toEqual(run(0));
      expect(await pushAt(1)).toEqual(run(1));
      expect(await pushAt(1_000)).toEqual(run(1_000));
    },
    without: [
      { script: 'push', from: 'low <= FROM_RIGHT and', to: 'false and' },
      { script: 'push', from: 'for i = low, 1, -1 do', to: 'for i = 1, low do' },
    ],
  },

  'a long lane, near its end': {
    says: 'tokens whose place is near the end of a long lane go exactly there',
    async play() {
      expect(await pushAt(2_875)).toEqual(run(2_875));
      expect(await pushAt(4_500)).toEqual(run(4_500));
      expect(await pushAt(5_999)).toEqual(run(5_999));
      expect(await pushAt(6_000)).toEqual(run(6_000));
    },
    without: [{ script: 'push', from: 'length - low > reach', to: 'length - low > 10' }],
  },

  'a long lane, far from both': {
    says: 'tokens whose place is far from both ends of a long lane go behind it, as far as one call comes',
    async play() {
      expect(await pushAt(1_001)).toEqual(run(2_875));
      expect(await pushAt(2_874)).toEqual(run(2_875));
    },
    without: [{ script: 'push', from: 'low = length - reach', to: '' }],
  },
};

playTraces('large requests and lanes', traces);
