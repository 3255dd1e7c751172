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
  'suspects, in company': {
    says: 'suspects that crash in company fail by it never, however often',
    async play() {
      const scene = await suspects(2);
      for (const name of ['second', 'third', 'fourth']) await crashTogether(scene, name, 2);
      const { counts, crashes } = await inspect(scene);
      expect(counts).toMatchObject({ failed: 0, ready: 2 });
      expect(crashes).toEqual({ 0: 4, 1: 4 });
    },
    without: [{ script: 'run-alone', from: 'if company == 1 then', to: 'if company > 0 then' }],
  },

  'suspects, company of others': {
    says: 'a suspect that runs beside those of another request does not run alone',
    async play() {
      const scene = await suspects(1);
      await crashTogether(scene, 'second', 1, 2);
      expect((await inspect(scene)).counts).toMatchObject({ failed: 0, ready: 1 });
    },
    without: [{ script: 'run-alone', from: 'if company == 1 then', to: 'if #ARGV == 4 then' }],
  },

  'suspects, smaller company': {
    says: 'whoever takes a suspect hears in what company it crashed, and so makes it smaller',
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
    without: [
      {
        script: 'run-alone',
        from: "redis.call('HSET', tries, index .. ':company', company)",
        to: '',
      },
    ],
  },

  'cause, dead': {
    says: 'a worker that is known to be dead holds nothing any more',
    async play() {
      const scene = await held();
      expect(await cause(scene, { exitCode: 134 }, true)).toBe('ok');
      expect(await tend(scene)).toMatchObject({ verdict: 'complete' });
    },
    without: [
      {
        script: 'cause',
        from: "redis.call('HSET', request, leaseField, math.min(ends, state.at))",
        to: '',
      },
    ],
  },

  'cause, of before': {
    says: 'what a worker went on after is not what it ended of',
    async play() {
      const scene = await held();
      await cause(scene, { blockedMs: 30_000 }, false);
      moveClock(1_000);
      await scene.request.renew(scene.generation, BOOT_ID, LEASE_MS, []);
      await leasesEnd(scene);
      expect(await errorOf(scene)).not.toHaveProperty('blockedMs');
    },
    without: [{ script: 'tend', from: 'causes[worker].at < written - (term or 0)', to: 'false' }],
  },
};

playTraces('a history of suspects', traces);
