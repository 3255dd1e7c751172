/**
 * Requests that are submitted in one call, which needs one server for all keys.
 * @module-tag one-server
 */
import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { given, popAll, tickOnce } from '../support/given.js';
import { inspect, inspectQueue } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';
import { submitWhole } from '../support/whole.js';

/* Short histories of requests that are submitted in one call, each for one cure of `submit`. */

useTestClock();

const traces: Record<string, Trace> = {
  'a request that is kept is not overwritten by one of its id': {
    async play() {
      // Of an ended request the stream is gone, so nothing else would refuse the new one.
      const scene = await given.sealed({ items: 0 });
      await scene.queue.finish(scene.id, scene.generation, 'succeeded');
      expect(await submitWhole(scene)).toBe(0);
      expect(await inspect(scene)).toMatchObject({ status: 'complete', counts: { total: 0 } });
    },
    without: [{ script: 'submit', cure: 'what is there of an id is left alone', change: 'never' }],
  },

  'a whole request is not written under an intent for which a create would be too late': {
    async play() {
      const scene = await given.opened();
      moveClock(121_000);
      expect(await submitWhole(scene)).toBe(0);
      expect((await inspect(scene)).status).toBe('none');
    },
    without: [
      { script: 'submit', cure: 'an id that was opened long ago is left alone', change: 'never' },
    ],
  },

  'of two calls for the same request, only one hears that it made it': {
    async play() {
      const scene = await given.nothing();
      expect(await submitWhole(scene, {}, 'one')).toBeGreaterThan(0);
      expect(await submitWhole(scene, {}, 'other')).toBe(0);
    },
    without: [
      {
        script: 'submit',
        cure: 'a submission that is sent twice finds its own request only',
        change: { becomes: 'true' },
      },
    ],
  },

  'a delayed request has no token before its time': {
    async play() {
      const scene = await given.nothing();
      const generation = await submitWhole(scene, { delayMs: 60_000 });
      expect(await popAll(scene)).toEqual([]);
      moveClock(60_000);
      expect(await tickOnce(scene)).toBe(1);
      expect(await popAll(scene)).toHaveLength(1);
      expect(await inspect({ ...scene, generation })).toMatchObject({ out: 1 });
    },
    without: [
      {
        script: 'submit',
        cure: 'a held request is submitted without a token',
        change: { becomes: '1' },
      },
    ],
  },

  'a request ends at its deadline, also while it is delayed for longer': {
    async play() {
      const scene = await given.nothing();
      const generation = await submitWhole(scene, { delayMs: 600_000, deadlineMs: 30_000 });
      moveClock(30_000);
      await tickOnce(scene);
      expect(await inspect({ ...scene, generation })).toMatchObject({ status: 'complete' });
    },
    without: [{ script: 'submit', cure: 'a whole request is tended at its deadline' }],
  },

  'a whole request that was submitted while the clock was ahead is tended in time': {
    async play() {
      const scene = await given.nothing();
      const generation = await submitWhole(scene);
      await popAll(scene);
      moveClock(-3_600_000);
      for (let i = 0; i < 60; i += 1) {
        moveClock(1_000);
        await tickOnce(scene);
      }
      expect((await inspect({ ...scene, generation })).epoch).toBeGreaterThan(1);
      expect(Object.keys((await inspectQueue(scene)).open)).toEqual([scene.id]);
    },
    without: [
      {
        script: 'submit',
        cure: 'an opened id shows how far the clock was',
        change: { skip: 2 },
      },
    ],
  },

  'the counts of a queue expire when nothing is open in it, and not before': {
    async play() {
      const scene = await given.nothing();
      const { queue, connection, id } = scene;
      const expires = async () => (await connection.client.pttl(queue.keys.counters)) > 0;
      const intent = () => queue.intent(id);
      const opens = [
        intent,
        () => submitWhole(scene),
        async () => {
          const generation = Date.now() + 60_000;
          await queue.reopen(id, generation);
          return generation;
        },
        intent,
      ];
      for (const open of opens) {
        const generation = await open();
        expect(await expires()).toBe(false);
        await queue.finish(id, generation, 'succeeded');
        expect(await expires()).toBe(true);
      }
    },
    without: [
      { script: 'intent', cure: 'the counts of a queue in use do not expire' },
      { script: 'reopen', cure: 'the counts of a queue in use do not expire' },
      { script: 'submit', cure: 'the counts of a queue in use do not expire' },
    ],
  },
};

playTraces('a history of a whole submission', traces);
