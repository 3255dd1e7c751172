import { expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { connected } from '../support/given.js';
import { Hand, LEASE_MS } from '../support/timed-hand.js';

/* What a timed set keeps of a length that it was given (lua/lib/timed-times.lua). */

useTestClock();

/** What a length may be longer when it is read from a score. */
const MORE = 1.025;

it.each([0, 1, 2, 3, 10, 999, 1_000, 30_000, 86_400_000, 31_536_000_000])(
  'a length of %d ms is never taken for a shorter one, nor for one that is longer by more than 2.5 %',
  async (ms) => {
    const hand = await Hand.ofNew();
    moveClock(2 * 31_536_000_000);
    await hand.put('x', `+${ms}`);
    moveClock(-2 * 31_536_000_000);
    await hand.take(1);
    const { next } = await hand.set.counts();
    const { now } = await hand.take(1);
    if (ms > 0) expect((next ?? 0) - now).toBeGreaterThan(ms - 1_000);
    expect((next ?? 0) - now).toBeLessThanOrEqual(Math.max(LEASE_MS, ms * MORE + 1));
  },
);

it('what the clock noted goes with the last key', async () => {
  const hand = await Hand.ofNew();
  const { client } = await connected();
  await hand.put('x', '+0');
  const { token } = await hand.take();
  expect(await client.exists(hand.set.keys.clock)).toBe(1);
  await hand.settle(token, 'done');
  expect(await client.exists(hand.set.keys.clock)).toBe(0);
});
