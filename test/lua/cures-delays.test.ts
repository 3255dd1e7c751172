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
  from: 'local more = timedAhead(touched, keys, at)',
  to: 'local more = false',
} as const;
const noMark = (script: 'timed-put' | 'timed-settle') => ({
  script,
  from: 'at + ms + timedMark(ms)',
  to: 'at + ms',
});

playTraces('lengths and the clock', {
  'a delay, the clock back': {
    says: 'what was put with a delay while the clock was ahead comes after that delay',
    async play() {
      const hand = await Hand.ofNew();
      moveClock(HOUR_MS);
      await hand.put('x', `+${DELAY_MS}`);
      moveClock(-HOUR_MS);
      await comesIn(hand, DELAY_MS);
    },
    without: [NO_LOOK, noMark('timed-put')],
  },
  'no delay, the clock back': {
    says: 'what was put without a delay while the clock was ahead is taken at once',
    async play() {
      const hand = await Hand.ofNew();
      moveClock(HOUR_MS);
      await hand.put('x', '+0');
      moveClock(-HOUR_MS);
      expect((await hand.take()).keys).toEqual(['x']);
    },
    without: [NO_LOOK],
  },
  'a failure, the clock back': {
    says: 'what failed while the clock was ahead comes again after the delay of the failure',
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
  'a length that nobody noted': {
    says: 'a look knows that the clock went back by what was given last, also when nobody took anything meanwhile',
    async play() {
      const hand = await Hand.ofNew();
      await hand.put('y', '+9000000');
      expect((await hand.take()).keys).toEqual([]);
      moveClock(HOUR_MS);
      await hand.put('x', `+${DELAY_MS}`);
      moveClock(-HOUR_MS);
      await comesIn(hand, DELAY_MS);
    },
    without: [
      {
        script: 'timed-put',
        from: "redis.call('HSET', keys.clock, 'at', timedNumber(at))\nend\nif sooner",
        to: 'end\nif sooner',
      },
    ],
  },
  'a time of the user, the clock back': {
    says: 'a time that the user named stays when the clock goes back',
    async play() {
      const hand = await Hand.ofNew();
      const { now } = await hand.take();
      moveClock(HOUR_MS);
      await hand.put('y', '+9000000');
      await hand.put('x', now + 2 * HOUR_MS);
      moveClock(-HOUR_MS);
      await comesIn(hand, 2 * HOUR_MS);
    },
    without: [{ script: 'timed-take', from: 'if mark == 0 then', to: 'if false then' }],
  },
  'a delay from before, the clock back': {
    says: 'a delay that was given by the right clock is not shortened when the clock was ahead meanwhile',
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
        from: 'return math.min(time, at + math.floor(2 ^ ((mark * 1024 - 1) / 29) - 0.5) + mark)',
        to: 'return at + mark',
      },
    ],
  },
  'a move beside the lease, the clock back': {
    says: 'what was moved by a delay while another had it comes after that delay',
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
        {
          script: 'timed-settle',
          from: 'local comes, over = moved and timedBelieved(moved, at),',
          to: 'local comes, over = moved,',
        },
      ],
    ],
  },
  'given back, the clock back': {
    says: 'what is given back when the clock has gone back is there at once',
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
        from: "own % 1 > 0 and own > at and timedAt('+0', at) or own",
        to: 'own',
      },
    ],
  },
  'many delays, the clock back': {
    says: 'a look that finds more than one call may go through goes on with the next call, at once',
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
      { script: 'timed-take', from: 'and not more and', to: 'and' },
      { script: 'timed-take', from: "(moves and '' or '(') ..", to: "'(' .." },
      { script: 'timed-take', from: "(moves and '' or '(') ..", to: "'' .." },
    ],
  },
});
