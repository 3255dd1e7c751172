import { decodeCost, type Outcome } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { settleAll } from '../support/compact.js';
import { back, failure, given, Hand, LEASE_MS, type Scene, success } from '../support/given.js';
import { peek } from '../support/peek.js';
import { againstCluster } from '../support/redis.js';
import { completeWithFailures, openedAgain, runAgain } from '../support/redriven.js';
import { compact } from '../support/whole.js';

useTestClock();

const costing = (outcome: Outcome, cost: string): Outcome => ({ ...outcome, cost });
const costOf = async (scene: Scene) => (await peek(scene)).fields['cost'];

/** A worker with permits for all sub-requests, which it has read. */
async function reading(items: number, attempts = 1, sealed = false) {
  const options = { items, limit: items, attempts };
  const scene = sealed ? await given.sealed(options) : await given.filled(options);
  const hand = new Hand(scene);
  return { scene, hand, entries: await hand.hold(items) };
}

describe('the cost of a request', () => {
  it('is the sum of what its attempts cost: those that succeeded, failed, are retried or returned', async () => {
    const { scene, hand, entries } = await reading(4, 2);
    await hand.settle([costing(success(entries[0]!), '[1500,1,"tokens",12,"usd",0.25]')]);
    expect(await costOf(scene)).toBe('[1500,1,"tokens",12,"usd",0.25]');
    await hand.settle([
      costing(success(entries[1]!), '500'),
      costing(failure(entries[2]!), '[2000,1,"tokens",3]'),
      costing(back(entries[3]!), '[70,0,"usd",0.5]'),
    ]);
    expect(await costOf(scene)).toBe('[4070,3,"tokens",15,"usd",0.75]');
    const again = await hand.take(2);
    const third = again.find(({ index }) => index === 2)!;
    await hand.settle([costing(failure(third), '[1000,1,"tokens",5]')]);
    expect(await costOf(scene)).toBe('[5070,4,"tokens",20,"usd",0.75]');
  });

  it('is complete when the last outcomes end the request', async () => {
    const { scene, hand, entries } = await reading(2, 1, true);
    const outcomes = entries.map((entry) => costing(success(entry), '[10,1,"tokens",1]'));
    expect(await hand.trySettle(outcomes)).toMatchObject({ verdict: 'complete' });
    expect(await costOf(scene)).toBe('[20,2,"tokens",2]');
  });

  it('counts a call once that arrives twice', async () => {
    const { scene, hand, entries } = await reading(3, 2);
    const outcomes = [
      costing(success(entries[0]!), '[10,1,"a",1]'),
      costing(failure(entries[1]!), '[20,1,"a",2]'),
      costing(back(entries[2]!), '[30,0,"a",4]'),
    ];
    for (let i = 0; i < 2; i += 1) await hand.settle(outcomes, { op: 7, keep: 3 });
    expect(await costOf(scene)).toBe('[60,2,"a",7]');
  });

  it('counts a call of successes once that arrives twice', async () => {
    const { scene, hand, entries } = await reading(3);
    const outcomes = entries.slice(1).map((entry) => costing(success(entry), '10'));
    for (let i = 0; i < 2; i += 1) await hand.settle(outcomes, { op: 7, keep: 3 });
    expect(await costOf(scene)).toBe('[20,2]');
  });

  it('contains only what counts where a part of the successes of a call counts', async () => {
    const { scene, hand, entries } = await reading(4);
    const [first, second, third] = entries.map((entry, i) =>
      costing(success(entry), `[${10 ** i},1,"t",${10 ** i}]`),
    );
    await hand.settle([second!]);
    await hand.settle([first!, second!, third!]);
    expect(await costOf(scene)).toBe('[111,3,"t",111]');
  });

  it('contains of a late call only the successes that count', async () => {
    const { scene, hand, entries } = await reading(3);
    await hand.settle([costing(success(entries[0]!), '[10,1]')], { op: 9, running: 2 });
    await hand.settle(
      [
        costing(success(entries[0]!), '[10,1]'),
        costing(success(entries[1]!), '200'),
        costing(failure(entries[2]!), '4000'),
      ],
      { op: 8, running: 1 },
    );
    expect(await costOf(scene)).toBe('[210,2]');
  });

  it('contains a crash as an attempt of no time, and of a worker without a lease what still counts', async () => {
    const { scene, hand, entries } = await reading(3);
    moveClock(LEASE_MS + 1);
    await scene.request.tend(scene.generation, '');
    await scene.request.tend(scene.generation, '');
    expect(await costOf(scene)).toBe('[0,3]');
    const other = new Hand(scene, 'other');
    await other.enter(3);
    await other.take(3);
    await hand.settle([
      costing(success(entries[0]!), '[10,1]'),
      costing(failure(entries[1]!), '[20,1]'),
      costing(back(entries[2]!), '[40,0]'),
    ]);
    expect(await costOf(scene)).toBe('[10,4]');
  });

  it('adds up what more than twenty names are of as that of others', async () => {
    const { scene, hand, entries } = await reading(2);
    const named = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => `,"n${from + i}",1`).join('');
    await hand.settle([costing(success(entries[0]!), `[1,1${named(0, 15)}]`)]);
    await hand.settle([costing(success(entries[1]!), `[1,1${named(10, 25)}]`)]);
    const { usage } = decodeCost(await costOf(scene));
    expect(Object.keys(usage)).toHaveLength(21);
    expect(usage).toMatchObject({ n0: 1, n10: 2, n19: 1, other: 5 });
  });

  it('keeps numbers exact: large ones, fractions, and sums beyond the largest', async () => {
    const { scene, hand, entries } = await reading(2);
    const cost = `[9007199254740,1,"large",4503599627370495,"usd",0.1,"tiny",1e-7,"most",${Number.MAX_VALUE}]`;
    await hand.settle(entries.map((entry) => costing(success(entry), cost)));
    expect(decodeCost(await costOf(scene))).toEqual({
      handlerMs: 18_014_398_509.48,
      attempts: 2,
      usage: { large: 9_007_199_254_740_990, usd: 0.2, tiny: 2e-7, most: Number.MAX_VALUE },
    });
  });

  it('goes on in a redrive', async () => {
    const scene = await completeWithFailures([1]);
    const before = decodeCost(await costOf(scene));
    const again = await openedAgain(scene);
    await runAgain(again, [1]);
    expect(decodeCost(await costOf(again))).toEqual(before);
    const hand = new Hand(again, 'again');
    const [entry] = await hand.hold(1);
    await hand.settle([costing(success(entry!), '[30,1,"tokens",5]')]);
    const after = decodeCost(await costOf(again));
    expect(after).toEqual({
      handlerMs: before.handlerMs + 0.03,
      attempts: before.attempts + 1,
      usage: { tokens: 5 },
    });
  });

  it.skipIf(againstCluster)('of a compact request is that of its one settle', async () => {
    const scene = await compact();
    await new Hand(scene).holdAtOnce(3);
    for (let i = 0; i < 2; i += 1) await settleAll(scene, { cost: '[100,1,"tokens",4]' });
    expect(await costOf(scene)).toBe('[300,3,"tokens",12]');
  });
});
