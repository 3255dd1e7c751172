import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { Hand, LEASE_MS } from '../support/given.js';
import { inspect } from '../support/peek.js';
import {
  BOOT_ID,
  cause,
  crashTogether,
  errorOf,
  held,
  leasesEnd,
  suspects,
  tend,
} from '../support/suspects.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Suspects in company, and what is known of the end of their worker.
 */

useTestClock();

const traces: Record<string, Trace> = {
  'suspects that crash in company never fail by it, however often': {
    async play() {
      const scene = await suspects(2);
      for (const name of ['second', 'third', 'fourth']) await crashTogether(scene, name, 2);
      const { counts, crashes } = await inspect(scene);
      expect(counts).toMatchObject({ failed: 0, ready: 2 });
      expect(crashes).toEqual({ 0: 4, 1: 4 });
    },
    without: [
      {
        script: 'run-alone',
        cure: 'no suspect fails by a crash in company',
        change: { becomes: 'company > 0' },
      },
    ],
  },

  'a suspect that runs beside those of another request does not run alone': {
    async play() {
      const scene = await suspects(1);
      await crashTogether(scene, 'second', 1, 2);
      expect((await inspect(scene)).counts).toMatchObject({ failed: 0, ready: 1 });
    },
    without: [
      {
        script: 'run-alone',
        cure: 'no suspect fails by a crash in company',
        change: { becomes: '#ARGV == 4' },
      },
    ],
  },

  'a worker that takes a suspect learns in what company it crashed, and makes it smaller': {
    async play() {
      const scene = await suspects(8);
      const first = new Hand(scene, 'second');
      await first.enter(8);
      expect((await first.take(8)).map(({ company }) => company)).toEqual(Array(8).fill(0));
      await leasesEnd(scene);
      await crashTogether(scene, 'third', 6);
      const last = new Hand(scene, 'fourth');
      await last.enter(8);
      const taken = await last.take(8);
      expect(taken.map(({ company }) => company)).toEqual([...Array(6).fill(6), 0, 0]);
      expect(taken.every(({ suspect }) => suspect)).toBe(true);
    },
    without: [{ script: 'run-alone', cure: 'the company of a crash is remembered' }],
  },

  'a worker that is known to be dead has no permit any more': {
    async play() {
      const scene = await held();
      expect(await cause(scene, { exitCode: 134 }, true)).toBe('ok');
      expect(await tend(scene)).toMatchObject({ verdict: 'complete' });
    },
    without: [{ script: 'cause', cure: 'the lease of a dead process ends' }],
  },

  'a cause after which a worker renewed its lease is not the cause of its end': {
    async play() {
      const scene = await held();
      await cause(scene, { blockedMs: 30_000 }, false);
      moveClock(1_000);
      await scene.request.renew(scene.generation, BOOT_ID, LEASE_MS, []);
      await leasesEnd(scene);
      expect(await errorOf(scene)).not.toHaveProperty('blockedMs');
    },
    without: [{ script: 'tend', cure: 'a cause counts until the next renewal', change: 'never' }],
  },

  'a cause counts, though the lease got its term again after a gap between two ticks': {
    async play() {
      const scene = await held();
      await cause(scene, { blockedMs: 30_000 }, false);
      moveClock(LEASE_MS + 1);
      const { now: at } = await scene.queue.tick('', '');
      const gap = { gapAt: at, gapMs: 2 * LEASE_MS };
      await scene.request.tend(scene.generation, '', 0, 15_000, at, gap);
      await leasesEnd(scene);
      expect(await errorOf(scene)).toHaveProperty('blockedMs', 30_000);
    },
    without: [
      {
        script: 'tend',
        cure: 'a lease that is given its term again is not renewed',
        change: 'always',
      },
    ],
  },

  'a cause before the last renewal does not count, though the lease got its term again since': {
    async play() {
      const scene = await held();
      await cause(scene, { blockedMs: 30_000 }, false);
      moveClock(1_000);
      await scene.request.renew(scene.generation, BOOT_ID, LEASE_MS, []);
      moveClock(LEASE_MS + 1);
      const { now: at } = await scene.queue.tick('', '');
      const gap = { gapAt: at, gapMs: 2 * LEASE_MS };
      await scene.request.tend(scene.generation, '', 0, 15_000, at, gap);
      await leasesEnd(scene);
      expect(await errorOf(scene)).not.toHaveProperty('blockedMs');
    },
    without: [{ script: 'tend', cure: 'a cause counts until the next renewal', change: 'never' }],
  },
};

playTraces('a history of suspects', traces);
