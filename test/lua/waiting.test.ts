import { parseToken, TIMES } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  append,
  freshName,
  given,
  Hand,
  LEASE_MS,
  popAll,
  type Scene,
  success,
  tickOnce,
} from '../support/given.js';
import { inspect } from '../support/peek.js';

useTestClock();

const pushMinted = async (scene: Scene, minted: { mint: number; epoch: number }, priority = 50) => {
  const { id, generation, queue } = scene;
  if (minted.mint > 0) await queue.push({ id, generation, priority, ...minted });
};

describe('one token of ten that is lost while nine permits stay busy', () => {
  it('is found and replaced within the bounds of the audit', async () => {
    const scene = await given.sealed({ items: 20, limit: 10 });
    const nine: Hand[] = [];
    const tokens = await popAll(scene);
    while (nine.length < 9) {
      const hand = new Hand(scene, `worker ${nine.length}`);
      const entered = await hand.enter(1, [parseToken(tokens.shift() as string).epoch]);
      expect(entered.permits).toBe(1);
      await pushMinted(scene, entered);
      expect(await hand.read(1)).toHaveLength(1);
      nine.push(hand);
      tokens.push(...(await popAll(scene)));
    }
    // Popped, and never entered: whoever took it is no more.
    expect(tokens).toHaveLength(1);
    expect(await inspect(scene)).toMatchObject({ granted: 9, out: 1 });

    const tenth = new Hand(scene, 'worker 9');
    const second = 1_000;
    let waited = 0;
    while (tenth.permits === 0) {
      moveClock(second);
      waited += second;
      // Busy all the time: nothing ends, nothing else is freed or minted.
      if (waited % 10_000 === 0) for (const hand of nine) await hand.renew();
      await tickOnce(scene);
      const [token] = await popAll(scene);
      if (token) await tenth.enter(1, [parseToken(token).epoch]);
      // The first tend, which comes an intent's grace after the intent, or else after an audit;
      // the grace in which a token that was popped may enter; a tick each second.
      const bound = Math.max(TIMES.intentGraceMs, TIMES.auditMs) + TIMES.graceMs + 2 * second;
      expect(waited).toBeLessThanOrEqual(bound);
    }
    console.log(`the tenth permit was granted again ${waited / second} s after the submit`);
    expect(await inspect(scene)).toMatchObject({ granted: 10, out: 0, outBefore: 0 });
    expect(await tenth.read(1)).toHaveLength(1);
  });
});

describe('a thousand requests that wait behind a busy priority', () => {
  const REQUESTS = 1_000;
  const LIMIT = 100;
  const ITEMS = 120;
  const AUDITS = 50;
  const PRIORITY = 70;

  it('have no more tokens than can be used, and cost no tend, audit after audit', async () => {
    const queue = freshName('waiting');
    const busy = await given.filled({ queue, items: 2, limit: 2, priority: 0 });
    const waiting: Scene[] = [];
    for (let i = 0; i < REQUESTS; i += 1) {
      const options = { queue, items: ITEMS, limit: LIMIT, priority: PRIORITY };
      waiting.push(await given.filled({ ...options, producerLeaseMs: 10 * 3_600_000 }));
    }
    const list = busy.queue.keys.list(PRIORITY);
    const { client } = busy.connection;
    // min(limit, ready), summed: nothing of them is ever served.
    const most = REQUESTS * Math.min(LIMIT, ITEMS);
    let [longest, tends, tendsLate, total] = [0, 0, 0, 2];
    const worker = new Hand(busy);
    await worker.enter(2, [1]);

    for (let audit = 1; audit <= AUDITS; audit += 1) {
      // The busy one goes on: two end, two come, and their tokens are never met by those that wait.
      const read = await worker.read(2);
      expect(read).toHaveLength(2);
      await append(busy, 2, total);
      total += 2;
      await worker.settle(read.map((entry) => success(entry)));
      expect(LEASE_MS).toBeGreaterThan(TIMES.auditMs);
      moveClock(TIMES.auditMs);
      for (;;) {
        const claims = await tickOnce(busy);
        if (claims === 0) break;
        tends += claims;
        if (audit > 4) tendsLate += claims;
      }
      const length = await client.llen(list);
      longest = Math.max(longest, length);
      expect(length).toBeLessThanOrEqual(most);
      // Each has one place in its list: nobody holds permits of it.
      expect(length).toBe(REQUESTS);
    }
    // Each was tended once, at its first time; after that only the busy one is.
    expect(tendsLate).toBeLessThanOrEqual(AUDITS);
    console.log(
      `${REQUESTS} requests × limit ${LIMIT}, ${AUDITS} audits: list at most ${longest} (bound ${most}), ` +
        `${tends} tends in all, ${tendsLate} after the fourth audit, ` +
        `${((tends - tendsLate) / REQUESTS).toFixed(3)} for each that waits`,
    );
    expect(await inspect(waiting[0] as Scene)).toMatchObject({ out: 0, outBefore: 1, granted: 0 });
  }, 120_000);
});
