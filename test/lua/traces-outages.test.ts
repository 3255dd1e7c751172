import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { given, Hand, LEASE_MS, tickOnce } from '../support/given.js';
import { inspect } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Short histories that broke an earlier protocol, each with the cure that the scripts have for it
 * (trace.ts says how they are played). docs/guarantees.md names them.
 */

useTestClock();

/** Between two ticks of a fleet that rests. */
const REST_MS = 50_000;

const traces: Record<string, Trace> = {
  // Redis stands still for longer than a lease: the first tick withdrew everything from everybody.
  'after Redis was away, a worker has its whole lease to renew': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      const worker = new Hand(scene);
      await worker.hold(1);
      await tickOnce(scene);
      moveClock(2 * LEASE_MS);
      await tickOnce(scene);
      expect((await inspect(scene)).permits).toEqual({ worker: 1 });
      for (let i = 0; i < 3; i += 1) {
        moveClock(LEASE_MS / 3 - 1_000);
        await tickOnce(scene);
      }
      expect(await worker.renew()).toEqual({ verdict: 'ok', permits: 1 });
      expect((await inspect(scene)).counts).toMatchObject({ inFlight: 1, ready: 0 });
    },
    without: [
      {
        script: 'tend',
        cure: 'a whole lease of grace after Redis was away',
        change: { becomes: 'written' },
      },
      { script: 'tick', cure: 'a whole lease of grace after Redis was away, 2' },
    ],
  },

  // Each return of Redis was a new grace: a dead worker kept its permits as long as that went on.
  'a Redis that comes and goes does not leave a dead worker its permits for ever': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      await new Hand(scene, 'dead').hold(1);
      await tickOnce(scene);
      for (let away = 0; away < 3; away += 1) {
        moveClock(2 * LEASE_MS);
        await tickOnce(scene);
      }
      expect((await inspect(scene)).permits).toEqual({});
    },
    without: [{ script: 'tick', cure: 'no third grace in a row' }],
  },

  // The silence of a fleet that rests used up the graces, and the outage right after it brought none.
  'work that begins in a fleet that rests survives an outage': {
    async play() {
      // One right after the work has begun, and one that is shorter than a lease, when the lease would be renewed.
      const times = [[2 * LEASE_MS], [LEASE_MS / 3, (LEASE_MS * 5) / 6]];
      for (const untilTicks of times) {
        const scene = await given.sealed({ items: 1, limit: 1 });
        await scene.queue.tick('', '', '', true);
        moveClock(REST_MS);
        await scene.queue.tick('', '', '', true);
        moveClock(REST_MS);
        const worker = new Hand(scene);
        await worker.hold(1);
        await tickOnce(scene);
        for (const ms of untilTicks) {
          moveClock(ms);
          await tickOnce(scene);
        }
        expect(await worker.renew()).toEqual({ verdict: 'ok', permits: 1 });
      }
    },
    without: [
      { script: 'tick', cure: 'the rest of a frugal fleet is no outage', change: 'never' },
      {
        script: 'tick',
        cure: 'work that begins in a fleet that rests is told from it',
        change: { becomes: 'briskAt' },
      },
    ],
  },

  // Every rest brought the dead worker another lease.
  'a fleet that rests takes over from a dead worker within a rest and a lease': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      await new Hand(scene, 'dead').hold(1);
      await tickOnce(scene);
      moveClock(REST_MS);
      for (let tended = 0; tended < 3; tended += 1) {
        await tickOnce(scene, true);
        moveClock(LEASE_MS / 2 + 100);
      }
      expect((await inspect(scene)).permits).toEqual({});
    },
    without: [{ script: 'tick', cure: 'the rest of a frugal fleet is no outage', change: 'never' }],
  },

  // An hour forward, then Redis away before anybody ticked twice, or the other way round.
  'a step of the clock beside an outage leaves a worker its whole lease to renew': {
    async play() {
      for (const [first, second] of [
        [3_600_000, LEASE_MS],
        [LEASE_MS, 3_600_000],
      ] as const) {
        const scene = await given.sealed({ items: 1, limit: 1 });
        const worker = new Hand(scene);
        await worker.hold(1);
        await tickOnce(scene);
        moveClock(first);
        await tickOnce(scene);
        moveClock(second);
        await tickOnce(scene);
        expect(await worker.renew()).toEqual({ verdict: 'ok', permits: 1 });
      }
    },
    without: [
      {
        script: 'tick',
        cure: 'no third grace in a row',
        change: { becomes: 'tickedAt ~= known' },
      },
    ],
  },

  // Tick; Redis stands still; the tend that was under way knows of no grace: it withdraws a lease that
  // nobody could renew, and counts a crash.
  'a tend that was under way while Redis was away takes nothing from any worker': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      const worker = new Hand(scene);
      await worker.hold(1);
      moveClock(21_000);
      const { claims, now, resumedAt } = await scene.queue.tick('', '');
      moveClock(LEASE_MS);
      const { generation, passed } = claims[0]!;
      const late = await scene.request.tend(generation, passed, resumedAt, 15_000, now);
      const { permits, crashes, now: at } = await inspect(scene);
      expect(permits).toEqual({ worker: 1 });
      expect(crashes).toEqual({});
      expect((late as { next: number }).next).toBeLessThanOrEqual(at + 1);
      await tickOnce(scene);
      expect(await worker.renew()).toEqual({ verdict: 'ok', permits: 1 });
    },
    without: [
      { script: 'tend', cure: 'a tend older than an outage takes nothing back', change: 'never' },
      { script: 'tend', cure: 'a tend older than an outage takes nothing back, 2' },
    ],
  },

  // The clock of the request's server is a minute ahead of that of the queue's: every tend seems to have
  // been under way for a minute, and a dead worker would keep its permits for ever.
  'when every tend seems late, the second one takes back the work of a dead worker': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      const { request, generation } = scene;
      const tend = async (behindMs: number) => {
        const { now } = await inspect(scene);
        await request.tend(generation, '', 0, 15_000, Math.floor(now) - behindMs);
        return (await inspect(scene)).permits;
      };
      await new Hand(scene, 'dead').hold(1);
      moveClock(LEASE_MS + 1);
      expect(await tend(60_000)).toEqual({ dead: 1 });
      moveClock(1_000);
      expect(await tend(60_000)).toEqual({});
      // Clocks that agree again: the next outage is known for what it is.
      expect(await tend(0)).toEqual({});
      const heir = new Hand(scene, 'heir');
      await heir.enter(1);
      await heir.take(1);
      moveClock(LEASE_MS + 1);
      expect(await tend(60_000)).toEqual({ heir: 1 });
    },
    without: [
      { script: 'tend', cure: 'a tend that seems late is postponed once' },
      { script: 'tend', cure: 'a tend that seems late is postponed once, 2' },
    ],
  },
};

playTraces('a history of outages that broke an earlier protocol', traces);
