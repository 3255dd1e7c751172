import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { back, given, Hand, LEASE_MS, type Scene, success } from '../support/given.js';
import { keepRequest } from '../support/lost-writes.js';
import { inspect } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Histories in which the server loses the last writes of a request: what a worker was told of, and builds on,
 * never happened. (docs/decisions/0021-who-noticed-the-lost-writes.md)
 */

useTestClock();

const recorded = async (scene: Scene) => {
  const { results } = await inspect(scene);
  return results.map(({ index, value }) => `${index} ${value}`);
};

/** Who has permits since `keep`, and read two sub-requests that the server believes to be unread. */
async function forgottenRead() {
  const scene = await given.filled({ items: 4, limit: 4 });
  const worker = new Hand(scene, 'worker');
  await worker.enter(2);
  const putBack = await keepRequest(scene);
  const read = await worker.read(2);
  await worker.settle([]);
  await putBack();
  return { scene, worker, read };
}

const isContested = async (scene: Scene) => (await inspect(scene)).fields['contested'] === '1';

const UNNOTICED = {
  from: 'if permits == 0 or known >= answered then',
  to: 'if permits then',
} as const;

const traces: Record<string, Trace> = {
  'lost read, settled': {
    says: 'a settle that follows one that the server lost has each of its successes asked for',
    async play() {
      const { scene, worker, read } = await forgottenRead();
      const heir = new Hand(scene, 'heir');
      const theirs = await heir.hold(2);
      await worker.settle(read.slice(0, 1).map((entry) => success(entry, 'worker')));
      expect(await isContested(scene)).toBe(true);
      await heir.settle(theirs.map((entry) => success(entry, 'heir')));
      expect(await recorded(scene)).toEqual(['0 worker', '1 heir']);
      expect((await inspect(scene)).counts).toMatchObject({ succeeded: 2, ready: 2 });
    },
    without: [{ script: 'settle', ...UNNOTICED }],
  },

  'lost read, entered': {
    says: 'an enter that follows a settle that the server lost has each success asked for',
    async play() {
      const { scene, worker } = await forgottenRead();
      await worker.enter(1);
      expect(await isContested(scene)).toBe(true);
    },
    without: [{ script: 'enter', ...UNNOTICED }],
  },

  'lost read, taken': {
    says: 'a take that follows a settle that the server lost has each success asked for',
    async play() {
      const { scene, worker } = await forgottenRead();
      await worker.take(1);
      expect(await isContested(scene)).toBe(true);
    },
    without: [{ script: 'take', ...UNNOTICED }],
  },

  'lost take': {
    says: 'a settle that follows a take that the server lost has each of its successes asked for',
    async play() {
      const scene = await given.filled({ items: 3, limit: 3 });
      const first = new Hand(scene, 'first');
      await first.settle((await first.hold(2)).map(back), { keep: 0 });
      const worker = new Hand(scene, 'worker');
      await worker.enter(1, []);
      await worker.settle((await worker.take(1)).map((entry) => success(entry)));
      expect(await isContested(scene)).toBe(false);
      const putBack = await keepRequest(scene);
      const taken = await worker.take(1);
      expect(taken).toHaveLength(1);
      await putBack();
      await worker.settle(taken.map((entry) => success(entry)));
      expect(await isContested(scene)).toBe(true);
    },
    without: [{ script: 'take', from: "redis.call('HSET', request, 'op:' .. worker, op)", to: '' }],
  },

  'a leave is no loss': {
    says: 'who comes back after its number was forgotten, with nothing in hand, is believed as before',
    async play() {
      const scene = await given.filled({ items: 2, limit: 2 });
      const worker = new Hand(scene);
      await worker.enter(1);
      await worker.settle([], { keep: 0 });
      for (let look = 0; look < 2; look += 1) await scene.request.tend(scene.generation, '');
      expect((await inspect(scene)).fields['op:worker']).toBeUndefined();
      await worker.enter(1, []);
      await worker.settle([]);
      expect(await isContested(scene)).toBe(false);
    },
    without: [
      {
        script: 'enter',
        from: 'if permits == 0 or known >= answered then',
        to: 'if known >= answered then',
      },
    ],
  },

  // The scripts of an older version acknowledge what is another's by now, and note nothing.
  'together, recorded before': {
    says: 'what a worker of an older version recorded is not recorded again with others',
    async play() {
      const { scene, worker, read } = await forgottenRead();
      const heir = new Hand(scene, 'heir');
      const theirs = await heir.hold(2);
      worker.answered = 0;
      await worker.settle(read.slice(0, 1).map((entry) => success(entry, 'worker')));
      await heir.settle(theirs.map((entry) => success(entry, 'heir')));
      expect(await recorded(scene)).toEqual(['0 worker', '1 heir']);
      expect((await inspect(scene)).counts).toMatchObject({ succeeded: 2, ready: 2 });
      expect(await isContested(scene)).toBe(true);
    },
    without: [
      {
        script: 'settle',
        from: 'if count > acknowledged and state.keepResults then',
        to: 'if count < 0 then',
      },
      {
        script: 'settle',
        from: "redis.call('HSET', keys.request, 'contested', 1)\nlocal known, refused",
        to: 'local known, refused',
      },
    ],
  },

  'together, by both runs': {
    says: 'who succeeds twice with what it lost and took again is recorded once',
    async play() {
      const scene = await given.filled({ items: 2, limit: 2 });
      const worker = new Hand(scene);
      const held = await worker.hold(2);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      await worker.enter(2, []);
      const again = await worker.take(2);
      await worker.settle([success(held[0]!, 'first')], { since: '' });
      await worker.settle(again.map((entry) => success(entry, 'again')));
      expect(await recorded(scene)).toEqual(['0 first', '1 again']);
    },
    without: [
      {
        script: 'settle',
        from: 'if count > acknowledged and state.keepResults then',
        to: 'if count < 0 then',
      },
    ],
  },

  'unread again, pinned': {
    says: 'what is reported and unread again is delivered again, also behind a straggler',
    async play() {
      const { scene, worker, read } = await forgottenRead();
      await scene.connection.client.hset(scene.request.keys.request, 'pinned', 0);
      await worker.settle(read.map((entry) => success(entry)));
      expect((await inspect(scene)).counts).toMatchObject({ succeeded: 0, ready: 4 });
      const heir = new Hand(scene, 'heir');
      expect(await heir.hold(4)).toHaveLength(4);
    },
    without: [
      {
        script: 'settle',
        from: 'if pinned and tonumber(index) <= readTo and not',
        to: 'if pinned and not',
      },
    ],
  },
};

playTraces('cures of what lost writes do', traces);
