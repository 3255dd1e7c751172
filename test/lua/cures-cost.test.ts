import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { back, failure, given, Hand, LEASE_MS, success } from '../support/given.js';
import { peek } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * What a request costs is added up once for each outcome that counts (lua/lib/cost.lua).
 */

useTestClock();

async function reading(items: number) {
  const scene = await given.filled({ items, limit: items });
  const hand = new Hand(scene);
  const entries = await hand.hold(items);
  return { scene, hand, entries, cost: async () => (await peek(scene)).fields['cost'] };
}

const traces: Record<string, Trace> = {
  'the cost of a success that arrives again, beside another one, counts once': {
    async play() {
      const { hand, entries, cost } = await reading(3);
      const [first, second] = entries.map((entry, i) => ({
        ...success(entry),
        cost: String(10 ** i),
      }));
      await hand.settle([first!]);
      await hand.settle([first!, second!]);
      expect(await cost()).toBe('[11,2]');
    },
    without: [{ script: 'settle', cure: 'a cost counts with its success', change: 'always' }],
  },

  'the cost of a failure and of a return counts from the worker that owns the entry': {
    async play() {
      const { scene, hand, entries, cost } = await reading(2);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      await hand.settle([
        { ...failure(entries[0]!), cost: '20' },
        { ...back(entries[1]!), cost: '[40,0]' },
      ]);
      expect(await cost()).toBe('[0,2]');
    },
    without: [{ script: 'settle', cure: 'a cost counts from the owner', change: 'always' }],
  },

  'what the worker had whose lease ended counts as attempts, once': {
    async play() {
      const { scene, hand, entries, cost } = await reading(3);
      await hand.settle([{ ...success(entries[0]!), cost: '[10,1]' }], { keep: 2, running: 2 });
      moveClock(LEASE_MS + 1);
      for (let i = 0; i < 2; i += 1) await scene.request.tend(scene.generation, '');
      expect(await cost()).toBe('[10,3]');
    },
    without: [{ script: 'tend', cure: 'a crash is an attempt' }],
  },
};

playTraces('a history of costs', traces);
