import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { Hand, LEASE_MS } from '../support/timed-hand.js';
import { playTraces } from '../support/trace.js';

/*
 * Short histories of a timed set in which a length is given by a clock that is an hour ahead, and put right then:
 * what was given waits for as long as was meant, not for the hour.
 */

useTestClock();

const HOUR_MS = 3_600_000;
const DELAY_MS = 60_000;
/** What a length may be longer when it is read from a score. */
const MORE = 1.025;

/** Takes nothing, and answers that something comes in `ms`, when it comes. */
async function comesIn(hand: Hand, ms: number): Promise<void> {
  const { keys, inMs } = await hand.take();
  expect(keys).toEqual([]);
  expect(inMs).toBeGreaterThan(ms - 1_000);
  expect(inMs).toBeLessThanOrEqual(ms * MORE + 1);
  moveClock(inMs);
  expect((await hand.take()).keys).toEqual(['x']);
}

const NO_LOOK = {
  script: 'timed-take',
  cure: 'a delay is believed for its length',
  change: 'never',
} as const;
const noMark = (script: 'timed-put' | 'timed-settle') => ({
  script,
  cure: 'a delay is believed for its length, 2',
});

playTraces('lengths and the clock', {
  'an item put with a delay while the clock was ahead is due after that delay': {
    async play() {
      const hand = await Hand.ofNew();
      moveClock(HOUR_MS);
      await hand.put('x', `+${DELAY_MS}`);
      moveClock(-HOUR_MS);
      await comesIn(hand, DELAY_MS);
    },
    without: [NO_LOOK, noMark('timed-put')],
  },
  'an item put without a delay while the clock was ahead is taken at once': {
    async play() {
      const hand = await Hand.ofNew();
      moveClock(HOUR_MS);
      await hand.put('x', '+0');
      moveClock(-HOUR_MS);
      expect((await hand.take()).keys).toEqual(['x']);
    },
    without: [NO_LOOK],
  },
  'an item that failed while the clock was ahead is due after the delay of the failure': {
    async play() {
      const hand = await Hand.ofNew();
      await hand.put('x', 0);
      moveClock(HOUR_MS);
      const { token } = await hand.take();
      await hand.settle(token, 'retry', `+${DELAY_MS}`);
      moveClock(-HOUR_MS);
      await comesIn(hand, DELAY_MS);
    },
    without: [NO_LOOK, noMark('timed-settle')],
  },
  'a take notices that the clock went back, also when nothing was taken meanwhile': {
    async play() {
      const hand = await Hand.ofNew();
      await hand.put('y', '+9000000');
      expect((await hand.take()).keys).toEqual([]);
      moveClock(HOUR_MS);
      await hand.put('x', `+${DELAY_MS}`);
      moveClock(-HOUR_MS);
      await comesIn(hand, DELAY_MS);
    },
    without: [{ script: 'timed-put', cure: 'a delay given as a length records the clock' }],
  },
  'a time that the user named stays when the clock goes back': {
    async play() {
      const hand = await Hand.ofNew();
      const { now } = await hand.take();
      moveClock(HOUR_MS);
      await hand.put('y', '+9000000');
      await hand.put('x', now + 2 * HOUR_MS);
      moveClock(-HOUR_MS);
      await comesIn(hand, 2 * HOUR_MS);
    },
    without: [{ script: 'timed-take', cure: 'a time of the user is no length', change: 'never' }],
  },
  'a delay given by the right clock is not shortened when the clock was ahead meanwhile': {
    async play() {
      const hand = await Hand.ofNew();
      await hand.put('x', `+${2 * HOUR_MS}`);
      moveClock(HOUR_MS);
      await hand.put('y', '+9000000');
      moveClock(-HOUR_MS);
      await comesIn(hand, 2 * HOUR_MS);
    },
    without: [
      {
        script: 'timed-take',
        cure: 'a delay is not shortened by a clock that was ahead meanwhile',
        change: { becomes: 'at + mark' },
      },
    ],
  },
  'an item that was moved by a delay while another had it is due after that delay': {
    async play() {
      const hand = await Hand.ofNew();
      await hand.put('x', 0);
      const { token } = await hand.take();
      moveClock(HOUR_MS);
      await hand.settle(token, 'keep', LEASE_MS);
      await hand.put('x', `+${DELAY_MS}`);
      moveClock(-HOUR_MS);
      await hand.settle(token, 'done');
      await comesIn(hand, DELAY_MS);
    },
    without: [
      [
        NO_LOOK,
        { script: 'timed-settle', cure: 'a move beside the lease is believed for its length' },
      ],
    ],
  },
  'an item that is given back after the clock went back is due at once': {
    async play() {
      const hand = await Hand.ofNew();
      moveClock(HOUR_MS);
      await hand.put('x', `+${DELAY_MS}`);
      moveClock(DELAY_MS);
      const { token, keys } = await hand.take();
      expect(keys).toEqual(['x']);
      moveClock(-HOUR_MS);
      await hand.settle(token, 'back');
      expect((await hand.take()).keys).toEqual(['x']);
    },
    without: [
      {
        script: 'timed-settle',
        cure: 'an item that was due is due when it is given back',
        change: { becomes: 'own' },
      },
    ],
  },
  'a take that finds more than one call may go through continues with the next call, at once': {
    async play() {
      const hand = await Hand.ofNew();
      const { now } = await hand.take();
      const named = (what: string) => Array.from({ length: 700 }, (_, i) => `${what}${i}`);
      moveClock(HOUR_MS);
      await hand.put(named('user'), now + DELAY_MS + 1);
      await hand.put(named('first'), '+0');
      await hand.put(named('second'), '+1');
      await hand.put('y', '+9000000');
      moveClock(-HOUR_MS);
      const found = new Set<string>();
      for (let i = 0; i < 100; i += 1) {
        const { keys, inMs } = await hand.take(1_000);
        for (const key of keys) found.add(key);
        if (inMs > 1) break;
        moveClock(inMs);
      }
      expect(found.size).toBe(1_400);
    },
    without: [
      { script: 'timed-take', cure: 'a scan of times that lie ahead continues page by page' },
      {
        script: 'timed-take',
        cure: 'a scan of times that lie ahead continues page by page, 2',
        change: { becomes: "'(' .. page[#page]" },
      },
      {
        script: 'timed-take',
        cure: 'a scan of times that lie ahead continues page by page, 2',
        change: { becomes: "'' .. page[#page]" },
      },
    ],
  },
});
