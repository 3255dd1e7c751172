import { ControlCommands } from '@piecework/protocol';
import { expect } from 'vitest';
import { type Mutation, useTestClock } from '../support/clock.js';
import { append, back, failure, given, Hand, success } from '../support/given.js';
import { peek } from '../support/peek.js';
import { running } from '../support/read-ahead.js';
import { completeWithFailures, openedAgain, REDRIVER, runAgain } from '../support/redriven.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * The usual settle goes a shorter way (lua/lib/usual.lua). Most histories here are of a settle that must not go it: on
 * the shorter way something would be left out.
 */

useTestClock();

const usualWithout = (cure: string, change?: Mutation['change']): Mutation => ({
  script: 'settle',
  cure,
  ...(change ? { change } : {}),
});

const traces: Record<string, Trace> = {
  'successes that were not all pending are not recorded again': {
    async play() {
      const { scene, hand, entries } = await running(2);
      const both = entries.map((entry) => success(entry));
      await hand.settle([both[0]!]);
      await hand.settle(both);
      const { counts, results } = await peek(scene);
      expect(counts.succeeded).toBe(2);
      expect(results).toHaveLength(2);
    },
    without: [usualWithout('successes that are not acknowledged are looked into')],
  },

  'a failure and a return beside successes count': {
    async play() {
      const { scene, hand, entries } = await running(3);
      await hand.settle([success(entries[0]!), failure(entries[1]!), back(entries[2]!)]);
      expect((await peek(scene)).counts).toMatchObject({ succeeded: 1, failed: 1, inFlight: 0 });
    },
    without: [usualWithout('failures and returns are not usual')],
  },

  'permits that the worker gives up with its successes are gone': {
    async play() {
      const { scene, hand, entries } = await running(2);
      await hand.settle([success(entries[0]!)], { keep: 1, running: 1 });
      expect(await peek(scene)).toMatchObject({ granted: 1, permits: { worker: 1 } });
    },
    without: [usualWithout('permits that are given up are not usual')],
  },

  'a success of a paused request takes its permit with it': {
    async play() {
      const { scene, hand, entries } = await running(2);
      await new ControlCommands(scene.connection, scene.id).pause(scene.generation);
      await hand.settle([success(entries[0]!)], { running: 1 });
      expect(await peek(scene)).toMatchObject({ granted: 1, permits: { worker: 1 } });
    },
    without: [usualWithout('a halted request is not usual')],
  },

  'a success of a pinned request is deleted': {
    async play() {
      const { scene, hand, entries } = await running(2);
      await scene.connection.client.hset(scene.request.keys.request, 'pinned', 0);
      await hand.settle([success(entries[1]!)]);
      expect((await peek(scene)).work).not.toContain(1);
    },
    without: [usualWithout('a pinned request is not usual')],
  },

  'the checkpoint of a success is deleted': {
    async play() {
      const { scene, hand, entries } = await running(2);
      const { request, generation, connection } = scene;
      await request.renew(generation, hand.name, 30_000, ['0:checkpoint', '"half"']);
      await hand.settle([success(entries[0]!)]);
      expect(await connection.client.exists(request.keys.tries)).toBe(0);
    },
    without: [usualWithout('checkpoints are not usual')],
  },

  'the last successes complete the request, though the worker would keep its permits': {
    async play() {
      const { scene, hand, entries } = await running(2, { items: 2 });
      const settled = await hand.trySettle(entries.map((entry) => success(entry)));
      expect(settled).toMatchObject({ verdict: 'complete', outcome: 'succeeded' });
      expect((await peek(scene)).status).toBe('complete');
    },
    without: [usualWithout('what completes a request is not usual')],
  },

  'the length of a long record is stored': {
    async play() {
      const { scene, hand, entries } = await running(2);
      await hand.settle([success(entries[0]!, 'x'.repeat(70_000))]);
      expect(Number((await peek(scene)).fields['longest'])).toBeGreaterThan(70_000);
    },
    without: [
      usualWithout('a long record is not usual', {
        becomes:
          "(state.status == 'open' or state.settled < state.total) and redis.call('EXISTS', due, progress) == 0",
      }),
    ],
  },

  'what a handler reported goes with its success': {
    async play() {
      const { scene, hand, entries } = await running(2);
      const { request, generation, connection } = scene;
      await request.renew(generation, hand.name, 30_000, [0, 7]);
      await hand.settle([success(entries[0]!)]);
      expect(await connection.client.exists(request.keys.progress)).toBe(0);
    },
    without: [usualWithout('what waits or was reported is not usual')],
  },

  'the reply names what waits to run again': {
    async play() {
      const { hand, entries } = await running(2);
      await hand.settle([back(entries[1]!)]);
      expect(await hand.settle([success(entries[0]!)])).toMatchObject({ dueNow: 1 });
    },
    without: [usualWithout('what waits or was reported is not usual')],
  },

  'what an earlier attempt left goes with the last success': {
    async play() {
      const { scene, hand, entries } = await running(1, { items: 1, attempts: 2 });
      await hand.settle([failure(entries[0]!)]);
      const again = await hand.take(1);
      expect(await hand.trySettle([success(again[0]!)], { keep: 0 })).toMatchObject({
        verdict: 'complete',
      });
      expect(await scene.connection.client.exists(scene.request.keys.tries)).toBe(0);
    },
    without: [],
  },

  'a success that is not the last ends nothing': {
    async play() {
      const { hand, entries } = await running(2, { items: 2 });
      const settled = await hand.trySettle([success(entries[0]!)], { keep: 1, running: 1 });
      expect(settled).toMatchObject({ verdict: 'ok', permits: 1 });
    },
    without: [],
  },

  'the length of a long last record is stored': {
    async play() {
      const { scene, hand, entries } = await running(1, { items: 1 });
      await hand.trySettle([success(entries[0]!, 'x'.repeat(70_000))], { keep: 0 });
      expect(Number((await peek(scene)).fields['longest'])).toBeGreaterThan(70_000);
    },
    without: [],
  },

  'a request that ended has no permits': {
    async play() {
      const { scene, hand, entries } = await running(1, { items: 1 });
      await hand.trySettle([success(entries[0]!)], { keep: 0 });
      expect((await peek(scene)).permits).toEqual({});
    },
    without: [],
  },

  'the record of a failure that was redriven expires, though no results are kept': {
    async play() {
      const failed = await completeWithFailures([1], { items: 2, results: 'discard' });
      const scene = await openedAgain(failed);
      await runAgain(scene, [1]);
      const { request, generation } = scene;
      await request.seal(generation, REDRIVER, 0);
      const hand = new Hand(scene, 'another');
      const [entry] = await hand.hold(1);
      expect(await hand.trySettle([success(entry!)], { keep: 0 })).toMatchObject({
        verdict: 'complete',
      });
      expect(await scene.connection.client.pttl(request.keys.results)).toBeGreaterThan(0);
    },
    without: [],
  },

  'the state of a large request is a table, in which no field costs a look at all others': {
    async play() {
      const scene = await given.filled({ items: 200 });
      const { client } = scene.connection;
      const encoding = () => client.object('ENCODING', scene.request.keys.request);
      expect(await encoding()).toBe('listpack');
      await append(scene, 100, 200);
      expect(await encoding()).toBe('hashtable');
    },
    without: [{ script: 'append', cure: 'the state of a large request is a table' }],
  },
};

playTraces('what the usual settle must not leave out', traces);
