import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { back, given, Hand, LEASE_MS, type Scene, success } from '../support/given.js';
import { keepRequest } from '../support/lost-writes.js';
import { inspect } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Histories in which the server loses the last writes of a request: what a worker was told of, and builds on,
 * never happened. (docs/decisions/0021-lost-writes-settles.md)
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

/**
 * Who runs sub-request 0 of which the server lost the append and the read. Another producer has appended another item
 * since, which has this index now.
 */
async function forgottenItem() {
  const scene = await given.created({ limit: 4 });
  const { request, generation } = scene;
  const putBack = await keepRequest(scene);
  await request.append(generation, 'first', 0, ['forgotten']);
  const worker = new Hand(scene, 'worker');
  const [entry] = await worker.hold(1);
  await putBack();
  await request.append(generation, 'second', 0, ['other']);
  return { scene, worker, entry: entry! };
}

const isContested = async (scene: Scene) => (await inspect(scene)).fields['contested'] === '1';

const UNNOTICED = {
  cure: 'lost writes are noticed',
  change: 'always',
} as const;

const traces: Record<string, Trace> = {
  'a settle that follows one that the server lost has each of its successes asked for': {
    async play() {
      const { scene, worker, read } = await forgottenRead();
      const heir = new Hand(scene, 'heir');
      const theirs = await heir.hold(2);
      await worker.settle(read.slice(0, 1).map((entry) => success(entry, 'worker')));
      expect(await isContested(scene)).toBe(true);
      await heir.settle(theirs.map((entry) => success(entry, 'heir')));
      expect(await recorded(scene)).toEqual(['0 heir', '1 heir']);
      expect((await inspect(scene)).counts).toMatchObject({ succeeded: 2, ready: 2 });
    },
    without: [{ script: 'settle', ...UNNOTICED }],
  },

  'an enter that follows a settle that the server lost has each success asked for': {
    async play() {
      const { scene, worker } = await forgottenRead();
      await worker.enter(1);
      expect(await isContested(scene)).toBe(true);
    },
    without: [{ script: 'enter', ...UNNOTICED }],
  },

  'a take that follows a settle that the server lost has each success asked for': {
    async play() {
      const { scene, worker } = await forgottenRead();
      await worker.take(1);
      expect(await isContested(scene)).toBe(true);
    },
    without: [{ script: 'take', ...UNNOTICED }],
  },

  'a settle that follows a take that the server lost has each of its successes asked for': {
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
    without: [{ script: 'take', cure: 'op number in take, 2' }],
  },

  'a worker that owns nothing is believed as before when its number was forgotten': {
    async play() {
      const scene = await given.filled({ items: 2, limit: 2 });
      const worker = new Hand(scene);
      await worker.enter(1);
      await worker.settle([], { keep: 0 });
      for (let i = 0; i < 2; i += 1) await scene.request.tend(scene.generation, '');
      expect((await inspect(scene)).fields['op:worker']).toBeUndefined();
      await worker.enter(1, []);
      await worker.settle([]);
      expect(await isContested(scene)).toBe(false);
    },
    without: [{ script: 'enter', cure: 'lost writes are noticed only under permits' }],
  },

  // The scripts of an older version acknowledge what is another's by now, and note nothing.
  'what a worker of an older version recorded is not recorded again with others': {
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
        cure: 'outcomes that others recorded are not recorded together',
        change: { becomes: 'count < 0' },
      },
      { script: 'settle', cure: 'outcomes that others recorded are not recorded together, 2' },
    ],
  },

  'a worker that succeeds twice, with an entry that it lost and took again, is recorded once': {
    async play() {
      const scene = await given.filled({ items: 2, limit: 2 });
      const worker = new Hand(scene);
      const held = await worker.hold(2);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      await worker.enter(2, []);
      const again = await worker.take(2);
      await worker.settle([success(held[0]!, 'first')], { grantNo: '' });
      await worker.settle(again.map((entry) => success(entry, 'again')));
      expect(await recorded(scene)).toEqual(['0 first', '1 again']);
    },
    without: [
      {
        script: 'settle',
        cure: 'outcomes that others recorded are not recorded together',
        change: { becomes: 'count < 0' },
      },
    ],
  },

  'a success of an item that the server lost does not count for the item that has its index': {
    async play() {
      const { scene, worker, entry } = await forgottenItem();
      const heir = new Hand(scene, 'heir');
      const [theirs] = await heir.hold(1);
      await worker.settle([success(entry, 'of forgotten')]);
      expect((await inspect(scene)).counts).toMatchObject({ succeeded: 0, inFlight: 1 });
      await heir.settle([success(theirs!, 'of other')]);
      expect(await recorded(scene)).toEqual(['0 of other']);
    },
    without: [
      { script: 'settle', cure: 'who never read an entry does not settle it', change: 'never' },
    ],
  },

  'a success that does not count leaves the checkpoint of who runs the entry': {
    async play() {
      const { scene, worker, entry } = await forgottenItem();
      const heir = new Hand(scene, 'heir');
      await heir.hold(1);
      await scene.request.renew(scene.generation, 'heir', LEASE_MS, ['0:checkpoint', '"half"']);
      await worker.settle([success(entry, 'of forgotten')]);
      expect(await scene.connection.client.hget(scene.request.keys.tries, '0:checkpoint')).toBe(
        '"half"',
      );
    },
    without: [{ script: 'settle', cure: 'the checkpoint of another item stays', change: 'always' }],
  },

  'an entry that is reported and unread again is delivered again, also behind a straggler': {
    async play() {
      const { scene, worker, read } = await forgottenRead();
      await scene.connection.client.hset(scene.request.keys.request, 'pinned', 0);
      await worker.settle(read.map((entry) => success(entry)));
      expect((await inspect(scene)).counts).toMatchObject({ succeeded: 0, ready: 4 });
      const heir = new Hand(scene, 'heir');
      expect(await heir.hold(4)).toHaveLength(4);
    },
    without: [{ script: 'settle', cure: 'an entry that is unread again is not deleted' }],
  },
};

playTraces('cures of what lost writes do', traces);
