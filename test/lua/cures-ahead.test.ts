import { ControlCommands } from '@piecework/protocol';
import { expect } from 'vitest';
import { useTestClock } from '../support/clock.js';
import { given, Hand, LEASE_MS, type Scene, success } from '../support/given.js';
import { pass } from '../support/pass.js';
import { readAhead, running } from '../support/read-ahead.js';
import { completeWithFailures, openedAgain, runAgain } from '../support/redriven.js';
import { playTraces, type Trace } from '../support/trace.js';

/* Short histories of workers that read ahead, each for one cure of the scripts. */

useTestClock();

const control = ({ connection, id }: Scene) => new ControlCommands(connection, id);

/** A new life of a request of which every other sub-request runs again; a worker runs two of these. */
async function redriven() {
  const before = await completeWithFailures([1, 3, 5, 7, 9, 11], { items: 12 });
  const scene = await openedAgain(before);
  await runAgain(scene, [1, 3, 5, 7, 9, 11]);
  const hand = new Hand(scene);
  await hand.hold(2);
  return { scene, hand };
}

/**
 * An enter of a worker that wants so many permits, of a request of limit 2, and would read four ahead for each, or
 * `quick` if others could run them.
 */
async function readByEnter({
  items,
  want,
  quick = 0,
  maxCrashes = 3,
}: {
  items: number;
  want: number;
  quick?: number;
  maxCrashes?: number;
}) {
  const { request, generation } = await given.sealed({ items, limit: 2, maxCrashes });
  const about = {
    generation,
    worker: 'w',
    op: 1,
    leaseMs: 30_000,
    tasks: '*',
    awaited: 0,
    answered: 0,
  };
  const reply = await request.enter({ ...about, want, epochs: ['1'], most: 16, ahead: 4, quick });
  if (reply.verdict !== 'ok') throw new Error(reply.verdict);
  return { permits: reply.permits, read: reply.entries.length };
}

const traces: Record<string, Trace> = {
  'of a paused request nothing is read ahead, and what was is to go back': {
    async play() {
      const { scene, hand } = await running(2);
      await control(scene).pause(scene.generation);
      expect(await readAhead(scene, hand, { read: 3, ahead: 3 })).toMatchObject({
        read: [],
        share: -1,
      });
    },
    without: [{ script: 'settle', cure: 'nothing is read ahead of a paused request' }],
  },

  // All its handlers have ended, so that the reply takes back none that runs.
  'a worker whose permits were withdrawn reads nothing ahead': {
    async play() {
      const { scene, hand, entries } = await running(2);
      const done = entries.map((entry) => success(entry));
      await pass(scene, LEASE_MS + 1_000);
      expect(await readAhead(scene, hand, { running: 0, read: 4, ahead: 2 }, done)).toMatchObject({
        permits: 0,
        read: [],
      });
    },
    without: [
      { script: 'settle', cure: 'a settle without permits reads nothing', change: 'always' },
    ],
  },

  'an enter reads ahead for a worker that has all that the limit allows, and for no other': {
    async play() {
      expect(await readByEnter({ items: 10, want: 5 })).toEqual({ permits: 2, read: 10 });
      expect(await readByEnter({ items: 5, want: 1 })).toEqual({ permits: 1, read: 1 });
    },
    without: [
      {
        script: 'enter',
        cure: 'an enter reads ahead only under the whole limit',
        change: 'never',
      },
    ],
  },

  'an enter for short handlers reads ahead where three crashes fail a sub-request, and not where two do':
    {
      async play() {
        const about = { items: 5, want: 1, quick: 4 };
        expect(await readByEnter(about)).toEqual({ permits: 1, read: 5 });
        expect(await readByEnter({ ...about, maxCrashes: 2 })).toEqual({ permits: 1, read: 1 });
      },
      without: [
        {
          script: 'enter',
          cure: 'with few crashes allowed only one worker reads ahead',
          change: 'never',
        },
      ],
    },

  'an enter reads ahead of a request that it can read to the end, and of no other': {
    async play() {
      expect(await readByEnter({ items: 11, want: 5 })).toEqual({ permits: 2, read: 2 });
      expect(await readByEnter({ items: 7, want: 1, quick: 5 })).toEqual({ permits: 1, read: 1 });
    },
    without: [{ script: 'enter', cure: 'an enter reads ahead only to the end', change: 'never' }],
  },

  'above a lowered limit nothing is read ahead, and what was is to go back': {
    async play() {
      const { scene, hand } = await running(3);
      await control(scene).update(scene.generation, { limit: 2 });
      expect(await readAhead(scene, hand, { read: 3, ahead: 3 })).toMatchObject({
        read: [],
        share: -1,
      });
    },
    without: [{ script: 'settle', cure: 'nothing is read ahead above a lowered limit' }],
  },

  'a request whose first crash is final has nothing read ahead': {
    async play() {
      const { scene, hand } = await running(2, { maxCrashes: 1 });
      expect(await readAhead(scene, hand, { read: 3, ahead: 3 })).toMatchObject({
        read: [],
        share: -1,
      });
    },
    without: [{ script: 'settle', cure: 'nothing is read ahead where the first crash is final' }],
  },

  'after a redrive the share counts what runs again, and no gaps': {
    async play() {
      const { scene, hand } = await redriven();
      expect(await readAhead(scene, hand, { read: 1, ahead: 1 })).toMatchObject({
        read: [5],
        share: 3,
      });
    },
    without: [
      { script: 'settle', cure: 'after a redrive the unread are counted', change: 'never' },
    ],
  },
};

playTraces('cures of reading ahead', traces);
